"""The secrets of a session: each has one placeholder, which says its kind and nothing else.

A value of several lines is known by each long part of what its lines say, without the marks that a tool put before them. A part has the
placeholder of its whole and is not a value of its own: what one text taught must not cut in two what another one holds.
"""

from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain

from ybs.config import key_store
from ybs.core.lazy import lazy
from ybs.security.firewall.checks import is_random, is_word
from ybs.security.firewall.rules import KINDS, OWN

PLACEHOLDER = lazy(r"\[ybs:secret:([a-z0-9-]{1,40})#(\d{1,6})\]")
#: A shorter value would be found in ordinary text, in characters.
LEAST_OWN = 8
_MOST_KNOWN = 500
_MOST_COUNTED = 100_000
#: How the names of variables end that hold secrets; a number may follow, and what begins with `_` may be the whole name.
_SECRET_ENDS = (
    *("token", "secret", "password", "apikey"),
    *(
        "_passwd",
        "_passphrase",
        "_pwd",
        "_pass",
        "_credential",
        "_credentials",
        "_key",
        "_auth",
        "_dsn",
        "_pat",
        "_pw",
        "_creds",
        "_privkey",
        "_mnemonic",
        "_secret_key_base",
        "_connection_string",
    ),
    *("_authorization", "_bearer", "_dbpass", "_dbpwd", "_sshkey", "_masterkey", "_bindpw"),
    *("_sshpass", "_bw_session", "_supabase_service_role"),  # no more than these: others are words
    *("_accesskey", "_privatekey", "_secretkey", "_signingkey", "_encryptionkey", "_authkey"),
)
#: Words that say so wherever they stand in a name (`GITHUB_TOKEN_WORK`), and what the name is of where one of these ends it.
_SECRET_WORDS = (
    *("_token_", "_secret_", "_password_", "_passwd_", "_passphrase_", "_credentials_"),
    *("_apikey_", "_api_key_", "_access_key_", "_private_key_"),
)
_NO_SECRETS = frozenset(
    (
        *("file", "path", "dir", "folder", "id", "ids", "url", "uri", "endpoint", "host", "port"),
        *("name", "names", "user", "username", "type", "kind", "count", "limit", "limits"),
        *("max", "min", "length", "size", "ttl", "age", "expiry", "expires", "timeout", "interval"),
        *("version", "region", "backend", "store", "provider", "service", "manager", "helper"),
        *("command", "cmd", "program", "algorithm", "format", "header", "policy", "prefix"),
        *("suffix", "enabled", "required", "refresh", "scope", "scopes", "permissions"),
    )
)
_FOLDERS = ("PWD", "OLDPWD")  # named like a password, and every path begins with them
_LOGIN = lazy(r"://[^\s:/]*:([^\s/]+)@")
#: A shorter piece of a key's line, in bytes, is not known; how keys begin in base64, and a run of that.
_PIECE = 16
_KEY_HEADS = (b"MI", b"b3BlbnNzaC")
_KEY_RUN = lazy(rb"[A-Za-z0-9+/]{16,}")
#: What is long and has a digit in it; shorter parts would be found in ordinary text.
_PART = lazy(r"(?=[A-Za-z_+/.=-]*[0-9])[0-9A-Za-z_+/.=-]{12,}")
_PATH = lazy(r"(?:~|\.{0,2})/[\w./ -]*|[A-Za-z]:\\.*")
#: What stands for a value that somebody fills in later.
_TEMPLATE = lazy(
    r"\$\{[^}]*\}|\$\([^)]*\)|\$(?:[A-Z_][A-Z0-9_]*|[a-z_]+)|\{\{[^}]*\}\}|<[^<>]*>|\[[^\[\]]*\]"
)
_WORD, _NARROW_WORD = lazy(rb"[^\s\"'`,;]{8,}"), lazy(rb"[^\s\"'`,;=:]{8,}")
_DIGIT = lazy(rb"[0-9]")
#: No folder is named by so many letters and digits in a random order.
_LEAST_RANDOM = 12


class Vault:
    """Values and their placeholders. Known beforehand are the person's `own` secrets, and `others`, which somebody else gave: a project, a plugin, an editor, a server."""

    def __init__(self, own: Iterable[str] = (), others: Iterable[str] = ()) -> None:
        #: Each form of what is known beforehand, and whether it is the person's own.
        self._own: dict[bytes, bool] = {}
        for value in own:
            self._own |= dict.fromkeys(_forms(value), True)
        for form in chain.from_iterable(map(_forms, others)):
            self._own.setdefault(form, False)
        self._placeholders: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._parts: dict[bytes, str] = {}
        #: What stands anywhere in the lines of private keys, in pieces of `_PIECE` bytes.
        self._pieces = set[bytes]()
        self._counts: dict[str, int] = {}
        self._learned = self._fetched = 0

    @property
    def learned(self) -> int:
        """How many values were learned: with each of them a text may hold more secrets than before."""
        self._keep_fetched()
        return self._learned

    def _keep_fetched(self) -> None:
        if new := key_store.fetched[self._fetched :]:
            self._fetched += len(new)
            self.keep(new)

    def keep(self, values: Iterable[str]) -> None:
        """Take more secrets that are known beforehand, and that somebody else gave."""
        for value in values:
            forms = dict.fromkeys(_forms(value), False) if len(value) >= LEAST_OWN else {}
            if not forms.keys() <= self._own.keys():
                self._own = forms | self._own
                self._learned += 1

    def placeholder(self, kind: str, value: str, lines: Iterable[str] = ()) -> str:
        """Return the placeholder of the value in this session. `lines` are what a value of several says: each may stand in another text, by itself."""
        known = self._placeholders.get(value)
        if known is None:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            known = self._placeholders[value] = f"[ybs:secret:{kind}#{number}]"
            self._values[known] = value
            for part in chain.from_iterable(map(_PART().findall, lines)):
                self._parts[part.encode()] = kind
                self._placeholders.setdefault(part, known)
            self._learned += 1
        return known

    def reserve(self, text: str) -> None:
        """Give no value a placeholder that stands in this text, which is of an earlier part of the session."""
        for kind, number in PLACEHOLDER().findall(text):
            # No session counts further; after a number that somebody made up none would be a placeholder.
            if (count := int(number)) < _MOST_COUNTED:
                self._counts[kind] = max(self._counts.get(kind, 0), count)

    def value(self, placeholder: str) -> str | None:
        """Return the value of the placeholder; None if it is not from this session."""
        return self._values.get(placeholder)

    def known(self) -> Iterator[tuple[bytes, str]]:
        """Yield the values that are masked wherever they stand, with their kinds."""
        self._keep_fetched()
        for form in self._own:
            yield form, OWN
        for placeholder, value in list(self._values.items())[-_MOST_KNOWN:]:
            if len(value) >= LEAST_OWN:
                yield (
                    value.encode("utf-8", "surrogatepass"),
                    placeholder.split(":")[2].split("#")[0],
                )

    def persons(self) -> Iterator[tuple[bytes, str]]:
        """Yield the person's own secrets that are known beforehand, with their kind."""
        return ((form, OWN) for form, is_persons in self._own.items() if is_persons)

    def keep_parts(self, kind: str, parts: Iterable[bytes]) -> None:
        """Take more parts of values for secrets, each wherever it stands."""
        new = dict.fromkeys(parts, kind)
        if not new.keys() <= self._parts.keys():
            self._parts |= new
            self._learned += 1
            for part in new:
                if not part.lstrip(b"n").startswith(_KEY_HEADS):  # public keys begin so, too
                    starts = range(len(part) - _PIECE + 1)
                    self._pieces.update(part[start : start + _PIECE] for start in starts)

    def forget_parts(self, value: str) -> None:
        """Take the parts of a value for no secrets any more."""
        whole = self._placeholders[value]
        for part in [each for each, known in self._placeholders.items() if known == whole]:
            if part != value:
                del self._placeholders[part]
                self._parts.pop(part.encode(), None)

    def parts(self) -> list[tuple[bytes, str]]:
        """Return the long parts of values that stood in several lines, with their kinds."""
        return list(self._parts.items())[-_MOST_KNOWN:] if self._parts else []

    def older_spans(self, data: bytes) -> Iterator[tuple[int, int, str]]:
        """Yield where values that are not among the newest `known` stand as words: a file of thousands must not have others forgotten."""
        if len(self._values) <= _MOST_KNOWN:
            return
        for word in chain(_WORD().finditer(data), _NARROW_WORD().finditer(data)):
            if placeholder := self._placeholders.get(word[0].decode(errors="surrogateescape")):
                yield *word.span(), placeholder.split(":")[2].split("#")[0]

    def key_spans(self, data: bytes) -> Iterator[tuple[int, int, str]]:
        """Yield where pieces of the lines of private keys stand, wherever those were cut."""
        for run in _KEY_RUN().finditer(data) if self._pieces else ():
            for start in range(run.start(), run.end() - _PIECE + 1):
                if data[start : start + _PIECE] in self._pieces:
                    yield start, start + _PIECE, "private-key"


def is_placeholder(text: str) -> bool:
    """Return whether the text is a placeholder, of this session or another."""
    match = PLACEHOLDER().fullmatch(text)
    return match is not None and match[1] in KINDS


def own_secrets(environ: Mapping[str, str], keys: Iterable[str] = ()) -> list[str]:
    """Return the person's own secrets: values of variables named like secrets, and ybs's keys."""
    values = [value for key in keys if len(value := key.strip()) >= LEAST_OWN]
    for name, text in environ.items():
        if name in _FOLDERS:
            continue
        found = _LOGIN().search(text) if "://" in text else None
        if found and len(found[1]) >= LEAST_OWN and not is_word(found[1].encode()):
            from urllib.parse import unquote  # few have a login in a variable

            values += [found[1], unquote(found[1])]
        elif _is_secret_name(name) and _is_value(value := _without_scheme(text.strip())):
            values.append(value)
    return list(dict.fromkeys(values))


def _without_scheme(value: str) -> str:
    """Return what is secret in the value of a header: what stands behind `Bearer`."""
    scheme, _, rest = value.partition(" ")
    return rest.strip() if scheme.lower() in ("bearer", "basic", "token") else value


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables but for those that hold the person's own secrets."""
    return {name: text for name, text in environ.items() if not own_secrets({name: text})}


def _is_secret_name(name: str) -> bool:
    """Return whether a variable is named like a secret. It is asked of each variable, so it costs no expression."""
    bare = f"_{name.lower().rstrip('0123456789').removesuffix('_')}"
    if bare.endswith(_SECRET_ENDS) or bare.removesuffix("s").endswith(_SECRET_ENDS):
        return True
    return bare.rpartition("_")[2] not in _NO_SECRETS and any(
        w in f"{bare}_" for w in _SECRET_WORDS
    )


def _is_value(text: str) -> bool:
    raw = text.encode("utf-8", "surrogateescape")
    if len(text) < LEAST_OWN or _TEMPLATE().fullmatch(text):
        return False
    if _PATH().fullmatch(text):  # one key in 64 of those in base64 begins with a slash
        parts = raw.lstrip(b"~").split(b"/")
        return any(
            len(each) >= _LEAST_RANDOM and each.isalnum() and is_random(each) for each in parts
        )
    return is_random(raw) or not is_word(raw)


@cache
def _quoted() -> tuple[bytes, ...]:
    """Return each byte as an address writes it."""
    return tuple(
        bytes((code,))
        if code < 128 and (chr(code).isalnum() or chr(code) in "-._~")
        else b"%%%02X" % code
        for code in range(256)
    )


def _forms(value: str) -> Iterator[bytes]:
    """Yield the value as it may stand in a text: as it is, in an address, in JSON and HTML, within base64."""
    raw = value.encode("utf-8", "surrogateescape")
    yield raw
    yield b"".join(_quoted()[code] for code in raw)
    if not raw.translate(None, b"_-.~").isalnum():
        yield from _escaped(value, raw)
    for shift in range(3):
        # Of base64 the characters that neighbours have a part in are left out.
        packed = b2a_base64(b"\0" * shift + raw, newline=False).rstrip(b"=")
        yield packed[(0, 2, 3)[shift] : len(packed) - (1 if (len(raw) + shift) % 3 else 0)]
    if b"\n" in raw:  # its lines may stand apart, as with numbers before them
        for line in raw.split(b"\n"):
            yield from _own_words(line)


def _escaped(value: str, raw: bytes) -> Iterator[bytes]:
    """Yield the value as programs write one with signs: JSON of Python, Go and PHP, HTML, addresses in small letters, Python's bytes."""
    texts = [raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"')]
    for _ in range(2):  # JSON within JSON
        texts.append(texts[-1].replace(b"\\", b"\\\\").replace(b'"', b'\\"'))
    if not raw.isascii():
        from json import dumps  # few are

        texts.append(dumps(value)[1:-1].encode())
        yield repr(raw)[2:-1].encode()
    for text in texts:
        yield text
        yield text.replace(b"/", b"\\/")
        yield _replaced(text, {b"&": b"\\u0026", b"<": b"\\u003c", b">": b"\\u003e"})
    doubled = raw.replace(b"\\", b"\\\\")
    yield doubled
    yield doubled.replace(b"'", b"\\'")
    page = {b"&": b"&amp;", b"<": b"&lt;", b">": b"&gt;"}
    yield _replaced(raw, page)
    for quote in (b"'", b"&#x27;", b"&#39;"):
        yield _replaced(raw, page | {b'"': b"&quot;", b"'": quote})
    quoted = [_quoted()[code] for code in raw]
    yield b"".join(each.lower() if len(each) > 1 else each for each in quoted)
    yield b"".join(quoted).replace(b"%20", b"+")
    yield b"".join(quoted).replace(b"%2F", b"/")


def _replaced(raw: bytes, signs: Mapping[bytes, bytes]) -> bytes:
    for sign, said in signs.items():
        raw = raw.replace(sign, said)
    return raw


def _own_words(line: bytes) -> Iterator[bytes]:
    """Yield the words of a secret's line that ordinary text does not have."""
    words = [word.strip(b"\"',;") for word in line.split()]
    for word in words:
        is_line = len(words) == 1 and len(word) >= LEAST_OWN and _DIGIT().search(word)
        is_long = len(word) >= _LEAST_RANDOM and b":" not in word
        if (is_line and not is_word(word)) or (is_long and is_random(word)):
            yield word
