"""Check the text of a path from a model before any file is looked at."""

import os
import re
from collections.abc import Container, Iterator

from ybs.core.errors import ToolError
from ybs.security.paths.names import real_name

LONGEST_PATH = 4096  # PATH_MAX of Linux


def path_of(text: str) -> str:
    r"""Return the path that the text means; `\xNN` stands for a byte. Nothing else is expanded.

    Raises ToolError for a text that is not a path.
    """
    if problem := _problem_of(text):
        shown = text if len(text) <= 80 else f"{text[:80]}..."
        raise ToolError(
            f"The path {shown!r} {problem}. Give a path relative to the project's folder."
        )
    return real_name(text)


def lies_in(path: str, folder: str) -> bool:
    """Compare part by part: `/work2` does not lie in `/work`."""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


def lies_in_one(path: str, folders: Container[str]) -> bool:
    """Return whether `lies_in` holds for one of many folders, without asking for each of them."""
    while path not in folders:
        if path in ("", "/"):
            return False
        path = path.rpartition("/")[0] or "/"
    return True


def above(path: str, top: str = "") -> Iterator[str]:
    """Yield the folders that a path lies in, the nearest first, up to the top or an empty one."""
    while path and path != top:
        path = path.rpartition("/")[0]
        yield path


def _problem_of(text: str) -> str:
    scheme, is_address, _ = text.partition("://")
    problems = (
        (not text.strip(), "is empty"),
        (len(text) > LONGEST_PATH, f"is {len(text)} characters long; {LONGEST_PATH} are possible"),
        ("\0" in text or "\\x00" in text, "holds a NUL, which no name can have"),
        (
            _has_control(text),
            r"holds a control character; in a name it is written as \xNN, so a newline as \x0a",
        ),
        (
            text.startswith("~"),
            "begins with ~, which is not expanded; a file of that name is ./~NAME",
        ),
        (
            text.startswith("$") and (text[1:2].isidentifier() or text[1:2] == "{"),
            "begins with $, and variables are not expanded; a file of that name is ./$NAME",
        ),
        (is_address and scheme.isalnum(), "is an address, not a path"),
        (not _can_be_encoded(text), "holds characters that no name can have"),
    )
    return next((problem for is_so, problem in problems if is_so), "")


def _has_control(text: str) -> bool:
    if text.isprintable():
        return False  # nearly always, and without a look at each character
    return any(character < " " or character == "\x7f" for character in text)


def _can_be_encoded(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def spelled(path: str) -> str:
    """Return a path so that no other paths look like it in a list."""
    return repr(path) if any(sign in path for sign in ",'\"") else path


def quoted(name: str) -> str:
    """Return a name so that none of it reads as a word beside it: as it is where it is plain, else in quotes."""
    return name if re.fullmatch(r"[\w./-]+", name) else repr(name)


def is_open(path: str) -> bool:
    """Return whether a path lies in the project and no part of it is hidden, which other programs read by themselves."""
    return not any(not part or part.startswith(".") for part in path.split("/"))
