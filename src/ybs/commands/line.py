"""What is a command line, and what is not."""


def is_command(line: str) -> bool:
    """Return whether the line is a command; a path such as `/etc/hosts` at the start is not one."""
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    return word.startswith("/") and "/" not in word[1:]


def as_meant(line: str) -> str:
    """Return a typed line, or the command to leave for the words that other programs leave at."""
    return "/quit" if line.strip().lower() in ("exit", "quit", ":q") else line
