"""What may happen: paths, commands, rules, modes, confirmation, and what may reach the terminal."""
