"""The board: what was spent, what runs, what the router believes, and how things stand, as data that the page draws."""

import asyncio
import os
import resource
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs import __version__
from ybs.commands.figures import amount
from ybs.config import private_file
from ybs.config.layers import Loaded
from ybs.core.decoding import decodable
from ybs.core.errors import YbsError
from ybs.core.messages import Usage
from ybs.frontends.subcommands.sessions import Sessions
from ybs.frontends.web.drawing import Record
from ybs.security.unicode import printable
from ybs.transcripts.reading import Saved
from ybs.transcripts.store import SessionStore

#: So many of the newest transcripts are read, of so many bytes in all.
MOST_FILES, MOST_BYTES = 400, 400_000_000
_LONGEST_LINE: Final = 20_000_000


class _Use(Struct, frozen=True):
    """What a model used for a project on one day: tokens in, of these cached, tokens out, US dollars, answers; `unpriced` have no known price."""

    day: str
    project: str
    model: str
    input: int = 0
    cached: int = 0
    output: int = 0
    usd: float = 0.0
    answers: int = 0
    unpriced: int = 0


class _Said(Struct, frozen=True):
    """What the board reads of a line."""

    type: str = ""
    timestamp: str = ""
    model: str = ""
    folder: str = ""
    usage: Usage = Usage()


class Ledger:
    """What the saved sessions have used, by their transcripts; each is read again when it has changed."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[tuple[float, int], list[_Use]]] = {}
        self._reading: asyncio.Task[None] | None = None

    def cost_of(self, saved: Saved) -> float | None:
        """Return what a session has cost; None where nothing of it is priced, or it was not read yet."""
        _, uses = self._read.get(saved.name, ((0.0, 0), []))
        priced = [use.usd for use in uses if use.answers > use.unpriced]
        return sum(priced) if priced else None

    def read_soon(self, store: SessionStore) -> None:
        """Begin to read what has changed, in a thread."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(asyncio.to_thread(self.read, store))

    def read(self, store: SessionStore) -> None:
        """Read what has changed. It blocks."""
        left = MOST_BYTES
        for name in store.names()[:MOST_FILES]:
            path = store.folder / f"{name}.jsonl"
            try:
                facts = path.stat()
                left -= facts.st_size
                seen = (facts.st_mtime, facts.st_size)
                if left > 0 and self._read.get(name, ((0.0, 0), []))[0] != seen:
                    self._read[name] = seen, _uses_in(path)
            except (OSError, YbsError):
                continue

    def uses(self) -> list[_Use]:
        """Return all that was used, a row for each day, project and model."""
        return _summed(use for _, uses in tuple(self._read.values()) for use in uses)


def _uses_in(path: Path) -> list[_Use]:
    decode = msgspec.json.Decoder(decodable(_Said)).decode
    uses, project = list[_Use](), ""
    file = private_file.open_to_read(path)
    if file is None:
        return []
    with file:
        while line := file.readline(_LONGEST_LINE):
            if b'"type":"assistant"' not in line and b'"type":"session_start"' not in line:
                continue
            try:
                said = decode(line)
            except msgspec.DecodeError:
                continue
            if said.type == "session_start":
                project = said.folder or project
            elif said.type == "assistant" and said.usage.is_used:
                uses.append(_use(said, project))
    return _summed(uses)


def _use(said: _Said, project: str) -> _Use:
    usage = said.usage
    return _Use(
        day=said.timestamp[:10],
        project=project,
        model=said.model,
        input=usage.input_tokens,
        cached=usage.cached_tokens,
        output=usage.output_tokens,
        usd=usage.cost_usd or 0.0,
        answers=1,
        unpriced=usage.cost_usd is None,
    )


def _summed(uses: Iterable[_Use]) -> list[_Use]:
    """Return a row for each day, project and model, in this order."""
    rows: dict[tuple[str, str, str], _Use] = {}
    for use in uses:
        key = (use.day, use.project, use.model)
        known = rows.get(key, _Use(*key))
        rows[key] = replace(use, **{n: getattr(known, n) + getattr(use, n) for n in _COUNTS})
    return [rows[key] for key in sorted(rows)]


_COUNTS: Final = ("input", "cached", "output", "usd", "answers", "unpriced")


#: A name, its value, and whether that is as it should be.
Fact: TypeAlias = tuple[str, str, bool]


async def board_of(
    saved: Sessions, ledger: Ledger, opened: Sequence[Record], facts: Sequence[Fact]
) -> Record:
    """Return the figures of the board; `opened` are the open sessions, and `facts` is what is known of the pages."""
    await asyncio.to_thread(ledger.read, saved.store)
    loaded = saved.loaded
    uses = [
        {
            **msgspec.to_builtins(each),
            "project": printable(loaded.host.short(each.project)) or "(unknown)",
            "model": printable(each.model) or "(unknown)",
        }
        for each in ledger.uses()
    ]
    return {
        "uses": uses,
        "running": [each for each in opened if each["busy"] or each["question"]],
        "router": await _router(loaded),
        "health": [*_process(), *facts, *_warnings(loaded.warnings)],
    }


async def _router(loaded: Loaded) -> Record:
    """Return what the router believes of each model, and its last choice; `problem` is why nothing is known."""
    from ybs.commands.router import lines_of
    from ybs.router.overview import overview
    from ybs.router.roster import roster_of
    from ybs.router.routing import Routing

    roster = roster_of(loaded)
    try:
        routing = Routing(loaded.host, loaded.config, roster, profile=loaded.profile)
        try:
            found = await overview(routing)
        finally:
            await routing.aclose()
    except (YbsError, OSError) as error:
        return {"problem": printable(str(error))}
    arms: dict[str, Any] = defaultdict(list)
    for arm in found.arms:
        for chance in arm.chances:
            row = [printable(arm.arm), chance.mean, chance.low, chance.high, chance.results]
            arms[chance.kind].append(row)
    last = [printable(line) for line in lines_of(found.last)] if found.last else []
    return {
        "policy": found.policy,
        "decisions": found.decisions,
        "settled": found.settled,
        "arms": arms,
        "last": last,
    }


def _process() -> list[Fact]:
    factor = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * factor
    load = os.getloadavg()[0]
    return [
        ("ybs", __version__, True),
        ("Python", sys.version.split()[0], True),
        ("memory at most", f"{amount(peak)}B", peak < 2_000_000_000),
        ("load of the machine", f"{load:.1f}", load < 4 * (os.cpu_count() or 1)),
    ]


def _warnings(warnings: Sequence[str]) -> list[Fact]:
    return [("settings", printable(each), False) for each in warnings]
