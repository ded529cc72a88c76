r"""JSON of a model with the backslashes of a regular expression in it that are not escaped: `"\d+\.py"`.

A wrong guess would write a wrong file, so that whatever can be read in two ways stays as it is.
"""

import re
from typing import Final

from ybs.core.lazy import lazy

#: A backslash and what it escapes.
_ESCAPE = lazy(r"\\(?:u[0-9a-fA-F]{4}|.|$)", re.S)
#: What has a backslash before it in regular expressions and no meaning of its own in JSON, nor in the strings of C, Python or
#: a shell, where `\e`, `\x41`, `\'` and `\$` are a character.
_REGULAR: Final = frozenset({f"\\{sign}" for sign in ".()[]{}+*?|^-dDsSwWBAZz"})
#: A word's border in those. JSON has a backspace for it, which nobody writes into a file.
_BORDER: Final = r"\b"


def doubled(text: str) -> str:
    """Return JSON with such backslashes escaped; nothing where there are none, or where they can be read in two ways.

    A model that does not escape one may not have escaped the others: what JSON takes for a line end may be a backslash and an n.
    """
    found = set(re.findall(_ESCAPE(), text))
    if not found & _REGULAR or not found <= _REGULAR | {_BORDER, r"\""}:
        return ""
    return re.sub(_ESCAPE(), lambda sign: sign[0] if sign[0] == r"\"" else f"\\{sign[0]}", text)
