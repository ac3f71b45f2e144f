"""The version, where it can be read without importing anything else."""

__version__ = "0.3.0.dev0"
