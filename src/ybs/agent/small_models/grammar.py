"""Parts of grammars as llama.cpp reads them: calls written as text, and the words around them.

https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
"""

from collections.abc import Iterable
from typing import Final

import msgspec

#: Arguments that may be of any length; a model of this size does not always find the end of another one.
_LONG: Final = frozenset({"content", "new_text", "old_text"})
#: The rules that calls are made of.
TEXTS: Final = r"""
text ::= "\"" (char | "\\" [nt])* "\""
short ::= "\"" char{1,200} "\""
name ::= [A-Za-z_] [A-Za-z0-9_]{0,60}
line ::= ("\\t")* char{1,200}
lines ::= line ("\\n" line){0,30}
end ::= "\\n"?
part ::= ([^"\\:\x00-\x1F] | "\\" ["\\/t]){1,100} ":"
char ::= [^"\\\x00-\x1F] | "\\" ["\\/]
"""
#: Words, with blocks of code in them that are not JSON.
FREE: Final = r"""
words ::= first (plain | block)*
first ::= [^`{<\n]
plain ::= [^`] | "`" [^`] | "``" [^`]
block ::= "```" [a-ik-z] [^`]* "```"
"""


def call_of(name: str, **arguments: Iterable[str]) -> str:
    """Return the grammar of a call; each argument is one of the values given, or any text where there are none."""
    parts = [literal(f'```json\n{{"name":"{name}","arguments":{{')]
    for number, (argument, values) in enumerate(arguments.items()):
        parts.append(literal(f'{"," if number else ""}"{argument}":'))
        kind = "text" if argument in _LONG else "short"
        parts.append(f"({' | '.join(literal(as_json(value)) for value in values) or kind})")
    return " ".join([*parts, literal("}}\n```")])


def as_json(text: str) -> str:
    """Return a text as JSON has it."""
    return msgspec.json.encode(text).decode()


def inside(text: str) -> str:
    """Return a text as it stands between the quotes of JSON."""
    return as_json(text)[1:-1]


def literal(text: str) -> str:
    """Return a text as a grammar has it: between quotes, with the same escapes as JSON's."""
    return as_json(text)
