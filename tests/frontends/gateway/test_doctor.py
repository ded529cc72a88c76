"""What `ybs gateway doctor` finds, with a real PostgreSQL server."""

import asyncio
import os
from collections.abc import AsyncGenerator, Generator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from chat_platform import ChatPlatform
from postgres import Postgres, postgres, programs
from ybs.config.host import Host
from ybs.config.schema import GatewaySettings
from ybs.core.version import VERSION
from ybs.frontends.gateway import doctor, store
from ybs.frontends.gateway.doctor import _Finding, findings
from ybs.frontends.gateway.lease import DatabaseLease
from ybs.frontends.gateway.store import shared_engine
from ybs.session.options import Options

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed"),
]


@pytest.fixture(scope="module")
def server() -> Generator[Postgres]:
    with TemporaryDirectory(prefix="ybs-") as folder:
        os.chmod(folder, 0o711)  # noqa: PTH101 - the database is another user's
        with postgres(Path(folder) / "database") as made:
            yield made


class Patient:
    """A machine whose gateway is looked at."""

    def __init__(self, home: Path, platform: ChatPlatform) -> None:
        host = Host.of({"HOME": str(home)})
        self.options = Options(folder=home, host=host)
        self.channels: dict[str, Mapping[str, Any]] = {
            "telegram": {"token": platform.token, "base_url": f"{platform.url}/bot"}
        }

    async def found(self, database: str = "") -> dict[str, _Finding]:
        settings = GatewaySettings(
            channels={k: dict(v) for k, v in self.channels.items()}, database=database
        )
        return {each.what: each for each in await findings(self.options, settings)}


@pytest.fixture
async def patient(tmp_path: Path) -> AsyncGenerator[Patient]:
    async with ChatPlatform() as platform:
        yield Patient(tmp_path, platform)


async def test_one_machine_is_well(patient: Patient):
    found = await patient.found()
    assert [each.what for each in found.values() if not each.ok] == []
    assert [*found] == ["settings", "database", "gateway", "telegram"]


async def test_who_serves_since_when_and_which_versions_are_connected(
    patient: Patient, server: Postgres, monkeypatch: pytest.MonkeyPatch
):
    found = await patient.found(server.url)
    assert [each.what for each in found.values() if not each.ok] == []
    assert "does not run" in found["lease"].detail
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(store, "VERSION", "9.9")
        elsewhere.setattr("socket.gethostname", lambda: "elsewhere\x1b[31m")
        other = shared_engine(server.url)
    lease = DatabaseLease(other, print)
    await asyncio.to_thread(lease.take)
    await lease.lead()
    try:
        found = await patient.found(server.url)
    finally:
        lease.close()
    assert found["lease"].detail.startswith("elsewhere")
    assert "leads since 20" in found["lease"].detail
    assert "\x1b" not in found["lease"].detail
    assert not found["versions"].ok
    assert f": 9.9; this is {VERSION}" in found["versions"].detail


async def test_a_clock_that_differs_from_the_databases_is_found(
    patient: Patient, server: Postgres, monkeypatch: pytest.MonkeyPatch
):
    real = doctor.time.time
    monkeypatch.setattr(doctor.time, "time", lambda: real() - 5)
    clock = (await patient.found(server.url))["clock"]
    assert not clock.ok
    assert "5.0 s behind" in clock.detail


async def test_a_database_that_is_gone_hides_nothing_else(patient: Patient, server: Postgres):
    found = await patient.found(server.url.replace(str(server.port), "1"))
    assert not found["database"].ok
    assert "cannot be used" in found["database"].detail
    assert found["telegram"].ok


async def test_rights_that_are_lacking_or_that_others_have_are_found(
    patient: Patient, server: Postgres
):
    await patient.found(server.url)
    server.ask("CREATE ROLE other LOGIN; GRANT INSERT ON people TO other")
    assert "may be changed by: other" in (await patient.found(server.url))["rights"].detail
    server.ask("REVOKE INSERT ON people FROM other")
    assert (await patient.found(server.url))["rights"].ok
    theirs = server.url.replace("ybs@", "other@")
    assert "permission denied" in (await patient.found(theirs))["database"].detail
    server.ask("GRANT CREATE ON SCHEMA public TO other")
    found = await patient.found(theirs)
    assert not found["database"].ok  # the tables are somebody else's


async def test_a_platform_that_refuses_the_token_is_found(patient: Patient):
    patient.channels["telegram"] = {**patient.channels["telegram"], "token": "1:wrong"}
    found = await patient.found()
    assert not found["telegram"].ok
    patient.channels["telegram"] = {"token": ""}
    assert not (await patient.found())["channels"].ok
