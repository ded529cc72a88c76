"""Security: paths, commands, rules, modes, confirmation, and the output to the terminal."""
