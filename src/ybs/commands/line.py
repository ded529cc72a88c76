"""What is a command line, and what is not."""


def is_command(line: str) -> bool:
    """Return whether the line is a command; a path such as `/etc/hosts` at the start is not one."""
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    return word.startswith("/") and "/" not in word[1:]
