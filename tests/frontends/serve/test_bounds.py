"""What bounds a session of the server, kept over a kill."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from hosts import this_host
from ybs.frontends.serve.bounds import bounded, bounds_of
from ybs.session.options import Options
from ybs.session.session import Session
from ybs.session.settings import load_settings
from ybs.testing import ScriptedModel


def options_of(project: Path, **overrides: Any) -> Options:
    given = {"host": this_host(), "model": ScriptedModel([]), "overrides": overrides}
    return Options.of(project, given)


@pytest.fixture
async def kept(project: Path) -> dict[str, Any]:
    """Return the bounds of a session that variables had made strict."""
    strict = {"safety.mode": "plan", "safety.deny": ["run_shell"], "agent.max_cost_usd": 1.0}
    async with Session(options_of(project, **strict, **{"safety.allow": ["git"]})) as session:
        return bounds_of(session)


@pytest.fixture
def loose(project: Path) -> Options:
    """Return options of somebody whose settings allow more."""
    options = options_of(project)
    file = options.host.config_folder / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    safety = {"mode": "auto", "allow": ["git", "run_shell(make *)"], "ask": ["git"]}
    file.write_bytes(json.encode({"safety": safety, "agent": {"max_cost_usd": 5.0}}))
    return options


async def test_a_session_goes_on_with_nothing_looser(loose: Options, kept: dict[str, Any]):
    assert load_settings(loose).config.safety.mode == "auto"
    config = load_settings(bounded(loose, kept)).config
    assert (config.safety.mode, config.safety.deny) == ("plan", ("run_shell",))
    assert (config.safety.allow, config.safety.ask) == (("git",), ("git",))
    assert config.agent.max_cost_usd == 1.0


async def test_what_an_option_says_stays(project: Path, kept: dict[str, Any]):
    options = options_of(project, **{"safety.mode": "auto"})
    config = load_settings(bounded(options, kept)).config
    assert (config.safety.mode, config.safety.deny) == ("auto", ("run_shell",))
