"""The wiring: what a session begins with, and what keeps it from beginning."""

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hosts import this_host, trust
from scripted import OllamaServer, OpenAIServer
from scripted.openai import OpenAIWire
from trusting import give_trust, put
from ybs.agent.model_choice import NothingConfigured
from ybs.config.host import Host
from ybs.core.errors import ConfigError
from ybs.core.events import Noticed
from ybs.core.remedies import Remedy
from ybs.providers import remote
from ybs.providers.local import models
from ybs.security import visible_text
from ybs.security.marks import marked
from ybs.session.options import Options
from ybs.session.session import Session
from ybs.session.settings import ready_settings
from ybs.testing import RecordedEvents, call


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
    session.parts.runner._start("", goes_on=False)
    assert session.status().provider == "llamacpp"
    (noticed,) = events.of(Noticed)
    assert noticed.text == (
        "No model is configured, so ybs uses the starter model on this machine, qwen2.5-coder-1.5b."
    )
    assert noticed.remedies == (Remedy("set_up"),)


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


class LlamaWire(OpenAIWire):
    """llama.cpp's own server: any name does for the one model that it has, and `/props` names the file."""

    file = "/models/smollm3-3b-q4_k_m.gguf"

    def facts(self, path: str, models: Sequence[str]) -> Mapping[str, Any] | None:
        """Answer `/props` as well."""
        if path == "/props":
            return {"model_path": self.file, "default_generation_settings": {"n_ctx": 32_768}}
        return super().facts(path, models)


class LlamaServer(OpenAIServer):
    wire = LlamaWire()


@pytest.mark.integration
@pytest.mark.parametrize("has_time", [True, False], ids=["chat", "script"])
async def test_a_small_model_behind_a_name_that_says_nothing_gets_the_short_prompt(
    has_time: bool, project: Path
):
    async with LlamaServer(["Done.", "Done."]) as server:
        options = Options.of(project, {"endpoint": server.url, "model": "local"})
        async with Session(options) as session:
            if has_time:  # the first words are typed while the server is still asked
                await asyncio.gather(session.prepare(), session.send("go"))
            else:
                await session.send("go")
            await session.send("go on")
    assert [len(asked.body["tools"]) for asked in server.requests] == [7, 7]
    assert [asked.body["temperature"] for asked in server.requests] == [0, 0]
    assert len(session.conversation.system) < 2_500
    asked = [request.path for request in server.other_requests]
    assert asked == ["/props"] * (2 if has_time else 1)


class AliasWire(OpenAIWire):
    """vLLM's server with `--served-model-name`: its list says which model an alias stands for."""

    def facts(self, path: str, models: Sequence[str]) -> Mapping[str, Any] | None:
        """Answer the list of models with the alias."""
        if path.endswith("/models"):
            return {
                "data": [
                    {
                        "id": "qwen2.5-coder",
                        "root": "HuggingFaceTB/SmolLM3-3B",
                        "max_model_len": 32_768,
                    }
                ]
            }
        return super().facts(path, models)


class AliasServer(OpenAIServer):
    wire = AliasWire()


@pytest.mark.parametrize("kind", [LlamaServer, AliasServer])
async def test_a_small_model_behind_a_known_name_without_a_size_gets_the_short_prompt(
    kind: type[OpenAIServer], project: Path
):
    async with kind(["Done."]) as server:
        options = Options.of(project, {"endpoint": server.url, "model": "qwen2.5-coder"})
        async with Session(options) as session:
            await session.send("go")
            offered = [spec.name for spec in session.agent.toolbox.specs()]
    assert server.requests[0].body["temperature"] == 0
    assert len(offered) == 7
    assert session.agent.model.window == 32_768


def test_a_model_alone_is_at_the_provider_whose_key_is_the_only_one(project: Path):
    key = "k" * 20
    chosen: list[str | None] = []
    for variables in (["MISTRAL_API_KEY"], ["MISTRAL_API_KEY", "OPENAI_API_KEY"], []):
        host = Host.of({"HOME": str(project), **dict.fromkeys(variables, key)})
        options = Options.of(project, {"host": host, "model": "codestral-latest"})
        chosen.append(ready_settings(options).config.llm.provider)
    assert chosen == ["mistral", None, None]


def test_a_model_that_a_trusted_projects_file_names_chooses_no_provider(project: Path):
    (project / ".ybs.json").write_text('{"llm": {"model": "codestral-latest"}}')
    host = Host.of({"HOME": str(project / "home"), "MISTRAL_API_KEY": "k" * 20})
    assert trust(host, "give", project) == 0
    llm = ready_settings(Options.of(project, {"host": host})).config.llm
    assert (llm.model, llm.provider) == ("codestral-latest", None)


async def test_a_model_whose_file_is_known_to_write_calls_as_text_is_asked_for_text(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(LlamaWire, "file", "/models/Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf")
    async with LlamaServer(["Done."]) as server:
        options = Options.of(project, {"endpoint": server.url, "model": "local"})
        async with Session(options) as session:
            await session.send("go")
    body = server.requests[0].body
    assert "tools" not in body
    assert "- read_file(path" in body["messages"][0]["content"]


@pytest.mark.parametrize("file", ["smollm2-360m-instruct.gguf", "smollm3-3b.gguf"])
async def test_one_of_the_smallest_models_behind_llama_cpp_is_told_what_it_may_write_next(
    file: str, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(LlamaWire, "file", f"/models/{file}")
    is_smallest = "360m" in file
    for name in ("local", file):  # also where the name itself tells the size
        async with LlamaServer(["Done.", "Done."]) as server:
            options = Options.of(project, {"endpoint": server.url, "model": name})
            async with Session(options) as session:
                await session.send("Run the tests.")
        body = server.requests[0].body
        assert ("grammar" in body) is is_smallest
        assert ("tools" in body) is not is_smallest
        asked = [request.path for request in server.other_requests]
        assert asked == ["/props"] * (is_smallest or name == "local")


async def test_a_large_model_behind_such_a_name_and_a_server_that_says_nothing_get_the_long_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    for file in ("/models/llama-3.3-70b.gguf", "/models/unnamed.gguf"):
        monkeypatch.setattr(LlamaWire, "file", file)
        async with LlamaServer(["Done.", "Done."]) as server:
            options = Options.of(project, {"endpoint": server.url, "model": "local"})
            async with Session(options) as session:
                await session.send("go")
                await session.send("go on")
        assert [len(asked.body["tools"]) for asked in server.requests] == [11, 11]
        assert "temperature" not in server.requests[0].body
        assert [request.path for request in server.other_requests] == ["/props"]


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


async def test_a_missing_system_prompt_of_the_settings_is_named_with_its_place(
    home: Path, project: Path
):
    file = home / ".config/ybs/config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"context":\n{"system_prompt_file": "/none"}}')
    options = {"endpoint": "http://127.0.0.1:1/v1", "model": "m"}
    with pytest.raises(ConfigError, match=r"config\.json:2: context\.system_prompt_file /none: "):
        Session(Options.of(project, options))
    (project / "prompt.md").write_text("Be brief.")
    given = {**options, "system_prompt_file": project / "prompt.md"}
    session = Session(Options.of(project, given))  # an option that names another one counts
    await session.close()
    assert session.conversation.system == "Be brief."


@pytest.mark.parametrize("place", ["prompt.md", "prompts/a.md"])
async def test_a_system_prompt_that_a_link_of_the_project_leads_to_is_not_read(
    project: Path, home: Path, place: str
):
    (home / "notes").mkdir()
    (home / "notes/a.md").write_text("my own notes")
    (project / "prompt.md").symlink_to(home / "notes/a.md")
    (project / "prompts").symlink_to(home / "notes")
    options = {"endpoint": "http://127.0.0.1:1/v1", "model": "m"}
    with pytest.raises(ConfigError, match="a link of the project leads out of it"):
        Session(Options.of(project, {**options, "system_prompt_file": project / place}))
    mine = home / "mine.md"
    mine.symlink_to(home / "notes/a.md")
    session = Session(Options.of(project, {**options, "system_prompt_file": mine}))
    await session.close()
    assert session.conversation.system == "my own notes"


@pytest.mark.parametrize("name", ["p.md", "./p.md", "~p.md", "x/../p.md"])
async def test_a_system_prompt_of_own_settings_that_the_project_has_waits_for_trust(
    project: Path, home: Path, name: str
):
    named = {"context": {"system_prompt_file": name}}
    put(home, ".config/ybs/config.json", json.dumps(named), 0o600)
    (project / "x").mkdir()
    (project / name).write_text("Obey the repository.")
    options = {"endpoint": "http://127.0.0.1:1/v1", "model": "m"}
    with pytest.raises(ConfigError, match=rf"^{re.escape(name)} is a system prompt of this project, which is not trusted"):  # fmt: skip
        Session(Options.of(project, options))
    trust(this_host(), "give", project)
    session = Session(Options.of(project, options))
    await session.close()
    assert session.conversation.system == "Obey the repository."


@pytest.mark.parametrize("kind", ["pipe", "large"])
def test_a_system_prompt_that_is_a_pipe_or_endless_is_an_error(project: Path, kind: str):
    file = project / "prompt.md"
    if kind == "pipe":
        os.mkfifo(file)
    else:
        with file.open("wb") as made:
            made.truncate(1 << 34)
    options = {"endpoint": "http://127.0.0.1:1/v1", "model": "m", "system_prompt_file": file}
    with pytest.raises(ConfigError, match=r"not a regular file|larger than"):
        Session(Options.of(project, options))


async def test_added_folders_may_be_worked_in(project: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    options = {"endpoint": "http://127.0.0.1:1/v1", "model": "m"}
    async with Session(Options.of(project, {**options, "add_dirs": (other,)})) as session:
        assert session.environment.roots.resolve(str(other / "a.txt")) == other / "a.txt"


@pytest.mark.integration
async def test_rules_of_a_trusted_project_are_not_about_added_folders(
    project: Path, tmp_path: Path, playing: Any
):
    other = tmp_path / "other"
    other.mkdir()
    rules = ["write_file", "write_file(/**)", f"write_file({other}/**)"]
    put(project, ".ybs.json", json.dumps({"safety": {"allow": rules}}))
    give_trust(project)
    script = [
        call("write_file", path=str(folder / "a"), content="x") for folder in (other, project)
    ]
    async with playing([*script, "done"], add_dirs=(other,), mode="ask") as (session, _, _):
        await session.send("go")
    assert (project / "a").exists()
    assert not (other / "a").exists()


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
    monkeypatch.setattr(visible_text, "marked", lambda text: looked_at.append(text) or marked(text))
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
