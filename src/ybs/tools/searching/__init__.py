"""Walking folders and searching files, with `rg` or without."""
