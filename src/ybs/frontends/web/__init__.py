"""`ybs web`: sessions in a browser, and a board of what runs and what it costs. It is imported by that subcommand alone."""
