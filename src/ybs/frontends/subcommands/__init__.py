"""What `ybs WORD` does without a session: lists, checks, settings, installs; each module is a subcommand or what several share."""
