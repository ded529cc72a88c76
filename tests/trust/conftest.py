"""What tests of trust share."""

from layers_written import system_file, write

__all__ = ["system_file", "write"]
