"""The wiring: what a session begins with, and what keeps it from beginning."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hosts import this_host
from ybs.agent.model_choice import NothingConfigured
from ybs.core.errors import ConfigError
from ybs.core.events import Noticed
from ybs.core.remedies import Remedy
from ybs.providers import remote
from ybs.providers.local import models
from ybs.security import legible
from ybs.security.marks import marked
from ybs.session.options import Options
from ybs.session.session import Session
from ybs.testing import OllamaServer, OpenAIServer, RecordedEvents


def test_nothing_configured_and_no_starter_model_is_an_error_that_says_what_to_do(project: Path):
    with pytest.raises(NothingConfigured, match="No model is configured") as caught:
        Session(Options(host=this_host(), folder=project))
    assert caught.value.remedies == (Remedy("set_up"), Remedy("choose_provider"))


def test_with_nothing_configured_the_installed_starter_model_is_used(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(models, "STARTER_BYTES", 4)
    models.models_folder(this_host()).mkdir(parents=True)
    models.starter_path(this_host()).write_bytes(b"GGUF")
    session = Session(Options(host=this_host(), folder=project))
    events = RecordedEvents()
    session.subscribe(events)
    session._runner._start("")
    assert session.status().provider == "llamacpp"
    assert [e.text for e in events.of(Noticed)] == [
        "No model is configured, so ybs uses the starter model on this machine, qwen2.5-coder-1.5b."
    ]


async def test_models_that_run_here_get_the_short_prompt_and_others_the_long_one(project: Path):
    async with OllamaServer([]) as ollama, OpenAIServer([]) as openai:
        options = {"provider": "ollama", "endpoint": ollama.url, "model": "m"}
        async with Session(Options.of(project, options)) as small:
            await small.prepare()
        async with Session(
            Options.of(project, {"provider": "openai", "endpoint": openai.url, "model": "m"})
        ) as large:
            await large.prepare()
    assert len(small.conversation.system) < len(large.conversation.system) / 2
    assert len(small.agent.toolbox.specs()) == 7
    assert len(large.agent.toolbox.specs()) == 11


async def test_a_system_prompt_of_ones_own_replaces_the_built_in_one(project: Path):
    (project / "prompt.md").write_text("Be brief.\n")
    options = {"endpoint": "http://127.0.0.1:1/v1", "model": "m"}
    session = Session(Options.of(project, {**options, "system_prompt_file": project / "prompt.md"}))
    await session.close()
    assert session.conversation.system == "Be brief."


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_system_prompt_that_cannot_be_read_is_an_error(project: Path, content: bytes | None):
    file = project / "prompt.md"
    if content is not None:
        file.write_bytes(content)
    options = {"endpoint": "http://127.0.0.1:1/v1", "model": "m", "system_prompt_file": file}
    with pytest.raises(ConfigError, match=r"The system prompt .*prompt\.md"):
        Session(Options.of(project, options))


async def test_added_folders_may_be_worked_in(project: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    options = {"endpoint": "http://127.0.0.1:1/v1", "model": "m"}
    async with Session(Options.of(project, {**options, "add_dirs": (other,)})) as session:
        assert session.environment.roots.resolve(str(other / "a.txt")) == other / "a.txt"


def test_a_rule_that_is_none_is_an_error(project: Path):
    options = {"endpoint": "http://127.0.0.1:1/v1", "model": "m", "allow": ("run_shell(",)}
    with pytest.raises(ConfigError):
        Session(Options.of(project, options))


@pytest.mark.integration
async def test_a_message_is_looked_at_and_written_once_in_a_session_of_several_turns(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    looked_at: list[str] = []
    written: list[Any] = []
    monkeypatch.setattr(legible, "marked", lambda text: looked_at.append(text) or marked(text))
    monkeypatch.setattr(
        remote, "encode_json", lambda data: written.append(data) or msgspec.json.encode(data)
    )
    async with OpenAIServer(["ok"] * 5) as server:
        options = {"provider": "openai", "endpoint": server.url, "model": "m"}
        async with Session(Options.of(project, options)) as session:
            for number in range(5):
                await session.send(f"step {number}")
    words = [f"step {number}" for number in range(5)]
    assert [text for text in looked_at if text in words] == words
    assert [said["content"] for said in written if said["role"] == "user"] == words
    assert len(written) == len(server.requests[-1].body["messages"]) == 10
