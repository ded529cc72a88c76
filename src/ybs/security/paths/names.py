r"""Names of files as text that anybody can read and send back: `\xNN` stands for one byte.

Bytes that are not UTF-8 are written so, control characters and those that nobody sees too, and a backslash that
would otherwise begin such a mark. So every name has one spelling, every spelling means one name, and no name
breaks a line.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ybs.security.unicode import has_suspects, replace_hidden

#: Bytes that are not UTF-8 are surrogates in Python's texts (https://peps.python.org/pep-0383/).
_HIDDEN = "[\x00-\x1f\x7f-\x9f\udc80-\udcff]"
_APOSTROPHES = "\u2018\u2019\u02bc"
#: Of ASCII, that of which other characters have the looks.
_MAY_STAND_FOR_OTHERS = frozenset(" '")
_MARK = r"\\x([01][0-9a-fA-F]|5[cC]|7[fF]|[89a-fA-F][0-9a-fA-F])"  # compiled when the first is met


def shown_name(path: str) -> str:
    r"""Return the path with each byte that no text should hold as `\xNN`."""
    if path.isascii() and path.isprintable() and "\\" not in path:
        return path
    path = re.sub(_MARK, r"\\x5cx\1", path)
    if path.isprintable() and not has_suspects(path):
        return path
    return replace_hidden(path, _marked, _HIDDEN)


def real_name(shown: str) -> str:
    """Return the path that `shown_name` was given. A spelling that holds no mark is the path itself."""
    if "\\" not in shown:
        return shown
    meant = re.sub(_MARK, lambda found: os.fsdecode(bytes((int(found[1], 16),))), shown)
    # Neighbours may be one character together.
    return meant if meant == shown else os.fsdecode(os.fsencode(meant))


def appearance_of(name: str) -> str:
    """Return the normal form of a name: equal for names that look the same, composed or not, with whatever space or apostrophe."""
    if name.isascii():
        return name
    from unicodedata import category, normalize  # few names need it

    plain = ("'" if each in _APOSTROPHES else each for each in normalize("NFC", name))
    return "".join(" " if category(each) == "Zs" else each for each in plain)


def may_have_twins(name: str) -> bool:
    """Return whether other characters may look like those of a name."""
    return not name.isascii() or bool(_MAY_STAND_FOR_OTHERS.intersection(name))


def twins_of(name: str, names: Iterable[str]) -> list[str]:
    """Return the other names that look like this one."""
    looks = appearance_of(name)
    return [each for each in names if each != name and appearance_of(each) == looks]


def remark_on_name(asked: str, path: Path) -> str:
    """Return how the name of a path is spelled where it only looks like the one that was asked for; empty where it is that."""
    parts = Path(asked).parts
    twins = [
        each
        for each in path.parts
        if each not in parts and may_have_twins(each) and twins_of(each, parts)
    ]
    names = ", ".join(map(ascii, twins))
    return f" [The name on disk is {names}: other characters that look the same.]" if twins else ""


def _marked(run: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(run))
