"""Shell commands: their syntax, and what is dangerous in them."""
