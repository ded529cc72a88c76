"""The ways in: the terminal and the one-shot command; each is imported only when it is asked for."""
