"""The page offers what the terminal offers for every question, and an answer of the page is that of the terminal's key."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from ybs.core.events import StateChanged
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Preview, Question
from ybs.frontends.terminal.questions.confirm import PendingQuestion
from ybs.frontends.web.drawing import state_of
from ybs.session.questions import Questions, choices_of, in_words

QUESTIONS = st.builds(
    Question,
    call=st.just(ToolCall(id="c1", name="run_shell", arguments=Raw(b"{}"))),
    effect=st.sampled_from(["execute", "write", "edit", "delete"]),
    preview=st.just(Preview(title="Do it", body="make it")),
    grant=st.sampled_from(["", "run_shell(make *)"]),
    network_grant=st.sampled_from(["", "run_shell(make *), network"]),
    can_be_kept=st.booleans(),
    offers_network=st.booleans(),
    outside=st.sampled_from(["", "offered", "needed"]),
    choices=st.sampled_from([None, (), ("red", "blue")]),
    takes_reason=st.booleans(),
    needs_network=st.booleans(),
    offers_asking=st.booleans(),
)


def shown(question: Question) -> Any:
    """Return the question as frontends are told of it."""

    async def run() -> Any:
        questions = Questions(lambda: None)
        asking = asyncio.create_task(questions.ask(question, lambda _: asyncio.sleep(9)))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        asked = questions.open[0]
        asking.cancel()
        return asked

    return asyncio.run(run())


@given(question=QUESTIONS, with_network=st.booleans())
def test_the_keys_and_their_answers_are_those_of_the_terminal(question, with_network):
    with_network = with_network and question.offers_network and question.choices is None
    asked = state_of(StateChanged(questions=(shown(question),)))["questions"][0]
    ours = [each["key"] for each in asked["with_network" if with_network else "choices"]]
    if question.choices == ():  # the terminal takes words at once; the page offers the two ways
        assert ours == ["r", "n"]
        return

    async def pressed(key: str) -> Answer:
        pending = PendingQuestion(question)
        pending.with_network = with_network
        pending.press(key)
        if pending.wants_reason:
            pending.give_reason("because")
        return pending.answer.result()

    offered = choices_of(shown(question), with_network=with_network)
    assert ours == [key for key in offered if key != "w"]
    for key in ours:
        each = offered[key]
        answer = in_words(question, "because") if each.wants_words else each.answer
        assert answer == asyncio.run(pressed(key)), key


@given(question=QUESTIONS)
def test_a_question_is_drawn_as_text(question: Question):
    from msgspec.structs import replace

    bad = "<script>alert(1)</script>" + " " * 60 + "rm -rf /"
    hostile = replace(question, preview=Preview(title=bad, body=bad), warnings=(bad,), reason=bad)
    drawn = state_of(StateChanged(questions=(shown(hostile),)))["questions"][0]
    assert "<script>" not in drawn["body"]
    assert "&lt;script&gt;" in drawn["body"]
    if question.choices is None:
        assert "&lt;60 spaces&gt;" in drawn["body"]  # what was pushed out of sight is seen
