"""The engine of turns where its file is damaged."""

from pathlib import Path

import pytest

from ybs.frontends.gateway.store import StoreError, sqlite_engine


@pytest.mark.slow
async def test_a_damaged_file_of_turns_is_kept_and_the_gateway_does_not_start(tmp_path: Path):
    from ybs.frontends.gateway.turns import Engine

    async def run(turn_id: str) -> None:
        del turn_id

    file = tmp_path / "state" / "turns.db"
    file.parent.mkdir(mode=0o700)
    file.write_bytes(b"no database" * 100)
    engine = Engine(sqlite_engine(file), run, at_once=1)
    with pytest.raises(StoreError, match=r"turns\.db cannot be used: file is not a database"):
        await engine.start()
    await engine.close()
    assert file.read_bytes() == b"no database" * 100
