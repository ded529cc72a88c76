"""/download: what fits is offered, what is downloaded is used at once."""

from collections.abc import Callable
from typing import Any

import pytest
from local.loopback_hub import MODEL, SHA256, gives, open_hub, says

from hosts import this_host
from rows import every_row
from scripted import OllamaServer, OpenAIServer
from ybs.commands.download import pulls
from ybs.config.schema import Config, Endpoint, LlmSettings
from ybs.core.events import Noticed
from ybs.providers.local import hardware, models
from ybs.providers.local.hardware import Machine
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import RecordedEvents

Open = Callable[..., tuple[Session, RecordedEvents]]


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this machine one of two cores."""
    here = Machine(cores=2, memory_bytes=8 * 10**9, free_bytes=6 * 10**9)
    monkeypatch.setattr(hardware, "detect", lambda: here)


async def said(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


async def test_without_a_name_what_fits_this_machine_is_offered(open_session: Open):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            menu = (await said(session, "/download")).menu
    assert menu is not None
    assert menu.title == "Models for this machine (2 cores, 8.0 GB of memory (6.0 GB free))"
    assert [item.line for item in menu.items] == [
        "/download qwen2.5-coder-1.5b:q4_k_m",
        "/download qwen2.5-coder-0.5b:q4_k_m",
    ]
    assert menu.items[0].detail.startswith("1.1 GB; window 8,192, on the CPU")


@pytest.mark.integration
async def test_a_file_of_the_hub_is_downloaded_with_progress_and_used(open_session, monkeypatch):
    async with OpenAIServer([]) as server:
        with open_hub(gives()) as hub:
            monkeypatch.setenv("YBS_LOCAL__HUB", hub.url)
            session, events = open_session(server)
            async with session:
                reply = await said(session, "/download a/b/mine.gguf")
                again = await said(session, "/download a/b/mine.gguf")
    assert reply.text.startswith("Now using llamacpp mine.")
    assert reply.text.endswith(f"Its SHA-256 is {SHA256}")
    assert again.text.startswith("Now using llamacpp mine.")
    assert "SHA-256" not in again.text
    assert len(hub.asked) == 1
    assert models.list_models(this_host())[0].size_bytes == len(MODEL)
    notes = [event.text for event in events.of(Noticed)]
    assert notes[-1] == "checking the hash"
    assert notes[-2].startswith("fetching: 100%")
    assert len(notes) <= 12


async def test_where_ollama_is_in_use_it_is_asked_to_download_the_model(open_session: Open):
    async with OllamaServer([]) as server:
        session, _ = open_session(server, provider="ollama")
        async with session:
            before = session.agent.model.name
            reply = await said(session, "/download qwen3:8b")
            assert session.agent.model.name == before
        asked = server.other_requests[-1]
    assert (asked.path, asked.body["model"]) == ("/api/pull", "qwen3:8b")
    assert reply.is_error  # the scripted server has no such path


@pytest.mark.integration
async def test_what_the_hub_does_not_have_changes_nothing(open_session, monkeypatch):
    async with OpenAIServer([]) as server:
        with open_hub(says(404)) as hub:
            monkeypatch.setenv("YBS_LOCAL__HUB", hub.url)
            session, _ = open_session(server)
            async with session:
                before = session.agent.model.name
                reply = await said(session, "/download a/b/mine.gguf")
                assert session.agent.model.name == before
    assert reply.is_error
    assert "answered 404" in reply.text


OWN: dict[str, Any] = {"house": Endpoint(endpoint="http://127.0.0.1:1", wire="ollama")}


@every_row(
    ("chosen", "used", "name", "expected"),
    [
        ("ollama", None, "qwen3:8b", True),
        ("house", None, "qwen3:8b", True),
        (None, "ollama", "qwen3:8b", True),
        ("ollama", "openai", "qwen3:8b", False),
        ("ollama", None, "", False),
        ("ollama", None, "a/b/c.gguf", False),
        ("ollama", None, "a/b/c.gguf#0", False),
        ("ollama", None, "https://hub.example/x", False),
        ("openai", None, "qwen3:8b", False),
        (None, None, "qwen3:8b", False),
        ("in-process", None, "qwen3:8b", False),
    ],
)
def test_ollama_downloads_names_and_ybs_downloads_files(chosen, used, name, expected):
    config = Config(llm=LlmSettings(provider=chosen), providers=OWN)
    assert pulls(this_host(), config, name, used) is expected
