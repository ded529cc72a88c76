"""A model that a program hands in: it answers in place of a provider's, through everything that exchanges models."""

from pathlib import Path
from typing import Any

import pytest

from scripted import OpenAIServer
from ybs.agent.model_choice import IN_PROCESS
from ybs.core.errors import ConfigError
from ybs.core.events import Noticed
from ybs.core.ports import Answer, Question
from ybs.core.remedies import Remedy
from ybs.providers.registry import InProcessModel
from ybs.session.options import Options
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import RecordedEvents, ScriptedModel, call


class ClosableModel(ScriptedModel):
    """A model that notes that somebody closed it."""

    is_closed = False

    async def aclose(self) -> None:
        self.is_closed = True


async def test_it_answers_although_no_provider_is_configured_and_stays_open(project: Path):
    model, events = ClosableModel(["Hello."], name="mine"), RecordedEvents()
    async with Session.open(project, model=model) as session:
        session.subscribe(events)
        assert (await session.send("Hi.")).text == "Hello."
        status = session.status()
    assert (status.provider, status.model, status.window) == (IN_PROCESS, "mine", 32_768)
    assert events.of(Noticed) == []
    assert not model.is_closed


async def test_a_name_is_still_a_setting(project: Path):
    options = Options.of(project, {"model": "qwen3:14b"})
    assert (options.model, options.overrides) == (None, {"llm.model": "qwen3:14b"})
    model = ScriptedModel()
    options = Options.of(project, {"model": model, "provider": "ollama"})
    assert (options.model, options.overrides) == (model, {"llm.provider": "ollama"})


@pytest.mark.integration
async def test_its_window_decides_on_the_prompt_and_the_room_for_an_answer(project: Path):
    sizes: list[int] = []
    for window in (8_192, 200_000):
        model = ScriptedModel(["Hello."], window=window)
        async with Session.open(project, model=model) as session:
            await session.send("Hi.")
            assert await session.agent.model.detect_window() == window
            longest = min(session.config.llm.max_tokens, window // 4)
            assert session.agent.window.room == window - longest
        sizes.append(len(model.requests[0].tools))
    assert sizes == [7, 13]


@pytest.mark.integration
async def test_it_goes_on_in_a_new_conversation_and_comes_back_after_another_model(
    project: Path, open_session: Any
):
    model = ScriptedModel(["One.", "Two.", "Four."], name="mine")
    async with OpenAIServer(["Three."]) as server:
        session, _ = open_session(server, model=model)
        async with session:
            said = [(await session.send("Hi.")).text]
            await session.start_anew(is_incognito=False)
            said += [(await session.send("Hi.")).text]
            await session.switch_model(provider="openai", model="other")
            said += [(await session.send("Hi.")).text]
            reply = await session.handle(f"/provider {IN_PROCESS}")
            assert isinstance(reply, Reply)
            assert reply.text.startswith(f"Now using {IN_PROCESS} mine.")
            said += [(await session.send("Hi.")).text]
    assert said == ["One.", "Two.", "Three.", "Four."]


async def test_another_name_at_it_is_an_error_that_says_what_to_do(project: Path):
    async with Session.open(project, model=ScriptedModel(name="mine")) as session:
        with pytest.raises(ConfigError, match=r"'other' cannot be chosen: .* only mine") as caught:
            await session.switch_model(provider=None, model="other")
        assert caught.value.remedies == (Remedy("change_provider"),)
        assert await session.agent.model.list_models() == ["mine"]
        await session.switch_model(provider=None, model="mine")
        assert isinstance(session.agent.model, InProcessModel)


async def test_without_one_its_provider_is_unknown(project: Path, open_session: Any):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            with pytest.raises(ConfigError, match=f"no provider '{IN_PROCESS}'"):
                await session.switch_model(provider=IN_PROCESS, model=None)


def test_where_only_models_on_this_machine_are_allowed_it_is_refused(project: Path):
    options = {"incognito": True, "overrides": {"incognito.local_only": True}}
    with pytest.raises(ConfigError, match="not known where mine runs") as caught:
        Session.open(project, model=ScriptedModel(name="mine"), **options)
    assert caught.value.remedies == (Remedy("choose_local_model"),)


@pytest.mark.integration
async def test_confirm_is_asked_as_the_option_says(project: Path):
    asked: list[Question] = []

    async def confirm(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=True)

    model = ScriptedModel([call("write_file", path="a.txt", content="one"), "Done."])
    async with Session.open(project, model=model, confirm=confirm) as session:
        assert (await session.send("Write.")).refusals == 0
    assert [question.call.name for question in asked] == ["write_file"]
    assert (project / "a.txt").read_text() == "one"
