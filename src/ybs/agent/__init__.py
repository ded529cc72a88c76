"""Build an agent from its parts, and run hooks around its turns."""
