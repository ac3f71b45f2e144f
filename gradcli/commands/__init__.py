"""The commands: one module each, whose `command` the group in gradcli.cli loads when it is asked for."""
