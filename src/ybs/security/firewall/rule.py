"""Secret patterns as data: for each kind the literals that it begins with, a bounded pattern and a check.

A pattern is matched where a literal stands and nowhere else, so a text without the literals costs next to nothing.
Formats are those that the issuers publish; where one says only "opaque", lengths seen in public tokens stand.
Literals are lower case and matched in any case; patterns mind the case.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

#: The sensitivity from which on a rule holds.
Level: TypeAlias = Literal["low", "normal", "high"]
#: How a value is looked at beyond its pattern, see `checks`.
Check: TypeAlias = Literal["", "sure", "random", "login", "basic", "assigned", "key", "key-end"]


class SecretRule(Struct, frozen=True):
    """One kind of secret.

    `anchors` are lower-case literals. `pattern` is matched at the anchor, or before it by as many bytes of the
    set `before` as stand there (`reach` at most). The secret is the last group, or the whole match where there is none.
    `entropy` is the least, in bits for each character. `near` must stand within `NEAR` bytes before (lower case).
    `then` must stand within `NEAR` bytes behind it: a quick look before the pattern, which may have to be compiled.
    `least` is how many bytes from the anchor on have no space among them: a quick look before the pattern.
    `everywhere`: the anchor is looked for in all of a text. The others are found only in a word, or up to 64 bytes
    before one, of ten or more letters, digits, `_` and `-`, which are not only lower-case letters.
    """

    kind: str
    anchors: tuple[bytes, ...]
    pattern: bytes
    entropy: float = 0.0
    check: Check = ""
    before: bytes = b""
    reach: int = 0
    near: bytes = b""
    then: bytes = b""
    level: Level = "low"
    least: int = 0
    everywhere: bool = False


#: No token is shorter, in bytes.
_LEAST = 12
#: How far before an anchor `near` is looked for, and behind it `then`, in bytes. No pattern that has one reaches further.
NEAR = 600
#: Not within a word; `\n` before it, as JSON writes a line end, is not part of a word.
EDGE = rb"(?:(?<![0-9A-Za-z_-])|(?<=\\[nrt]))"
#: Not going on.
END = rb"(?![0-9A-Za-z_-])"
UUID = rb"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
ALNUM = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def token(
    kind: str, anchors: str, pattern: bytes, entropy: float = 3.0, least: int = _LEAST
) -> SecretRule:
    """Make a rule for a token that stands by itself; `anchors` are joined by spaces."""
    return SecretRule(kind, tuple(anchors.encode().split()), EDGE + pattern, entropy, least=least)


def loose(kind: str, anchors: str, pattern: bytes, entropy: float = 3.0) -> SecretRule:
    """Make a rule for a prefix so odd that it may stand within a word."""
    return SecretRule(kind, tuple(anchors.encode().split()), pattern, entropy, least=_LEAST)


#: Words of secrecy in the names of what values are given to.
WORDS = rb"token|secret|passw(?:or)?d|passphrase|api[_-]?key|credentials?|creds|key|auth|pwd|pass"
