"""The frontend without a terminal: one prompt, one answer, an exit code."""
