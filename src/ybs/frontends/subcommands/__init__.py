"""The subcommands that need no session (lists, checks, settings, installs), one module each, and their shared parts."""
