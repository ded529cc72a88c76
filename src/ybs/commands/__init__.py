"""The slash commands, once for all frontends: registry.py lists them, the other files do them."""
