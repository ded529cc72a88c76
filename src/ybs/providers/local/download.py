"""Download one large file: resumed where it broke off, checked, and put in its place in one step.

What the server says of the file is believed only as far as it can do no harm: no more bytes than were announced are
taken, no more than the disk has room for, and nothing gets its name before its checksum is right.
"""

import asyncio
import os
import shutil
from asyncio import sleep
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from ybs.config import private_file
from ybs.config.addresses import is_local
from ybs.config.private_file import Busy
from ybs.core.errors import ConfigError, ProviderDown, YbsError
from ybs.core.remedies import Remedy
from ybs.core.wording import plural
from ybs.providers.http.client import get, host_of, timed_chunks
from ybs.providers.http.failures import retry_after_seconds
from ybs.providers.http.transport import CutOff, Response, Route, Unreachable

#: Takes the bytes that are there, the bytes that there will be, and what is being done.
Progress: TypeAlias = Callable[[int, int, str], None]

TRIES: Final = 5
PAUSE_SECONDS = 1.0
#: The longest pause that a server gets by asking for one.
MOST_PAUSE_SECONDS: Final = 60.0
#: Left free on the disk.
SPARE_BYTES: Final = 256_000_000
TIMEOUT_SECONDS: Final = 60.0
MOST_REDIRECTS: Final = 5
_BLOCK_BYTES: Final = 1 << 20
_ANSWERS: Final = frozenset((200, 206, 416))
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
#: A server that answers so may answer otherwise in a moment.
_TRANSIENT: Final = frozenset((408, 429, 500, 502, 503, 504))


class Downloaded(Struct, frozen=True):
    """A file that was downloaded. `is_checked`: its checksum was known before."""

    path: Path
    sha256: str
    is_checked: bool


class _Offer(Struct, frozen=True, kw_only=True):
    """What a server says of a file: its size, its checksum, and a mark that changes with its content."""

    total: int = 0
    sha256: str = ""
    mark: str = ""


class _BrokeOff(Exception):
    """The connection ended before the file did, or what came cannot be resumed."""


class _Unavailable(Exception):
    """The server answered that it cannot serve now, and how long to wait."""

    def __init__(self, answer: str, pause_seconds: float) -> None:
        super().__init__(answer)
        self.pause_seconds = pause_seconds


async def download(
    url: str,
    target: Path,
    progress: Progress,
    *,
    known_sha256: str = "",
    route: Route | None = None,
) -> Downloaded:
    """Download a file into its place. Raises ProviderDown where it cannot be had and YbsError where it cannot be kept."""
    part = target.with_name(target.name + ".part")
    try:
        private_file.make_folder(target.parent)
        offer = await _fetch(url, part, progress, route)
        progress(offer.total, offer.total, "checking the hash")
        digest = await asyncio.to_thread(digest_of, part)
        _check(part, url, digest, known_sha256 or offer.sha256)
        part.replace(target)
        _mark_file(part).unlink(missing_ok=True)
    except OSError as error:
        raise YbsError(
            f"{target} cannot be written: {error.strerror or error}. What has been downloaded is kept."
        ) from error
    return Downloaded(target, digest, bool(known_sha256 or offer.sha256))


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file. Blocks for as long as it takes to read it."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def redirected(url: str, location: str) -> str:
    """Return where a redirect leads. Raises ProviderDown for a place that the person did not mean.

    A hub hands files out from other hosts. But none may lead from the internet into the private network, or from TLS
    to plain text.
    """
    old = urlsplit(url)
    try:
        there = urljoin(url, location)
        host = host_of(there)
    except (ValueError, ConfigError):
        there, host = location, ""
    is_lower = (old.scheme, urlsplit(there).scheme if host else "") == ("https", "http")
    if not host or is_lower or (is_local(host) and not is_local(host_of(url))):
        raise ProviderDown(
            f"{old.hostname} redirects the download to {there[:200]!r}, which is not followed."
        )
    return there


async def _fetch(url: str, part: Path, progress: Progress, route: Route | None) -> _Offer:
    """Bring the whole file here, as often as the connection breaks off."""
    breaks: list[str] = []
    answers: list[str] = []
    asked = 0.0
    for number in range(TRIES):
        if number:
            await sleep(max(PAUSE_SECONDS * number, asked))
        try:
            return await _fetch_rest(url, part, progress, route)
        except _Unavailable as error:
            answers.append(str(error))
            asked = min(error.pause_seconds, MOST_PAUSE_SECONDS)
        except (Unreachable, CutOff, _BrokeOff) as error:
            breaks.append(str(error) or type(error).__name__)
            asked = 0.0
    raise _given_up(url, part, answers, breaks)


def _given_up(url: str, part: Path, answers: Sequence[str], breaks: Sequence[str]) -> ProviderDown:
    """Return the error that says what became of every attempt."""
    what = [f"{answer} {plural(count, 'time')}." for answer, count in Counter(answers).items()]
    if breaks:
        times = plural(len(breaks), "time")
        what.append(f"The download from {host_of(url)} broke off {times}: {breaks[-1]}")
    kept = "What has been downloaded is kept; run it again to continue."
    what.append(kept if part.exists() else "Run it again later.")
    return ProviderDown("\n".join(what))


async def _fetch_rest(url: str, part: Path, progress: Progress, route: Route | None) -> _Offer:
    """Take what is missing, or all of it where the server has another file by now."""
    there, mark = _kept(part)
    headers = {"range": f"bytes={there}-", "if-range": mark} if there and mark else {}
    async with _opened(url, headers, route) as (response, offer):
        if response.status == 416:  # there is nothing behind what is here
            if there and offer.total == there:
                return offer
            _discard(part)
            raise _BrokeOff("the server has another file by now")
        done = there if response.status == 206 else 0
        if done and not (offer.total and _continues(response, done, mark)):
            _discard(part)  # it would be wrong the next time, too; a whole file has a length
            raise _BrokeOff("the response does not continue the partial file")
        if not offer.total:
            raise ProviderDown(
                f"{host_of(url)} does not say how large the file is, so it is not downloaded."
            )
        _check_room(part.parent, offer.total - done)
        kept = (mark if done else offer.mark).encode()
        private_file.replace(_mark_file(part), kept, waits=False)
        done = await _write(response, part, done, offer.total, progress)
    if done > offer.total:
        _discard(part)
        raise ProviderDown(
            f"{host_of(url)} sends more than the {offer.total:,} bytes that it announced."
        )
    if done < offer.total:
        raise _BrokeOff(f"{done:,} of {offer.total:,} bytes came")
    return offer


async def _write(response: Response, part: Path, done: int, total: int, progress: Progress) -> int:
    """Append what comes, and return how many bytes there are; more than announced are not taken."""
    with os.fdopen(private_file.open_locked(part), "ab") as file:
        file.truncate(done)
        async with aclosing(timed_chunks(response, TIMEOUT_SECONDS)) as blocks:
            async for block in blocks:
                done += len(block)
                if done > total:
                    break
                file.write(block)
                progress(done, total, "fetching")
    return done


def _kept(part: Path) -> tuple[int, str]:
    """Return how much is here already, and the mark of the file that it is of."""
    try:
        return part.stat().st_size, _mark_file(part).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return 0, ""


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _mark_file(part).unlink(missing_ok=True)


def _continues(response: Response, done: int, mark: str) -> bool:
    """Return whether the response continues the partial file: some servers ignore `If-Range`."""
    headers = response.headers
    starts = headers.get("content-range", "").startswith(f"bytes {done}-")
    # Some hosts weaken the mark of what they send in parts; the hash is compared at the end where it is known.
    return starts and headers.get("etag", mark).removeprefix("W/") == mark


@asynccontextmanager
async def _opened(
    url: str, headers: Mapping[str, str], route: Route | None
) -> AsyncGenerator[tuple[Response, _Offer]]:
    """Send the request, along redirects; the hub that the person named says what the file is, not the host behind it."""
    offer = _Offer()
    for _ in range(MOST_REDIRECTS + 1):
        async with get(url, headers, seconds=TIMEOUT_SECONDS, route=route) as response:
            offer = _merged(offer, response)
            if response.status in _REDIRECTS:
                url = redirected(url, response.headers.get("location", ""))
                continue
            if response.status in _TRANSIENT:
                raise _Unavailable(
                    f"{host_of(url)} answered {response.status}",
                    retry_after_seconds(response.headers) or 0.0,
                )
            if response.status not in _ANSWERS:
                raise ProviderDown(
                    f"{host_of(url)} answered {response.status} to the download of {urlsplit(url).path[:200]}.",
                    remedies=(Remedy("do", "check the name of the model"),)
                    if response.status == 404
                    else (),
                )
            yield response, offer
            return
    raise ProviderDown(f"{host_of(url)} redirects the download more than {MOST_REDIRECTS} times.")


def _merged(offer: _Offer, response: Response) -> _Offer:
    """Add what a response says to what was said before it, which counts."""
    headers = response.headers
    stated = headers.get("x-linked-etag", "").strip('"').lower()
    is_file = response.status in _ANSWERS
    whole = headers.get("content-range", "").rpartition("/")[2]
    length = whole or ("" if response.status == 416 else headers.get("content-length", ""))
    size = headers.get("x-linked-size", "") or (length if is_file else "")
    mark = headers.get("etag", "")
    return _Offer(
        total=offer.total or (int(size) if size.isdecimal() and len(size) < 16 else 0),
        sha256=offer.sha256 or (stated if is_sha256(stated) else ""),
        # Only a strong mark says that the bytes are the same; the last host is the one that is asked to go on.
        mark=mark if is_file and not mark.startswith("W/") else offer.mark,
    )


def is_sha256(text: str) -> bool:
    """Return whether a text could be a SHA-256 in hexadecimal."""
    return len(text) == 64 and set(text.lower()) <= set("0123456789abcdef")


def _check_room(folder: Path, missing: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < missing + SPARE_BYTES:
        raise YbsError(
            f"Not enough room in {folder}: {missing / 1e9:.1f} GB are missing, and {free / 1e9:.1f} GB are free."
        )


def _check(part: Path, url: str, digest: str, wanted: str) -> None:
    with part.open("rb") as file:
        is_model = file.read(4) == b"GGUF"
    if wanted and digest != wanted.lower():
        what = f"has the SHA-256 {digest}, and not {wanted.lower()}"
    elif not is_model:
        what = "is not a GGUF file"
    else:
        return
    _discard(part)
    raise ProviderDown(f"What {host_of(url)} sent {what}. It was not installed.")


def _mark_file(part: Path) -> Path:
    return part.with_suffix(".etag")


@asynccontextmanager
async def alone(folder: Path) -> AsyncGenerator[None]:
    """Keep other runs of ybs from downloading into a folder at the same time. Raises YbsError where one does."""
    try:
        lock = private_file.open_locked(folder / "fetch.lock")
    except Busy as error:
        raise YbsError("Another ybs is downloading a model. Wait until it has finished.") from error
    try:
        yield
    finally:
        os.close(lock)
