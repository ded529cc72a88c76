"""The slash commands, once for all doors: registry.py lists them, the other files do them."""
