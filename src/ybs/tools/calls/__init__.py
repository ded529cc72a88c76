"""A call on its way to a tool: its name, its arguments, its limits."""
