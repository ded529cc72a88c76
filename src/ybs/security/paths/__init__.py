"""Paths: where tools may work, which names are protected, and how files are opened without following links."""
