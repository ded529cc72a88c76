"""Access to the page: links that work once, a password, and logins of two secrets each.

A login has a cookie, which no script can read, and a token, which the page keeps in storage of its own origin and names in each request.
Cookies go to every port of a machine, and storage does not: another server here that is sent the cookie can do nothing with it, and
another page that has the browser send it names no token. A login holds at the origin where it began (scheme, host and port) alone.

Who takes the port of a server that ended is sent the cookie, and reads the storage. So a login ends with the process, and is kept in a file only
where the server has a certificate: nobody else can serve a page at that origin.
"""

import hmac
import os
import time
from collections.abc import Callable
from hashlib import scrypt, sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.config import private_file
from ybs.core.decoding import from_json
from ybs.core.errors import YbsError
from ybs.security.unicode import printable

#: A link is forgotten after so long, and a login that nobody used for so long ends.
LINK_SECONDS: Final = 1_800.0
LOGIN_SECONDS: Final = 14 * 86_400.0
#: So many links and logins are kept at once; the oldest goes first.
MOST_LINKS, MOST_LOGINS = 20, 50
SHORTEST_PASSWORD: Final = 12
#: After so many wrong tries from one place it has to wait: at first so long, and twice as long each time.
FREE_TRIES, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 5, 30.0, 3_600.0
#: Wrong tries from everywhere within a minute, after which nobody may try for the rest of it.
MOST_TRIES_A_MINUTE: Final = 30
_MOST_PLACES: Final = 1_000
#: scrypt's own example for logins (RFC 7914, https://datatracker.ietf.org/doc/html/rfc7914), in 32 MB of memory.
_N, _R, _P, _MEMORY = 2**15, 8, 1, 64 * 1024 * 1024
#: How often it is written down that a login was used.
_SEEN_SECONDS: Final = 600.0


class TooManyTries(YbsError):
    """Too many wrong tries. `seconds` is how long to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Too many wrong tries. Try again in {max(1, round(seconds))} s.")
        self.seconds = seconds


class Login(Struct, frozen=True, kw_only=True):
    """A browser that has logged in, at an origin. Of its secrets only hashes are kept; `seen_at` is when it was used, in seconds since 1970."""

    id: str
    cookie: str
    token: str
    browser: str
    address: str
    begun_at: float
    seen_at: float
    origin: str = ""


class _Secrets(Struct, frozen=True):
    """What a browser gets when it logs in."""

    login: Login
    cookie: str
    token: str


def _hashed(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


class Tries:
    """Counts wrong tries, and says who has to wait. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: dict[str, tuple[int, float]] = {}
        self._minute, self._in_minute = 0.0, 0

    def check(self, address: str) -> None:
        """Raise TooManyTries where somebody at this address has to wait."""
        now = self._clock()
        if now - self._minute >= 60:
            self._minute, self._in_minute = now, 0
        if self._in_minute >= MOST_TRIES_A_MINUTE:
            raise TooManyTries(60 - (now - self._minute))
        count, at = self._wrong.get(address, (0, 0.0))
        if count >= FREE_TRIES:
            wait = min(FIRST_WAIT_SECONDS * 2 ** (count - FREE_TRIES), LONGEST_WAIT_SECONDS)
            if now < at + wait:
                raise TooManyTries(at + wait - now)

    def note_wrong(self, address: str) -> None:
        """Count a wrong try."""
        count, _ = self._wrong.pop(address, (0, 0.0))
        self._wrong[address] = count + 1, self._clock()
        self._in_minute += 1
        while len(self._wrong) > _MOST_PLACES:
            del self._wrong[next(iter(self._wrong))]

    def note_right(self, address: str) -> None:
        """Forget the wrong tries from an address."""
        self._wrong.pop(address, None)


class Password:
    """The password for logins from elsewhere: its scrypt hash, in a file of the person's settings."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def is_set(self) -> bool:
        """Whether there is one. Raises Unsafe where the file is not the person's alone."""
        return private_file.read(self._path, most_bytes=10_000) is not None

    def set(self, password: str) -> None:
        """Keep the hash of a password. Raises YbsError for a short one."""
        if len(password) < SHORTEST_PASSWORD:
            raise YbsError(f"The password needs at least {SHORTEST_PASSWORD} characters.")
        salt = os.urandom(16)
        kept = {"scrypt": [_N, _R, _P], "salt": salt, "hash": _scrypt_hash(password, salt)}
        private_file.replace(self._path, msgspec.json.encode(kept))

    def is_right(self, password: str) -> bool:
        """Return whether this is the password. It takes a tenth of a second on purpose."""
        data = private_file.read(self._path, most_bytes=10_000)
        if data is None:
            return False
        kept = from_json(data, _Kept)
        return hmac.compare_digest(_scrypt_hash(password, kept.salt, kept.scrypt), kept.hash)


class _Kept(Struct, frozen=True):
    scrypt: tuple[int, int, int]
    salt: bytes
    hash: bytes


def _scrypt_hash(password: str, salt: bytes, cost: tuple[int, int, int] = (_N, _R, _P)) -> bytes:
    n, r, p = cost
    secret = password.encode("utf-8", "replace")
    return scrypt(secret, salt=salt, n=n, r=r, p=p, maxmem=_MEMORY)


class WebLogins:
    """The links, and the logins, which end with the process unless there is a file to keep them in. `now` is seconds since 1970."""

    def __init__(self, path: Path | None, now: Callable[[], float] = time.time) -> None:
        self._path, self._now = path, now
        self._links: dict[str, float] = {}
        self._logins: dict[str, Login] = {}
        self.tries = Tries()
        data = None if path is None else private_file.read(path)
        if data is not None:
            try:
                kept = from_json(data, list[Login])
            except msgspec.DecodeError:  # a hand has spoiled it: everybody logs in again
                kept = []
            self._logins = {each.cookie: each for each in kept}

    @property
    def logins(self) -> list[Login]:
        """Those that have not ended, the one used last first."""
        self._forget_old()
        return sorted(self._logins.values(), key=lambda each: -each.seen_at)

    def new_link(self) -> str:
        """Return a key that logs one browser in, once."""
        key = token_urlsafe(32)
        self._links[_hashed(key)] = self._now() + LINK_SECONDS
        while len(self._links) > MOST_LINKS:
            del self._links[next(iter(self._links))]
        return key

    def take_link(self, key: str) -> bool:
        """Return whether this is the key of a link that nobody has used; from now on it is used."""
        until = self._links.pop(_hashed(key), 0.0)
        return self._now() < until

    def begin(self, browser: str, address: str, origin: str) -> _Secrets:
        """Log a browser in at an origin."""
        cookie, token, now = token_urlsafe(32), token_urlsafe(32), self._now()
        login = Login(
            id=token_urlsafe(6),
            cookie=_hashed(cookie),
            token=_hashed(token),
            browser=printable(browser)[:120],
            address=address,
            begun_at=now,
            seen_at=now,
            origin=origin,
        )
        self._logins[login.cookie] = login
        for extra in self.logins[MOST_LOGINS:]:
            del self._logins[extra.cookie]
        self._save()
        return _Secrets(login, cookie, token)

    def of(self, cookie: str, origin: str) -> Login | None:
        """Return the login that a cookie belongs to, which alone lets nobody in; None at another origin than its own."""
        login = self._logins.get(_hashed(cookie))
        return login if login is not None and login.origin == origin else None

    def find(self, cookie: str, token: str, origin: str) -> Login | None:
        """Return the login with these two secrets at this origin; None where there is none."""
        login = self.of(cookie, origin)
        if login is None or not hmac.compare_digest(login.token, _hashed(token)):
            return None
        now = self._now()
        if now > login.seen_at + LOGIN_SECONDS:
            self.end(login.id)
            return None
        if now > login.seen_at + _SEEN_SECONDS:
            login = self._logins[login.cookie] = replace(login, seen_at=now)
            self._save()
        return login

    def end(self, login_id: str) -> bool:
        """End a login; return whether there was one."""
        found = [each for each in self._logins.values() if each.id == login_id]
        for each in found:
            del self._logins[each.cookie]
        if found:
            self._save()
        return bool(found)

    def _forget_old(self) -> None:
        oldest = self._now() - LOGIN_SECONDS
        self._logins = {key: each for key, each in self._logins.items() if each.seen_at > oldest}

    def _save(self) -> None:
        if self._path is not None:
            private_file.replace(self._path, msgspec.json.encode([*self._logins.values()]))
