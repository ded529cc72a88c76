"""Find mentions in a request: paths, names of files, and commands in back quotes."""

import re
from typing import Final

from ybs.core.lazy import lazy

#: A command as people quote one: of several words.
_COMMAND: Final = lazy(r"`([^`\n]{1,200} [^`\n]{1,200})`")
#: That something is to be run, or not.
_RUNS: Final = lazy(
    r"(?i)(?:\b(?:not|never|without)|n['\u2019]t)\s+run|\b(?:re-?)?run(?:s|ning)?\b(?!\.\w)"
)
_PATH: Final = lazy(r"(?<![\w./-])[\w./-]*\w/?")
#: A dot and a short word is an ending (`.sh`), with a longer one it is a file (`.gitignore`).
_IS_FILE: Final = lazy(r"\w\.[A-Za-z]\w{0,5}$|(?:^|/)\.[A-Za-z][\w.-]{5,}$")
_CALLED: Final = lazy(r"(?i)\bfile\s+(?:called|named)\s+[`'\"]?([\w./-]*\w)")
#: Tests; and with them documents, which are seldom what is wrong.
TEST: Final = r"(?i)(?:^|[/_.])(?:tests?|specs?)(?:[/_.]|$)"
NO_CODE: Final = lazy(rf"{TEST}|\.(?:md|rst|txt)$|(?:^|/)LICENSE$")


def without_halves(words: str) -> str:
    """Return the words with a question mark for each half of a character, as a broken terminal sends it, which no call may have."""
    return words.encode("utf-8", "replace").decode()


def commands_in(words: str) -> list[str]:
    """Return the commands that the words quote."""
    return re.findall(_COMMAND(), words)


def without_commands(words: str) -> str:
    """Return the words without the commands that are quoted in them."""
    return with_commands_as(" ", words)


def with_commands_as(text: str, words: str) -> str:
    """Return the words with a text in the place of each command that is quoted in them."""
    return re.sub(_COMMAND(), text, words)


def command_to_run(words: str) -> str:
    """Return the only command that the words quote, where they speak of running; nothing where they say not to, or quote several."""
    commands = set(commands_in(words))
    said = re.findall(_RUNS(), without_commands(words))
    is_wanted = bool(said) and all(len(each.split()) == 1 for each in said)
    return commands.pop() if is_wanted and len(commands) == 1 else ""


def paths_in(words: str) -> list[str]:
    """Return what may be a path in the words, in their order, each once."""
    return list(dict.fromkeys(path.rstrip(".") for path in re.findall(_PATH(), words)))


def files_in(words: str) -> list[str]:
    """Return what the words name as files: by how the name ends, or by calling it one ("a file named VERSION")."""
    named = {found.rstrip(".") for found in re.findall(_CALLED(), words)}
    return [path for path in paths_in(words) if path in named or is_file_name(path)]


def is_file_name(path: str) -> bool:
    """Return whether a path ends as the names of files do."""
    return re.search(_IS_FILE(), path) is not None
