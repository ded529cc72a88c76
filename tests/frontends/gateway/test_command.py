"""`ybs gateway status`, and the file that it reads."""

import asyncio
import json
from pathlib import Path

import pytest

from chat_platform import TOKEN
from hosts import this_host
from trusting import put
from ybs.cli import main
from ybs.config.private_file import Unsafe
from ybs.frontends.gateway.gateway import GatewayFolder
from ybs.frontends.gateway.store import GatewayStore, channel_states, sqlite_engine


@pytest.mark.integration
def test_the_state_of_a_channel_that_failed_is_shown_with_the_reason(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    settings = {
        "gateway": {"channels": {"telegram": {"token": TOKEN}, "slack": {"bot_token": "x"}}}
    }
    put(home, ".config/ybs/config.json", json.dumps(settings), 0o600)
    store = GatewayStore(sqlite_engine(GatewayFolder(this_host()).path / "gateway.db"))
    state = {"name": "telegram", "state": "failed", "error": "The token is wrong.", "at": 1.0}
    asyncio.run(store.change(store.insert(channel_states).values(**state)))
    store.close()
    assert main(["gateway", "status"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "telegram failed The token is wrong." in lines
    assert "slack never started" in lines
    assert "turns waiting 0" in lines


@pytest.mark.integration
def test_the_database_is_for_its_owner_alone(tmp_path: Path):
    file = tmp_path / "gateway" / "gateway.db"
    for _ in range(2):  # the second time it was open to others
        store = GatewayStore(sqlite_engine(file))
        asyncio.run(store.change(store.insert(channel_states).values(name="a", state="x", at=1.0).on_conflict_do_nothing()))  # fmt: skip
        modes = {path.name: path.stat().st_mode & 0o777 for path in file.parent.iterdir()}
        store.close()
        assert modes.keys() >= {"gateway.db", "gateway.db-wal"}
        assert set(modes.values()) == {0o600}
        file.chmod(0o644)
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(Unsafe, match="link"):
        sqlite_engine(tmp_path / "link")


def test_it_does_not_start_where_it_would_write_down_what_is_to_be_incognito(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    settings = {
        "gateway": {"channels": {"telegram": {"token": TOKEN}}},
        "incognito": {"enabled": True},
    }
    put(home, ".config/ybs/config.json", json.dumps(settings), 0o600)
    assert main(["gateway", "start"]) == 3
    assert "incognito.enabled" in capsys.readouterr().err
    assert not (this_host().config_folder / "sessions").exists()
