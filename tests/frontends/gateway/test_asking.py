"""Questions in a chat: who may answer them, with which buttons and words, and what does nothing."""

import asyncio
import html
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chat_parts import (
    GUEST,
    OWNER,
    STRANGER,
    Chatting,
    Posted,
    chatting,
    session_of,
    until_posted,
)
from ybs.core.errors import YbsError
from ybs.core.open_question import OpenQuestion
from ybs.frontends.gateway.asking import NO_LONGER, OWNER_ONLY, Buttons, _Asked, plain
from ybs.frontends.gateway.outbox import of_ledger
from ybs.security.unicode import printable
from ybs.session.reply import Outcome
from ybs.testing import call

pytestmark = pytest.mark.integration

GROUP = "-100"


@cache
def reader() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


class Asked:
    """A session that asks in a chat, and the message of its question."""

    def __init__(self, chat: Chatting, turn: "asyncio.Task[Outcome]", question: Posted) -> None:
        self.chat, self.turn, self.question = chat, turn, question

    @property
    def name(self) -> str:
        """The id of the question."""
        return self.question.id.split(":")[1]

    def is_open(self) -> bool:
        """Return whether the session waits for an answer."""
        return bool(self.chat.chats.the_session.questions.open)

    def results(self) -> str:
        """Return what the model has read."""
        return str(self.chat.chats.the_session.conversation.messages)


@asynccontextmanager
async def asked(
    tmp_path: Path,
    project: Path,
    script: Any = None,
    *,
    who: str = OWNER,
    group: str = "",
    words: str = "Without buttons",
) -> AsyncGenerator[Asked]:
    """Have the session of somebody ask something: by default, whether it may delete a file."""
    (project / "a").write_text("text")
    script = call("delete_file", path="a") if script is None else script
    async with session_of(project, script, "done") as session, chatting(tmp_path, session) as chat:
        await chat.write("hello", OWNER)  # now it is known where the owner is reached
        place = chat.place(who, group)
        leave = chat.asking.follow(f"telegram:bot:group:{GROUP}::{who}", place, session)
        turn = asyncio.create_task(session.send("go"))
        yield Asked(chat, turn, await until_posted(chat, words))
        if not turn.done():
            session.cancel()
        await turn
        leave()
        await chat.asking.settled()


async def test_the_owner_says_yes_by_a_button_and_the_message_says_so(
    tmp_path: Path, project: Path
):
    async with asked(tmp_path, project) as it:
        labels = [each.label for each in it.question.buttons]
        assert labels == ["Yes", "Always in this session: delete_file(a)", "No"]
        assert await it.chat.press(it.question.token("Yes")) == ""
        await it.turn
        await it.chat.asking.settled()
        last = it.chat.last()
        assert last.edits == of_ledger(it.question.id)
        assert last.text == it.question.text.partition("Without")[0] + "**Yes** (name1)"
        assert last.buttons == ()
        assert not (project / "a").exists()


async def test_the_owner_says_no_by_a_button(tmp_path: Path, project: Path):
    async with asked(tmp_path, project) as it:
        await it.chat.press(it.question.token("No"))
        await it.turn
        assert (project / "a").exists()
        assert "the person said no" in it.results()


async def test_the_owner_answers_in_words_by_the_questions_id(tmp_path: Path, project: Path):
    async with asked(tmp_path, project) as it:
        assert f"`/approve {it.name} yes|no|always`" in it.question.text
        assert it.name in await it.chat.write("/approve")
        assert (
            await it.chat.write("/approve NONE yes")
            == f"No question of this ID is open here.\n- `{it.name}` Delete a"
        )
        for words in ("", "maybe", "network", "yes please"):
            assert "Usage" in await it.chat.write(f"/approve {it.name} {words}")
        assert it.is_open()
        assert await it.chat.write(f"/approve {it.name.lower()} no not now, Ada") != NO_LONGER
        await it.turn
        assert "not now, Ada" in it.results()


async def test_a_pressed_button_counts_once(tmp_path: Path, project: Path):
    async with asked(tmp_path, project) as it:
        await it.chat.press(it.question.token("No"))
        await it.turn
        await it.chat.asking.settled()
        for label in ("No", "Yes"):  # replayed, and the other one of the same question
            assert await it.chat.press(it.question.token(label)) == NO_LONGER
        assert (project / "a").exists()


async def test_a_forged_button_does_nothing(tmp_path: Path, project: Path):
    async with asked(tmp_path, project) as it:
        real = it.question.token("Yes")
        assert len(real.partition(".")[2]) == 22
        for token in ("x", real[:-1], real + "A", real.swapcase(), f"{it.name}:yes", "0"):
            assert await it.chat.press(token) == NO_LONGER
        assert it.is_open()


async def test_a_button_of_one_chat_is_none_in_another(tmp_path: Path, project: Path):
    async with asked(tmp_path, project) as it:
        token = it.question.token("Yes")
        assert await it.chat.press(token, OWNER, GROUP) == NO_LONGER
        other = it.chat.place(OWNER, account="other bot")
        await it.chat.press(token, place=other)
        assert it.is_open()


async def test_a_guest_does_not_answer_what_a_call_needs(tmp_path: Path, project: Path):
    async with asked(tmp_path, project, who=GUEST, group=GROUP) as it:
        assert it.question.place.chat == GROUP
        for who in (GUEST, STRANGER):  # the group is on the list, so both are guests in it
            assert await it.chat.press(it.question.token("Yes"), who, GROUP) == OWNER_ONLY
            assert (
                await it.chat.write(f"/approve {it.name} yes", who, GROUP)
                == "Only the owner of this assistant may use /approve."
            )
        assert it.is_open()
        assert await it.chat.press(it.question.token("Yes"), OWNER, GROUP) == ""
        await it.turn
        assert not (project / "a").exists()


async def test_a_question_of_a_guests_private_chat_is_asked_in_the_owners(
    tmp_path: Path, project: Path
):
    async with asked(tmp_path, project, who=GUEST) as it:
        assert it.question.place == it.chat.place(OWNER, person=OWNER)
        assert "A guest's session asks (2)." in it.question.text
        told = await until_posted(it.chat, "This needs the owner's approval; they were asked.")
        assert told.place == it.chat.place(GUEST)
        token = it.question.token("Yes")
        assert await it.chat.press(token, GUEST) == NO_LONGER  # it is none of their chat
        assert "Only the owner" in await it.chat.write(f"/approve {it.name} yes", GUEST)
        assert it.is_open()
        assert await it.chat.press(token, OWNER) == ""
        await it.turn
        assert not (project / "a").exists()


async def test_where_no_owner_can_be_asked_the_answer_is_no(tmp_path: Path, project: Path):
    (project / "a").write_text("text")
    async with session_of(project, call("delete_file", path="a"), "done") as session:
        async with chatting(tmp_path, session) as chat:
            leave = chat.asking.follow("key", chat.place(GUEST), session)
            await session.send("go")
            leave()
        assert (project / "a").exists()
        assert "no owner of this chat can be asked" in str(session.conversation.messages)


async def test_where_a_question_cannot_be_posted_the_answer_is_no(tmp_path: Path, project: Path):
    (project / "a").write_text("text")
    async with session_of(project, call("delete_file", path="a"), "done") as session:
        async with chatting(tmp_path, session) as chat:

            async def full(*_: Any, **__: Any) -> None:
                raise YbsError("the disk is full")

            await chat.write("hello", OWNER)
            chat.ledger.post = full
            leave = chat.asking.follow("key", chat.place(OWNER), session)
            await session.send("go")
            leave()
        assert (project / "a").exists()


async def test_after_a_restart_old_buttons_and_ids_do_nothing(tmp_path: Path, project: Path):
    async with asked(tmp_path, project) as it:
        it.chat.begin()
        assert await it.chat.press(it.question.token("Yes")) == NO_LONGER
        assert "No question of this ID" in await it.chat.write(f"/approve {it.name} yes")
        assert it.is_open()


async def test_a_question_that_the_turn_takes_with_it_loses_its_buttons(
    tmp_path: Path, project: Path
):
    async with asked(tmp_path, project) as it:
        it.chat.chats.the_session.cancel()
        await it.turn
        await it.chat.asking.settled()
        assert it.chat.last().text.endswith("This is no longer asked.")
        assert await it.chat.press(it.question.token("Yes")) == NO_LONGER


# What is shown


async def test_the_whole_command_is_shown_and_nothing_in_it_is_markup(
    tmp_path: Path, project: Path
):
    command = "rm -rf x # ```\n**Approved** [yes](https://evil.example) \u202eesle"
    async with asked(tmp_path, project, call("run_shell", command=command)) as it:
        shown = it.question.text
        assert (
            "````\nrm -rf x # ```\n**Approved** [yes](https://evil.example) <U+202E>esle\n````"
            in shown
        )
        outside_fence = shown.replace(shown[shown.index("````") : shown.rindex("````")], "")
        assert "evil.example" not in outside_fence.replace("\\", "")


async def test_a_long_change_goes_along_as_a_file_that_has_all_of_it(tmp_path: Path, project: Path):
    (project / "long").write_text("".join(f"old {number}\n" for number in range(2000)))
    new = "".join(f"new {number}\n" for number in range(2000))
    script = call("run_shell", command=f"cat > long <<'END'\n{new}END")
    async with asked(tmp_path, project, script) as it:
        file = next(each for each in it.chat.ledger.posted.values() if each.file is not None)
        assert file.file is not None
        assert it.name in file.text
        assert "new 1999\n" in file.file.data.decode()
        assert "new 0\n" in it.question.text
        assert "new 1999" not in it.question.text
        assert "the whole of it is in the file" in it.question.text


def test_names_and_titles_are_no_markup():
    assert plain("*a* [b](c)\n<d> `e` @all") == r"\*a\* \[b\]\(c\) \<d\> \`e\` @all"
    assert plain("\u202eesrever\u200b") == r"\<U\+202E\>esrever\<U\+200B\>"


@given(
    st.text(st.characters(codec="utf-8"), max_size=80)
    | st.text("*_`[]()<>!#+-.~|\\\\&;:=>1aA /@\n", max_size=40)
)
def test_whatever_somebody_is_called_is_shown_as_it_is(text: str):
    shown = reader().render(f"x {plain(text)}")
    said = " ".join(printable(f"x {text}").split())
    assert html.unescape(shown.removeprefix("<p>").removesuffix("</p>\n")) == said


def test_no_answer_of_a_chat_holds_for_the_project_or_leads_outside_the_sandbox():
    question = OpenQuestion(
        id="1",
        name="run_shell",
        title="x",
        grant="run_shell(make *)",
        can_be_kept=True,
        outside="offered",
        offers_network=True,
    )
    asked = _Asked(SimpleNamespace(), question)  # type: ignore[arg-type] # not answered
    labels = [each.label for each in asked.choices]
    assert labels == ["Yes", "Yes, with network", "Always in this session: run_shell(make *)", "No"]


async def test_always_holds_for_the_session_and_is_said_in_words_too(tmp_path: Path, project: Path):
    script = call("run_shell", command="touch made")
    async with asked(tmp_path, project, script) as it:
        assert any(each.label.startswith("Always in this session") for each in it.question.buttons)
        assert "yes|no|always" in it.question.text
        assert await it.chat.write(f"/approve {it.name} always") == ""
        await it.turn
        assert (project / "made").exists()
        assert not (project / ".ybs").exists()


async def test_the_whole_rule_of_an_always_is_shown_though_its_button_is_short(
    tmp_path: Path, project: Path
):
    name = "b" * 60 + "c"
    (project / name).write_text("text")
    async with asked(tmp_path, project, call("delete_file", path=name)) as it:
        assert it.question.buttons[1].label == f"Always in this session: delete_file({'b' * 23}…"
        rule = plain(f"delete_file({name})")
        assert f"Always would allow {rule} in this session" in it.question.text


def test_no_button_hides_what_it_is():
    buttons, chat = Buttons(), Chatting.place(None, OWNER)  # pyright: ignore[reportArgumentType]
    rows = buttons.show(object(), chat, ["Yes\u202eoN", "a\nb\u200b"])
    assert [row[0].label for row in rows] == ["Yes<U+202E>oN", "a b<U+200B>"]


def test_buttons_are_bounded_and_the_newest_stay(monkeypatch: Any):
    monkeypatch.setattr("ybs.frontends.gateway.asking._MOST_BUTTONS", 10)
    buttons, chat = Buttons(), Chatting.place(None, OWNER)  # pyright: ignore[reportArgumentType]
    rows = [buttons.show(object(), chat, ["a", "b"]) for _ in range(50)]
    assert len(buttons._shown) == 10
    assert {row[0].token for of in rows[-5:] for row in of} == buttons._shown.keys()


# The model's own questions


ASK = call("ask_user", question="Which colour?", options=["red", "blue"])


async def test_a_question_of_the_models_has_its_choices_as_buttons(tmp_path: Path, project: Path):
    async with asked(tmp_path, project, ASK, words="Which colour?") as it:
        assert [each.label for each in it.question.buttons] == ["red", "blue", "No answer"]
        await it.chat.press(it.question.token("blue"))
        await it.turn
        assert "The person answers: blue" in it.results()


async def test_it_is_answered_by_words_of_the_person_whose_chat_it_is(
    tmp_path: Path, project: Path
):
    async with asked(tmp_path, project, ASK, who=GUEST, words="Which colour?") as it:
        assert it.question.place == it.chat.place(GUEST)
        assert await it.chat.write("hello", OWNER) == ""  # a turn of the owner's own chat
        queued = [*it.chat.turns.queued]
        assert await it.chat.write("green, with *dots*", GUEST) == ""
        await it.turn
        await it.chat.asking.settled()
        assert "The person answers: green, with *dots*" in it.results()
        assert it.chat.turns.queued == queued
        assert (
            it.chat.last().text
            == "The model asks: Which colour?\n\n" + r"**green, with \*dots\*** (name2)"
        )


async def test_in_a_group_it_is_answered_by_that_person_or_the_owner_and_by_nobody_else(
    tmp_path: Path, project: Path
):
    async with asked(tmp_path, project, ASK, who=GUEST, group=GROUP, words="Which colour?") as it:
        assert await it.chat.press(it.question.token("red"), STRANGER, GROUP) == OWNER_ONLY
        queued = len(it.chat.turns.queued)
        await it.chat.write("red", STRANGER, GROUP)
        assert len(it.chat.turns.queued) == queued + 1  # words of their own session
        assert it.is_open()
        await it.chat.press(it.question.token("red"), GUEST, GROUP)
        await it.turn
        assert "The person answers: red" in it.results()


async def test_its_choices_are_named_by_number_or_words_after_approve_too(
    tmp_path: Path, project: Path
):
    async with asked(tmp_path, project, ASK, words="Which colour?") as it:
        assert await it.chat.write(f"/approve {it.name} 2") == ""
        await it.turn
        assert "The person answers: blue" in it.results()
