"""Chat templates: which may suit a model, tried once, and the one that it answers with real calls is kept."""

import asyncio
from pathlib import Path

import pytest
from local.gguf_files import write_model

from hosts import this_host
from rows import every_row
from ybs.config.schema import AgentLimits, Config
from ybs.core.events import AssistantSaid, Event, Noticed
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.local import models, server
from ybs.providers.local.choice import Shape
from ybs.providers.local.model import NO_CALLS, LlamaCppModel, notes_of
from ybs.providers.local.template import ModelHead, makes_calls, templates_of
from ybs.testing import ScriptedModel

pytestmark = pytest.mark.integration

SHAPE = Shape(file_bytes=1, layers=1, token_bytes=1, longest=4096)
ASK = Request("system", (UserMessage.of("who are you?"),))


@every_row(
    ("file", "own", "names"),
    [
        (
            "Qwen2.5-Coder-7B.gguf",
            "<|im_start|> tools",
            ["qwen2.5-coder", "own", "calls in chatml"],
        ),
        ("Qwen3-8B.gguf", "<|im_start|> tools", ["own", "calls in chatml"]),
        ("SmolLM2.gguf", "<|im_start|>", ["calls in chatml"]),
        ("Llama-3.2-3B.gguf", "<|start_header_id|> tools", ["own", "calls in llama"]),
        ("gemma-3-4b-it.gguf", "<start_of_turn>", ["calls in gemma"]),
        ("Mistral-7B.gguf", "[INST] tools", ["own", "calls in mistral"]),
        ("Phi-4-mini.gguf", "<|user|><|end|>", ["calls in phi"]),
        ("strange.gguf", "{{ messages }}", ["own"]),
        ("strange.gguf", "{{ tools }}", ["own"]),
        ("base.gguf", "", ["own"]),
    ],
)
def test_a_models_family_is_known_by_its_own_template(file: str, own: str, names: list[str]):
    found = list(templates_of(Path(file), ModelHead(template=own, shape=SHAPE)))
    assert [each.name for each in found] == names
    assert all(bool(each.text) == (each.name != "own") for each in found)


def stranger() -> Path:
    """Put a model there that nobody has tried, whose own template knows tools."""
    entries = {"tokenizer.chat_template": "<|im_start|> tools"}
    return write_model(models.models_folder(this_host()) / "stranger.gguf", entries)


async def said(config: Config | None = None) -> list[Event]:
    """Ask a new run of ybs something, and let it end."""
    local = LlamaCppModel(this_host(), config or Config(), "stranger")
    try:
        return [event async for event in local.stream(ASK)]
    finally:
        await local.aclose()


def trials(events: list[Event]) -> int:
    return sum(isinstance(each, Noticed) and "real tool calls" in each.text for each in events)


@pytest.mark.usefixtures("fake_server")
class TestTrials:
    @pytest.mark.parametrize(
        ("answers", "kept", "count"),
        [("own", "own", 1), ("begin", "calls in chatml", 2), ("no template", NO_CALLS, 2)],
    )
    async def test_the_first_template_that_the_model_answers_is_kept_and_none_is_tried_again(
        self, monkeypatch: pytest.MonkeyPatch, answers: str, kept: str, count: int
    ):
        monkeypatch.setenv("FAKE_SERVE", f"calls {answers}")
        path = stranger()
        first = await said()
        assert isinstance(first[-1], AssistantSaid)
        assert first[-1].content.startswith("I am stranger")
        assert trials(first) == count
        assert notes_of(this_host(), path).template == kept
        running = server.running(this_host())
        assert running is not None
        assert ("begin" in running.template) == (kept == "calls in chatml")
        assert trials(await said()) == 0
        assert server.running(this_host()) == running

    async def test_runs_that_begin_at_once_try_a_model_one_after_the_other(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("FAKE_SERVE", "calls begin")
        path = stranger()
        both = await asyncio.gather(said(), said(), said())
        assert sorted(map(trials, both)) == [0, 0, 2]
        assert notes_of(this_host(), path).template == "calls in chatml"

    async def test_nothing_is_learned_from_a_server_that_another_run_has_with_its_own_template(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("FAKE_SERVE", "calls begin")
        path = stranger()
        other = server.ServerLease(this_host())
        wanted = server.Wanted(model=str(path.resolve()), alias="stranger", shape=SHAPE)
        await server.ensure(this_host(), wanted, other, told=lambda _: None)
        first = await said()
        assert isinstance(first[-1], AssistantSaid)
        assert notes_of(this_host(), path).template == ""
        other.release()
        await said()
        assert notes_of(this_host(), path).template == "calls in chatml"

    async def test_a_model_of_no_known_family_is_tried_with_its_own_template(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("FAKE_SERVE", "writes")
        path = write_model(models.models_folder(this_host()) / "stranger.gguf", {})
        assert trials(await said()) == 1
        assert notes_of(this_host(), path).template == NO_CALLS

    async def test_a_call_that_is_only_written_is_no_real_one(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("FAKE_SERVE", "writes")
        path = stranger()
        await said()
        assert notes_of(this_host(), path).template == NO_CALLS

    async def test_a_file_that_changed_is_tried_again(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("FAKE_SERVE", "calls own")
        stranger()
        await said()
        entries = {"tokenizer.chat_template": "<|im_start|> other tools"}
        write_model(models.models_folder(this_host()) / "stranger.gguf", entries)
        assert trials(await said()) == 1

    async def test_a_trial_that_the_server_does_not_survive_says_nothing_about_the_model(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("FAKE_SERVE", "dies 0")
        path = stranger()
        with pytest.raises(server.ProviderDown):
            await said(Config(agent=AgentLimits(retry_attempts=0)))
        assert notes_of(this_host(), path).template == ""


async def test_an_answer_in_words_is_no_call():
    assert not await makes_calls(ScriptedModel(["No."]))
