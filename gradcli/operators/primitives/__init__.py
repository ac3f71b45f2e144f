"""Operators that compute: one file a family, with kernel, rules, batches and conditions."""
