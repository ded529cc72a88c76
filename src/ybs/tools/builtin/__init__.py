"""The built-in tools, one file each, with the prompt beside it."""
