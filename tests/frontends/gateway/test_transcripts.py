"""Sessions are copied between files and a real PostgreSQL database, and are the same in both."""

import asyncio
import os
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from postgres import Postgres, postgres, programs
from ybs.config.private_file import PrivateLog
from ybs.core.errors import YbsError
from ybs.core.events import AssistantSaid, UserSaid
from ybs.frontends.gateway.lease import DatabaseLease, holder
from ybs.frontends.gateway.store import GatewayStore, shared_engine
from ybs.frontends.gateway.transcripts import CopiedTranscript, Files, Tables, copied
from ybs.transcripts.line import encoded

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed"),
]
EVENTS = (UserSaid(content="Grüße \x00 \ud800"), AssistantSaid(content="Hello"))
LINES = b"".join(
    encoded(event, number=number, parent=number - 1, at=datetime.now(UTC))
    for number, event in enumerate(EVENTS, 1)
)
FIRST = LINES[: LINES.index(b"\n") + 1]


@pytest.fixture(scope="module")
def server() -> Generator[Postgres]:
    with TemporaryDirectory(prefix="ybs-") as folder:
        os.chmod(folder, 0o711)  # noqa: PTH101 - the database is another user's
        with postgres(Path(folder) / "database") as made:
            yield made


@pytest.fixture
def store(server: Postgres) -> Generator[GatewayStore]:
    made = GatewayStore(shared_engine(server.url))
    server.ask("DELETE FROM transcripts")
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "sessions"
    made.mkdir(0o700)
    return made


async def test_a_session_is_byte_for_byte_the_same_there_and_back(
    store: GatewayStore, folder: Path
):
    (folder / "one.jsonl").write_bytes(LINES)
    tables, back = Tables(store), folder.parent / "back"
    assert await copied(Files(folder), tables, ()) == [
        CopiedTranscript("one", ok=True, note="copied")
    ]
    assert await copied(tables, Files(back), ()) == [
        CopiedTranscript("one", ok=True, note="copied")
    ]
    assert (back / "one.jsonl").read_bytes() == await tables.read("one") == LINES
    (again,) = await copied(Files(back), tables, ["one"])
    assert again == CopiedTranscript("one", ok=True, note="was there already")


async def test_lines_that_are_lacking_are_added_and_none_is_taken_away(
    store: GatewayStore, folder: Path
):
    tables, files = Tables(store), Files(folder)
    assert await tables.add("one", FIRST)
    (folder / "one.jsonl").write_bytes(LINES)
    await copied(files, tables, ())
    assert await tables.read("one") == LINES
    (folder / "one.jsonl").write_bytes(FIRST)
    assert [each.note for each in await copied(files, tables, ())] == ["was there already"]
    await copied(tables, files, ())
    assert (folder / "one.jsonl").read_bytes() == await tables.read("one") == LINES


async def test_another_session_of_the_same_name_is_left_as_it_is(store: GatewayStore, folder: Path):
    other = LINES.replace(b"Hello", b"Other")
    (folder / "one.jsonl").write_bytes(other)
    (folder / "two.jsonl").write_bytes(LINES)
    tables, files = Tables(store), Files(folder)
    await tables.add("one", LINES)
    for way in ((files, tables), (tables, files)):
        done = {each.session: each for each in await copied(*way, ())}
        assert not done["one"].ok
        assert "Another session is called one" in done["one"].note
        assert done["two"].ok
    assert (folder / "one.jsonl").read_bytes() == other
    assert await tables.read("one") == LINES


async def test_damage_goes_along_and_is_told_and_what_is_no_session_does_not(
    store: GatewayStore, folder: Path
):
    damaged = FIRST + b'{"torn": \n' + LINES[len(FIRST) :]
    (folder / "damaged.jsonl").write_bytes(damaged + b'{"half')
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "junk.jsonl").write_bytes(b"\x00\xff\nwords\n")
    tables = Tables(store)
    done = {each.session: each for each in await copied(Files(folder), tables, ())}
    assert "1 line of it cannot be read" in done["damaged"].note
    assert await tables.read("damaged") == damaged
    assert [name for name, each in done.items() if not each.ok] == ["empty", "junk"]
    assert await tables.names() == ["damaged"]


async def test_a_file_that_is_being_written_is_neither_read_nor_written(
    store: GatewayStore, folder: Path
):
    tables, files, path = Tables(store), Files(folder), folder / "one.jsonl"
    await tables.add("one", LINES)
    with PrivateLog(path) as log:
        log.append(FIRST)
        for way in ((files, tables), (tables, files)):
            (done,) = await copied(*way, ["one"])
            assert "in use by another ybs" in done.note
    assert path.read_bytes() == FIRST


async def test_nothing_is_put_into_a_database_that_a_gateway_serves_from(
    store: GatewayStore, server: Postgres, folder: Path
):
    (folder / "one.jsonl").write_bytes(LINES)
    lease = DatabaseLease(shared_engine(server.url), print)
    lease.take()
    await lease.lead()
    try:
        (done,) = await copied(Files(folder), Tables(store), ())
    finally:
        lease.close()
    assert not done.ok
    assert "A gateway serves" in done.note
    assert await Tables(store).names() == []
    async with asyncio.timeout(20):
        while await store.do(holder) is not None:  # noqa: ASYNC110 - the server lets go by itself
            await asyncio.sleep(0.02)
    assert (await copied(Files(folder), Tables(store), ()))[0].ok


async def test_a_name_does_not_lead_out_of_the_folder(store: GatewayStore, folder: Path):
    tables = Tables(store)
    await tables.add("../out", LINES)
    (done,) = await copied(tables, Files(folder), ())
    assert not done.ok
    assert not (folder.parent / "out.jsonl").exists()
    with pytest.raises(YbsError, match="cannot be the name"):
        await Files(folder).read("../out")
