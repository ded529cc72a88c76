"""Checks beyond a pattern: whether a matched value is a secret and not a word, a name or a placeholder."""

import re
from binascii import Error, a2b_base64
from collections.abc import Callable, Mapping
from itertools import pairwise
from math import log2

from msgspec import Struct

from ybs.core.lazy import lazy
from ybs.security.firewall.rules import WORDS, Level, SecretRule

#: What people write where a secret would stand, anywhere in a value (lower case).
_STANDS_IN = lazy(
    rb"example|changeme|change[_-]?it|change[_-]me|placeholder|your[_-]?|redacted|dummy|sample|insert[_-]|"
    rb"[xX*.#_-]{8}|\*{3}|\.\.\.|1234567890abc|abcdefghij|<[^>]*>|\$\{|\$\(|\{\{|%\(|0{12}|lorem|goes[_-]?here|my[_-]?secret"
)
_REPEATED = lazy(rb"(.{1,4}?)\1{5,}", re.DOTALL)
#: What no word has, so that a text with it and with digits was drawn.
_HARD = lazy(rb"[bcdfghjklmnpqrstvwxz]{6}|q[b-hj-tv-z]|[jvx][bcdfghjkmnpqrstvwxz]{2}|[a-z]q\b")
_NO_SIGN = lazy(rb"[0-9A-Za-z]+")
_RUN = lazy(rb"[A-Z]?[a-z]{3,}|[A-Z]{4,}")
_CLASS = bytes.maketrans(
    bytes(range(256)),
    bytes(
        ord("d") if chr(c).isdigit() and c < 128
        else ord("l") if 97 <= c <= 122
        else ord("u") if 65 <= c <= 90
        else ord("s")
        for c in range(256)
    ),
)  # fmt: skip


def entropy(value: bytes) -> float:
    """Return Shannon's entropy in bits for each byte."""
    size = len(value)
    counts = [value.count(code) for code in set(value)]
    return -sum(count / size * log2(count / size) for count in counts)


def stands_in(value: bytes) -> bool:
    """Return whether the value only shows where a secret would stand, as in documentation."""
    return _STANDS_IN().search(value.lower()) is not None or _is_repeated(value)


def _is_repeated(value: bytes) -> bool:
    match = _REPEATED().search(value)
    return match is not None and 2 * (match.end() - match.start()) > len(value)


def changes(value: bytes) -> int:
    """Count how often the class of characters (digit, lower case, upper case, sign) changes along the value."""
    kinds = value.translate(_CLASS)
    return sum(one != other for one, other in pairwise(kinds))


def is_random(value: bytes) -> bool:
    """Return whether the value looks drawn at random: letters and digits mixed, not words joined with numbers."""
    kinds = value.translate(_CLASS)
    digits, size = kinds.count(b"d"), len(value)
    letters = kinds.count(b"l") + kinds.count(b"u")
    if not letters:
        return digits == size >= 15
    if not digits:
        return size >= 24 and _is_mixed(kinds) and not _is_wordy(value)
    if entropy(value) < (2.6 if size < 20 else 3.0):
        return False
    if b"s" not in kinds and _groups(kinds) >= 3:
        return True  # no name has digits in three places and no sign between its words
    # Of two neighbours in a random text of letters and digits about four in ten differ in class; in names few do.
    is_drawn = changes(value) >= max(3, size * 0.2) or _HARD().search(value.lower()) is not None
    return is_drawn and not _is_wordy(value)


def _is_drawn(word: bytes, value: bytes) -> bool:
    """Return whether no name is like the value, for where little says that it is one: a long part of it is random, in more than one place."""
    if _FOREIGN().search(value):
        return True
    if word.startswith((b"passw", b"identified")) and b"_" not in value:
        return len(value) >= 10 and is_random(value)
    part = max(_NO_SIGN().findall(value), key=len, default=b"")
    kinds = part.translate(_CLASS)
    is_spread = _groups(kinds) >= 3 or changes(part) * 2 >= len(part)
    return len(value) >= 16 and len(part) >= 12 and is_spread and b"d" in kinds and is_random(part)


def _is_drawn_from_all(value: bytes) -> bool:
    """Return whether the value looks drawn from all signs that there are, blanks too: no sentence and no code changes so often.

    One without capitals has only the signs of which Django draws its keys, and is shorter.
    """
    is_lower = not _NOT_OF_KEYS().search(value)
    part = value[-50:] if is_lower else value
    kinds, size = part.translate(_CLASS), len(part)
    signs = {code for code, kind in zip(part, kinds, strict=True) if kind == ord("s")}
    letters = [kinds.count(b"l")] if is_lower else [kinds.count(b"l"), kinds.count(b"u")]
    few = min(*letters, 4 * kinds.count(b"d"), len(signs))
    often, many = (0.4, 10) if is_lower else (0.5, 8)
    return size >= 40 and changes(part) >= often * size and few * many >= size


def _groups(kinds: bytes) -> int:
    """Count the groups of digits."""
    return len([group for group in kinds.replace(b"u", b"l").split(b"l") if group])


def _is_wordy(value: bytes) -> bool:
    """Return whether three fifths of the value stand in runs of letters that could be words."""
    runs = _RUN().findall(value)
    return sum(len(run) for run in runs if _is_word(run.lower())) * 5 >= len(value) * 3


def _is_word(run: bytes) -> bool:
    vowels = sum(run.count(vowel) for vowel in (b"a", b"e", b"i", b"o", b"u", b"y"))
    return vowels * 4 >= len(run) and _HARD().search(run) is None


def _is_mixed(kinds: bytes) -> bool:
    """Return whether letters alone change case as no name does."""
    return b"s" not in kinds and kinds.count(b"ul") >= len(kinds) // 6 and b"uu" in kinds


#: What stands in for a password in examples.
_WORDS = frozenset(
    b"password passwd pass pwd secret test testing admin root user username guest none null true false token key "
    b"changeme postgres mysql redis foo bar foobar example default demo string".split()
)
_VARIABLE = lazy(rb"\$\w+|\$\{[^}]*\}|%\w+%|%s|%d|\{[\w.]*\}|:\w+|<.*|\[.*|\*+|x+|y+|\.+")
_NAME = lazy(rb"[A-Za-z0-9_.$-]{0,50}$")
#: Names of what is shown to everybody although a word of secrecy stands in them.
_PUBLIC = lazy(
    rb"public|pubkey|pub_?key|primary|foreign|(?<!bit)bucket|schema|sequence|cache|idx|hot_?key|sort_?key|partition|natural|"
    rb"issuer|monkey|turkey|keyboard|author(?!iz)|random|csrf|xsrf|accessor|accessib|checksum|digest|integrity|"
    rb"thumbprint|fingerprint|object_?key|react|storage_?key|i18n|translation|signature_?key|license|token_?type|"
    rb"tokeni[sz]|x-amz-algorithm|etag|react-key|publishable|idempot|hash",
    re.IGNORECASE,
)
#: What follows the word and makes it the name of something about a secret.
_ABOUT = lazy(
    rb"(?:s?[_.-]?(?:id|ids|name|names|file|path|url|uri|endpoint|type|size|length|len|count|alias|vault|ring|store|"
    rb"pair|word|words|board|code|codes|frame|press|pressed|down|up|mesh|selector|signature|stone|storetype|event|"
    rb"format|prefix|suffix|version|field|header|class|status|algorithm|expiry|expires|ttl|mode|method|index|"
    rb"usage|limit|hash|digest|sha256|audience|issuer|chars|str|map|set|space|policy|provider|server|host|domain|"
    rb"scheme|source|results?|variable|env|env_?var|regex|pattern|ref|label|description|hint))(?![a-z])",
    re.IGNORECASE,
)
_SECRECY = lazy(rb"(?i:" + WORDS + rb")")
#: Words for a password that begin other words, and end no other name.
_SHORT = (b"pass", b"pwd", b"pw", b"psk")
#: Words that alone say little: the value has to look like a key. `author` and `passage` are other words.
_WEAK = frozenset((b"key", b"auth", b"creds", b"pat", b"authorization", *_SHORT))
#: A name that ends so is that of a password, in capitals or in quotes: `DB_PASS=`, `"smtp_pwd":`.
_PASSWORD = lazy(rb"[A-Z0-9]_(?:PASS|PWD)\W|[A-Za-z0-9]_(?i:pass|pwd)\\?[\"'`]")
#: What follows such a word within a name, or where it is one of several words and values.
_IS_PART = lazy(rb"[\w.-]|\W{0,4},")
#: Signs that stand in no key of Django.
_NOT_OF_KEYS = lazy(rb"[^0-9a-z!#-&*+=@^_()-]")
#: Signs that only a value in quotes may have.
_FOREIGN = lazy(rb"[ (),:;<>\[\]{|}]")
_UUID = lazy(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CODE = lazy(
    rb"[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)+[;,]?"  # a.b.c, as code names things
    rb"|(?:\.[\w.-]{0,20}/|/|~/|[A-Za-z]:\\)[\w./\\ -]*|https?:.*|[\w-]+\.(?:py|js|ts|json|ya?ml|pem|key|crt|txt|md|html|cer|p12|jks)"
)
_ESCAPE = lazy(
    rb"\\+(?:u(?:[0-9a-fA-F]{4}|\{\w{1,6}\})|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[01][0-7]{2}|[^\\]|$)"
)
_CLOSED = lazy(rb"\.?(?:[\s\"'`;,)}<&|\\\]]|$)")
#: A longer value is not a name, in bytes.
_LONGEST_NAME = 64
#: What stands between a name and its value, and between the parts of an address.
_GIVES = lazy(rb"[&=:]")
_DATE = lazy(
    rb"\d{4}-\d\d-\d\d\b.*|v?\d+(?:\.\d+)+.*|\^?~?\d+(?:\.\d+)*(?:-[a-z]+[.\d]*)|[\d.:,/%+-]{1,14}|.*[-_]v?\d+\.\d+(?:\.\d+)?\S*"
)

#: Fewer letters alone are not known to be no word, as short names have odd parts.
_LEAST_LETTERS = 12
#: How far behind its name a value may stand that looks drawn, in bytes, whatever is between.
REGION = 300
_DIGITS = b"0123456789"
#: What names and values consist of, and how much of a value may stand on either side of a long word, in bytes.
_NAME_PART = _DIGITS + bytes(range(65, 91)) + bytes(range(97, 123)) + b"_.-"
_PART, _MOST_PART = _NAME_PART + b"~+/!@#$%^&*?", 200
#: So long is a part without signs of a value that does not stand beside its name, in bytes.
_LEAST_PART = 10
#: How much of what stands before a value says what gives it, in bytes; the signs in it, and names that say nothing.
_MOST_LEAD, _QUOTES, _BLANKS = 60, b"\"'`", b" \t\r\n"
_SAYS_NOTHING = (b"value", b"default", b"content")
_BEFORE_ELEMENT = lazy(rb"(?:\s|\\[nrt]){0,40}</")
#: What stands between a name and the sign that gives its value in one statement: a type, the braces of a property.
_TYPE = lazy(
    rb"[\"'`]?(?:\s?\{[\s\w;]{0,40}\}\s?|[ \t]{0,3}"
    rb"(?:[:=\[](?>(?:[^,;\"`\n\[]|\[[^\]\n]{0,60}\]|\[){0,300}))?)"
)
#: What says that a value is that of a text or a file.
_CHECKSUM = lazy(rb"(?i:hash|digest|checksum|integrity|fingerprint|etag)")
#: A line that is empty, the next member of a list, the end of an element, or another thing's name.
_ENDS_BLOCK = lazy(
    rb"\n[ \t\r]{0,80}+(?:[0-9]{1,7}[\t:][ \t\r]{0,80}+)?(?:\n|- )|</|/>|\b(?i:name)[\"']?[ \t]{0,8}[:=]"
)
_MOST_LINES = 5
_NO_BRACKETS = bytes(code for code in range(256) if code not in b"()[]{}")


def go_on_at(rule: SecretRule, data: bytes, match: re.Match[bytes], level: Level) -> int | None:
    """Judge a match of the rule in `data`. Return None for a secret, else where the rule may be tried again."""
    value = match[match.re.groups]
    if rule.check == "assigned":
        return _assigned(data, match, level)
    if rule.check not in ("key", "key-end", "sure", "login", "basic") and stands_in(value):
        return 0
    if rule.entropy and entropy(value) < rule.entropy:
        return 0
    judge = _JUDGES.get(rule.check)
    return None if judge is None or judge(value) else 0


def _is_login(value: bytes) -> bool:
    """Judge a password, or `name:password` as curl takes it."""
    bare = value.replace(b'"', b"").replace(b"'", b"")
    words = [word for word in bare.split(b":") if word]
    if not words or is_word(words[-1]):
        return False
    return not bare.lower().startswith((b"your", b"<"))


def is_word(value: bytes) -> bool:
    """Return whether the value is one that stands in for a password, or names where it comes from."""
    lower = value.lower()
    return (
        lower in _WORDS
        or lower.rstrip(b"0123456789!") in _WORDS
        or _VARIABLE().fullmatch(lower) is not None
        or stands_in(value)
    )


def _is_basic(value: bytes) -> bool:
    """Judge what follows `Basic`: the base64 of `name:password`."""
    try:
        decoded = a2b_base64(value + b"=" * (-len(value) % 4))
    except Error:
        return False
    return decoded.isascii() and b":" in decoded and _is_login(decoded.split(b":", 1)[1])


def _assigned(data: bytes, match: re.Match[bytes], level: Level) -> int | None:
    """Judge a value that was given to a name with a word of secrecy in it."""
    value = _ESCAPE().sub(b"", match[3]) if b"\\" in match[3] else match[3]
    value = value.rstrip(b",;.")
    start, end = match.span(3)
    name = data[match.start() : start]
    before = _name_before(data, match.start())
    bare = name if match[2] is None else data[match.start() : match.start(2)]
    word, rest = _word_of(bare)
    if _PUBLIC().search(before + name) or _ABOUT().match(name, rest):
        return 0
    # What was rejected as a whole is not looked at from every word in it, but what may be a name is.
    is_name = end - start <= _LONGEST_NAME or _GIVES().search(data, start, end + 1)
    go_on = start if is_name else end
    if not _CLOSED().match(data, end) or value in before + name or _CODE().fullmatch(value):
        return go_on
    if word in _WEAK and _PASSWORD().search(before + name):
        word = b"password"
    elif word in _SHORT and not _IS_PART().match(name, rest):
        word = b"secret"
    is_quoted = data[start - 1 : start] in (b'"', b"'", b"`")
    is_spoken = level == "high" and is_quoted and word.startswith((b"pass", b"pwd", b"secret"))
    if not word or not (is_spoken or _is_value(word, value)):
        return go_on
    says_little = match[2] is not None and not before.startswith(b"-")  # no option of a command
    if says_little and (before + bare.lower() in _WEAK or not _is_drawn(word, value)):
        return go_on
    is_random_text = _FOREIGN().search(value) is not None
    return go_on if not is_random_text and (is_word(value) or _DATE().fullmatch(value)) else None


def drawn_value(data: bytes, start: int, end: int) -> "DrawnValue | None":
    """Return the value around the long word at `start` to `end`; None where it does not look drawn at random or nothing gives it."""
    if len(data[start:end].translate(None, _DIGITS)) == end - start:
        return None
    before = data[max(0, start - _MOST_PART) : start]
    begin = start - len(before) + len(before.rstrip(_PART))
    lead = _lead_of(data[max(0, begin - _MOST_LEAD) : begin])
    if not lead:
        return None
    behind = data[end : end + _MOST_PART]
    stop = end + len(behind) - len(behind.lstrip(_PART + b"="))
    value = data[begin:stop].rstrip(b",;.")
    is_closed = (_BEFORE_ELEMENT if lead == "element" else _CLOSED)().match(data, stop)
    if not is_closed or not _is_no_name(value):
        return None
    return DrawnValue(data, begin, begin + len(value), lead)


def _lead_of(before: bytes) -> str:
    """Return what gives a value that stands behind this: "value" for a name that says nothing else, "sign", "element", or nothing."""
    name = before.rstrip(_QUOTES + b"\\@=:> \t")
    given = before[len(name) :]
    if name[-7:].lower().endswith(_SAYS_NOTHING) and (b"=" in given or b":" in given):
        return "value"
    if before.endswith((b'"', b"'", b"`")):
        sign = before.rstrip(_QUOTES + b"\\").rstrip(b"@bru").rstrip(_BLANKS)
        is_sign = sign.endswith((b"=", b"(")) and not sign.endswith((b"==", b"!=", b"<=", b">="))
        return "sign" if is_sign else ""
    return "element" if before.rstrip(_BLANKS + _DIGITS + b":").endswith(b">") else ""


def _is_no_name(value: bytes) -> bool:
    """Judge a value strictly, as its name does not stand beside it."""
    part = max(_NO_SIGN().findall(value), key=len)
    if len(part) < _LEAST_PART or not is_random(value) or entropy(value) < 3.2 or stands_in(value):
        return False
    return not any(known().fullmatch(value) for known in (_CODE, _DATE, _UUID))


class DrawnValue(Struct, frozen=True):
    """A value that looks drawn at random. `lead` says what stands before it."""

    data: bytes
    start: int
    end: int
    lead: str

    def is_of(self, place: int) -> bool:
        """Return whether the value stands in the statement, the element or the block of the name with a word of secrecy at `place`."""
        text = self.data[place : self.start]
        between = text.lstrip(_NAME_PART)
        name, before = text.removesuffix(between), _name_before(self.data, place)
        word, rest = _word_of(name)
        if not word or _PUBLIC().search(before + name) or _ABOUT().match(name, rest):
            return False
        ends_name = not name[rest:].strip(_DIGITS + b"_") and before + name.lower() not in _WEAK
        if word in _WEAK and not ends_name:
            return False
        least = 10 if word.startswith(b"passw") else 16
        return self.end - self.start >= least and self._is_behind(between)

    def _is_behind(self, between: bytes) -> bool:
        """Return whether the value belongs to a name by what stands between them."""
        between = between.replace(b"\\n", b"\n").replace(b"\\", b"")
        if _CHECKSUM().search(between):
            return False
        if self.lead == "sign":
            given = between.rstrip(_QUOTES).rstrip(b"@bru").rstrip(_BLANKS)
            declared = given[:-1]
            is_said = given.endswith(b"=") or declared.strip(_QUOTES + _BLANKS)
            return bool(is_said) and _TYPE().fullmatch(declared) is not None
        if self.lead == "element" and not between.startswith((b'"', b"'", b">")):
            return False
        is_near = between.count(b"\n") <= _MOST_LINES and not _ENDS_BLOCK().search(between)
        return is_near and not _is_closed(between)


def _is_closed(between: bytes) -> bool:
    """Return whether a bracket ends that began before."""
    depth = 0
    for code in between.translate(None, _NO_BRACKETS):
        depth += 1 if code in b"([{" else -1
        if depth < 0:
            return True
    return False


def _word_of(name: bytes) -> tuple[bytes, int]:
    """Return the word of secrecy that a name is judged by, the last strong one, and where the last one ends; empty where all only begin another word."""
    found = list(_SECRECY().finditer(name))
    meant = [e for e in found if not (_is_weak(e) and name[e.end() : e.end() + 1].isalpha())]
    judged = min(reversed(meant), key=_is_weak, default=None)
    return judged[0].lower() if judged else b"", found[-1].end() if found else 0


def _is_weak(word: re.Match[bytes]) -> bool:
    return word[0].lower() in _WEAK


def _is_value(word: bytes, value: bytes) -> bool:
    """Judge the value by how much the word promises."""
    if _UUID().fullmatch(value):
        return word not in _WEAK
    if _FOREIGN().search(value):
        return _is_drawn_from_all(value)
    if word in _WEAK:
        return len(value) >= 16 and is_random(value) and entropy(value) >= 3.2
    if word.startswith(b"pass"):
        has_digit = any(48 <= code <= 57 for code in value)
        return entropy(value) >= 2.5 if has_digit else _is_no_word(value)
    return len(value) >= 10 and is_random(value)


def _is_no_word(value: bytes) -> bool:
    """Return whether the value consists of letters alone, in one case or as no name mixes them, that are no words."""
    kinds = value.translate(_CLASS)
    is_drawn = value.isalpha() and (len({*kinds}) == 1 or _is_mixed(kinds))
    return is_drawn and len(value) >= _LEAST_LETTERS and not _is_wordy(value)


def _name_before(data: bytes, start: int) -> bytes:
    found = _NAME().search(data[max(0, start - 50) : start])
    return found[0] if found else b""


_JUDGES: Mapping[str, Callable[[bytes], bool]] = {
    "random": is_random,
    "login": _is_login,
    "basic": _is_basic,
}
