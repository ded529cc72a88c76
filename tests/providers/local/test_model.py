"""LlamaCppModel: it starts its server at the first request and answers through it."""

import os
import shutil
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from hosts import this_host
from scripted import Frames, OpenAIServer
from ybs.commands.advice import told
from ybs.config.schema import AgentLimits, Config, ContextSettings, LlmSettings
from ybs.core.errors import ConfigError, ProviderDown
from ybs.core.events import AssistantSaid, Noticed, PromptRead
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.local import STARTER_NAME, model, process, server
from ybs.providers.local.facts import FACTS
from ybs.providers.local.model import LlamaCppModel
from ybs.providers.registry import create_model, open_model

pytestmark = pytest.mark.integration

ASK = Request("system", (UserMessage.of("who are you?"),))


@pytest.mark.usefixtures("starter", "fake_server")
class TestWithTheStarter:
    async def test_the_first_request_starts_the_server_and_the_next_uses_it(self):
        local = create_model(this_host(), Config(llm=LlmSettings(provider="llamacpp")))
        first = [event async for event in local.stream(ASK)]
        pid = server.running(this_host())
        second = [event async for event in local.stream(ASK)]
        await local.aclose()
        for events in (first, second):
            assert isinstance(events[-1], AssistantSaid)
            assert events[-1].content == f"I am {STARTER_NAME} at 0.0."
            assert events[-1].usage.cost_usd == 0.0
        assert server.running(this_host()) == pid

    @pytest.mark.skipif(
        shutil.which("ps", path=os.defpath) is None, reason="NOT TESTED: ps is not installed"
    )
    async def test_no_answer_waits_for_ps_in_the_loop(self, monkeypatch: pytest.MonkeyPatch):
        ask, threads = process._start_time_of_ps, list[int]()

        def noted(pid: int) -> str:
            threads.append(threading.get_ident())
            return ask(pid)

        monkeypatch.setattr(process, "HAS_PROC", False)
        monkeypatch.setattr(process, "_start_time_of_ps", noted)
        local = create_model(this_host(), Config(llm=LlmSettings(provider="llamacpp")))
        for _ in range(2):
            assert isinstance([event async for event in local.stream(ASK)][-1], AssistantSaid)
        await local.aclose()
        assert await server.stop(this_host())
        assert threads
        assert threading.get_ident() not in threads

    async def test_a_temperature_of_the_person_is_kept(self):
        local = LlamaCppModel(this_host(), Config(llm=LlmSettings(temperature=0.5)), STARTER_NAME)
        events = [event async for event in local.stream(ASK)]
        await local.aclose()
        assert isinstance(events[-1], AssistantSaid)
        assert events[-1].content.endswith("at 0.5.")

    async def test_a_server_that_died_between_two_requests_is_started_again(self):
        at_once = Config(agent=AgentLimits(retry_backoff_base_ms=0))
        local = LlamaCppModel(this_host(), at_once, STARTER_NAME)
        assert local.endpoint == "(starts when needed)"
        [_ async for _ in local.stream(ASK)]
        running = server.running(this_host())
        assert running is not None
        os.kill(running.pid, 9)
        events = [event async for event in local.stream(ASK)]
        await local.aclose()
        assert isinstance(events[-1], AssistantSaid)
        assert local.endpoint != running.socket or server.running(this_host()) != running

    async def test_a_slow_start_is_announced(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("FAKE_SERVE", "slow")
        monkeypatch.setattr(model, "ANNOUNCED_AFTER", 0.0)
        local = LlamaCppModel(this_host(), Config(), STARTER_NAME)
        events = [event async for event in local.stream(ASK)]
        await local.aclose()
        assert Noticed(level="info", text="starting the local model (0 s)") in events

    async def test_leaving_during_the_start_leaves_no_server(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("FAKE_SERVE", "slow")
        monkeypatch.setattr(model, "ANNOUNCED_AFTER", 0.0)
        local = LlamaCppModel(this_host(), Config(), STARTER_NAME)
        events = local.stream(ASK)
        assert isinstance(await anext(events), Noticed)
        await events.aclose()
        assert server.running(this_host()) is None

    async def test_a_server_that_dies_while_it_answers_is_started_with_less_and_it_is_said(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("FAKE_SERVE", "dies 4096")
        at_once = Config(agent=AgentLimits(retry_backoff_base_ms=0))
        local = LlamaCppModel(this_host(), at_once, STARTER_NAME)
        assert local.window == 8192
        events = [event async for event in local.stream(ASK)]
        assert (local.window, local.max_tokens) == (4096, 1024)
        await local.aclose()
        assert isinstance(events[-1], AssistantSaid)
        assert (
            Noticed(
                level="warning",
                text="The local model's server ended in the middle of an answer, "
                "so it is started again with a window of 4,096 tokens.",
            )
            in events
        )

    async def test_a_stream_that_breaks_off_is_asked_for_in_one_piece_from_then_on(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("FAKE_SERVE", "breaks")
        local = LlamaCppModel(
            this_host(), Config(agent=AgentLimits(retry_attempts=0)), STARTER_NAME
        )
        first = [event async for event in local.stream(ASK)]
        second = [event async for event in local.stream(ASK)]
        await local.aclose()
        notice = Noticed(level="warning", text=model._IN_ONE_PIECE)
        for events in (first, second):
            assert isinstance(events[-1], AssistantSaid)
            assert events[-1].content == "In one piece."
        assert notice in first
        assert notice not in second

    async def test_a_server_that_does_not_start_is_not_started_twice(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("FAKE_SERVE", "traceback")
        local = LlamaCppModel(this_host(), Config(), STARTER_NAME)
        with pytest.raises(ProviderDown, match="invalid magic"):
            [_ async for _ in local.stream(ASK)]
        assert not server.log_file(this_host()).with_name("llama.last.log").exists()
        await local.aclose()

    async def test_the_server_is_free_for_others_when_the_model_is_closed(self):
        local = LlamaCppModel(this_host(), Config(), STARTER_NAME)
        [_ async for _ in local.stream(ASK)]
        assert server.ServerLease(this_host()).is_held_by_others()
        await local.aclose()
        assert not server.ServerLease(this_host()).is_held_by_others()

    async def test_name_window_and_the_list_of_models(self):
        (Path(str(model.models.models_folder(this_host()))) / "other.gguf").write_bytes(b"GGUF")
        local = LlamaCppModel(
            this_host(), Config(context=ContextSettings(max_tokens=2048)), STARTER_NAME
        )
        await local.warm_up()
        await local.aclose()
        assert (local.name, local.window, local.provider) == (STARTER_NAME, 2048, "llamacpp")
        assert await local.detect_window() == 2048
        assert await local.list_models() == [STARTER_NAME, "other"]


def test_without_the_starter_model_the_message_says_how_to_get_it():
    with pytest.raises(ConfigError, match="not installed") as caught:
        create_model(this_host(), Config(llm=LlmSettings(provider="llamacpp")))
    assert "`ybs models download starter`" in told(caught.value)


async def test_the_server_is_asked_how_much_of_the_prompt_it_has_read():
    reading = {"choices": [], "prompt_progress": {"total": 9, "cache": 0, "processed": 5}}
    said = {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}
    async with OpenAIServer([Frames.of(reading, said)]) as other:
        at = replace(FACTS, endpoint=other.url, make=None)
        local = open_model(this_host(), at, Config(), model="m")
        events = [event async for event in local.stream(ASK)]
        await local.aclose()
        assert other.requests[0].body["return_progress"] is True
    assert PromptRead(read=5, total=9) in events
    assert isinstance(events[-1], AssistantSaid)


async def test_with_an_endpoint_no_server_is_managed():
    async with OpenAIServer(["the ones ybs knows of"]) as other:
        local = create_model(
            this_host(), Config(llm=LlmSettings(provider="llamacpp", endpoint=other.url, model="m"))
        )
        events = [event async for event in local.stream(ASK)]
        await local.aclose()
    assert isinstance(events[-1], AssistantSaid)
    assert events[-1].content == "the ones ybs knows of"
    assert server.running(this_host()) is None
