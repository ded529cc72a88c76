"""`ybs gateway doctor`: what of a gateway does not work, and what its database says of the others that share it."""

import asyncio
import os
import re
import time
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection, select, text

from ybs.config import private_file
from ybs.config.private_file import Busy
from ybs.config.schema import Clone
from ybs.config.schema import GatewaySettings as Settings
from ybs.core.errors import ConfigError, YbsError
from ybs.core.version import VERSION
from ybs.frontends.gateway.clones import clone_of
from ybs.frontends.gateway.gateway import GatewayFolder, make_channels
from ybs.frontends.gateway.lease import holder
from ybs.frontends.gateway.store import GatewayStore, channel_states, inbox
from ybs.frontends.gateway.unattended import unattended
from ybs.security.unicode import printable
from ybs.session.options import Options
from ybs.session.settings import load_settings

RUNS, RUNS_NOT = "runs", "does not run: ybs gateway start"
#: Clocks that differ by more would mix up what came first, and count spending on the wrong day.
_MOST_SECONDS: Final = 2.0
_PROBE_SECONDS: Final = 15
#: The oldest PostgreSQL that ybs was tried with.
_OLDEST: Final = 150_000
#: How a gateway names its connections (`store.py`), and since when the one with the lease has it (`lease.py`).
_NAME: Final = re.compile(r"ybs (\S+) (\S+):(\d+)(?: (\d+))?")
_CONNECTIONS: Final = text(
    "SELECT application_name AS name, host(client_addr) AS address, pid FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE 'ybs %' ORDER BY 1"
)
#: Who besides the owner may change the tables, which say who may speak.
_OTHERS: Final = text(
    "SELECT DISTINCT CASE acl.grantee WHEN 0 THEN 'everybody' ELSE acl.grantee::regrole::text END"
    " FROM pg_class CROSS JOIN aclexplode(relacl) AS acl WHERE relnamespace = to_regnamespace(current_schema())"
    " AND relname IN ('people', 'inbox', 'ledger', 'chats', 'lease', 'transcripts')"
    " AND acl.grantee <> relowner AND privilege_type <> 'SELECT'"
)


class _Finding(Struct, frozen=True):
    """What was looked at, whether it is well, and what there is to say of it."""

    what: str
    ok: bool
    detail: str


async def findings(options: Options, settings: Settings) -> list[_Finding]:
    """Look at the settings, the database, those who share it, and the channels. Raises OSError."""
    names = ", ".join(settings.channels)
    found = [
        _Finding("settings", bool(names), names or "no chat platform is set up: gateway.channels")
    ]
    try:
        load_settings(unattended(options, options.host.home))
    except ConfigError as error:
        found.append(_Finding("sessions", ok=False, detail=str(error)))
    for name, folder in settings.projects.items():
        is_clone = isinstance(folder, Clone)
        path = (
            clone_of(name, options.host)
            if is_clone
            else options.host.expand(folder, options.host.home)
        )
        found.append(_Finding(f"project {name}", is_clone or path.is_dir(), str(path)))
    states: dict[str, tuple[str, str]] = {}
    try:
        store = GatewayFolder(options.host).store(settings)
    except YbsError as error:
        found.append(_Finding("database", ok=False, detail=str(error)))
    else:
        try:
            found += await _of_database(options, settings, store)
            known = await store.rows(select(channel_states))
            states = {row.name: (row.state, printable(row.error)) for row in known}
        except YbsError as error:
            found.append(_Finding("database", ok=False, detail=str(error)))
        finally:
            store.close()
    return [*found, *await _of_channels(options, settings, states)]


async def _of_database(options: Options, settings: Settings, store: GatewayStore) -> list[_Finding]:
    if settings.database:
        return await store.do(_of_shared)
    await store.rows(select(inbox.c.id).limit(1))
    runs = await is_running(options, settings, store)
    return [
        _Finding("database", ok=True, detail=str(GatewayFolder(options.host).path)),
        _Finding("gateway", ok=True, detail=RUNS if runs else RUNS_NOT),
    ]


def _of_shared(connection: Connection) -> list[_Finding]:
    """Look at a database that several gateways share."""
    number = connection.scalar(text("SELECT current_setting('server_version_num')::int")) or 0
    asked = time.time()
    there = connection.scalar(text("SELECT extract(epoch FROM clock_timestamp())::float8"))
    apart = float(there or 0.0) - (asked + time.time()) / 2
    others = [*connection.scalars(_OTHERS)]
    where = connection.engine.url.render_as_string()
    needed = f"; {_OLDEST // 10_000} or newer is needed" if number < _OLDEST else ""
    behind = "behind" if apart > 0 else "ahead of"
    clock = f"this machine's is {abs(apart):.1f} s {behind} the database's"
    rights = "tables can be made and changed; nobody else may change them"
    if others:
        rights = f"the tables, which say who may speak, may be changed by: {', '.join(others)}"
    return [
        _Finding("database", not needed, f"{where}, PostgreSQL {number / 10_000:.4g}{needed}"),
        _Finding("rights", not others, rights),
        _Finding("clock", abs(apart) <= _MOST_SECONDS, clock),
        *_of_gateways(connection),
    ]


def _of_gateways(connection: Connection) -> list[_Finding]:
    """Say which gateways are connected, of which versions, and which of them leads since when."""
    leader = holder(connection)
    own = connection.scalar(text("SELECT current_setting('application_name')"))
    serves = RUNS_NOT if leader is None else "a gateway leads, whose connection is not named"
    versions: dict[str, str] = {}
    for name, address, pid in connection.execute(_CONNECTIONS):
        parts = _NAME.fullmatch(name)
        if parts is None or name == own:
            continue
        who = f"{parts[2]} ({address}), process {parts[3]}"
        versions[who] = parts[1]
        if pid == leader:
            at = datetime.fromtimestamp(int(parts[4] or 0), UTC)
            serves = f"{who} leads since {at:%Y-%m-%d %H:%M:%S} UTC"
    listed = "; ".join(f"{who}: {version}" for who, version in versions.items())
    is_one = {*versions.values()} <= {VERSION}
    told = f"{listed or 'none is connected'}{'' if is_one else f'; this is {VERSION}'}"
    return [
        _Finding("lease", ok=True, detail=printable(serves)),
        _Finding("versions", is_one, printable(told)),
    ]


async def _of_channels(
    options: Options, settings: Settings, states: dict[str, tuple[str, str]]
) -> list[_Finding]:
    try:
        channels = make_channels(settings, options.host)
    except ConfigError as error:
        return [_Finding("channels", ok=False, detail=str(error))]
    found: list[_Finding] = []
    for name, channel in channels.items():
        state, error = states.get(name, ("never started", ""))
        told = f"{state}, {error}" if error else state
        try:
            await asyncio.wait_for(channel.probe(), _PROBE_SECONDS)
            words = f"the platform answers and knows the token ({told})"
            found.append(_Finding(name, state not in ("rival", "refused"), words))
        except (YbsError, TimeoutError) as failed:
            words = str(failed) or "the platform does not answer"
            found.append(_Finding(name, ok=False, detail=words))
        await channel.close()
    return found


async def is_running(options: Options, settings: Settings, store: GatewayStore) -> bool:
    """Return whether a gateway serves: one of this folder, or any that shares the database."""
    if settings.database:
        return await store.do(holder) is not None
    try:
        os.close(private_file.open_locked(GatewayFolder(options.host).lock))
    except Busy:
        return True
    return False
