"""Plugins: folders that bring commands, skills, hooks and tools, pinned by their content and trusted as a whole."""
