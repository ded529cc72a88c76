"""The commands of a chat: what they do, and who may give them."""

from pathlib import Path

import pytest

from chat_parts import GUEST, OWNER, Chatting, chatting, session_of
from ybs.frontends.gateway.asking import NO_LONGER
from ybs.frontends.gateway.chat_commands import FOR_ALL, FOR_OWNERS, command_in

pytestmark = pytest.mark.integration

GROUP = "-100"


async def shown(chat: Chatting, text: str, who: str = OWNER) -> list[str]:
    """Return the labels of the buttons that a command is answered with."""
    await chat.write(text, who)
    return [each.label for each in chat.last().buttons]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/help", ("help", "")),
        ("  /Mode  auto ", ("mode", "auto")),
        ("/help@my_bot", ("help", "")),
        ("/approve\nABCD yes  no", ("approve", "ABCD yes  no")),
        ("/etc/hosts", ("", "")),
        ("/", ("", "")),
        ("/approve\u200b ABCD yes", ("", "")),
        ("/\u0430pprove ABCD yes", ("", "")),  # a Cyrillic letter
        ("help", ("", "")),
        ("! ls", ("", "")),
    ],
)
def test_what_is_a_command_and_what_are_words(text: str, expected: tuple[str, str]):
    assert command_in(text) == expected


async def test_help_lists_what_its_reader_may_do(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        for word in ("/help", "/start", "/HELP@bot"):
            said = await chat.write(word)
            assert all(f"- /{name} " in said for name in (*FOR_ALL, *FOR_OWNERS))
        said = await chat.write("/help", GUEST)
        assert all(f"- /{name} " in said for name in FOR_ALL)
        assert not any(f"/{name}" in said for name in FOR_OWNERS)


async def test_a_command_that_is_not_known_is_not_sent_to_the_model(tmp_path: Path, project: Path):
    async with session_of(project) as session, chatting(tmp_path, session) as chat:
        for name in (
            "quit",
            "config",
            "trust",
            "permissions",
            "incognito",
            "resume",
            "provider",
            "xyz",
        ):
            assert f"There is no command /{name}" in await chat.write(f"/{name} give")
        assert chat.turns.queued == []


async def test_only_the_owner_changes_mode_model_and_project_and_approves(
    tmp_path: Path, project: Path
):
    async with session_of(project) as session, chatting(tmp_path, session) as chat:
        for name in FOR_OWNERS:
            assert (
                await chat.write(f"/{name} auto", GUEST)
                == f"Only the owner of this assistant may use /{name}."
            )
            assert (
                await chat.write(f"/{name} auto", GUEST, GROUP)
                == f"Only the owner of this assistant may use /{name}."
            )
        assert session.mode == "ask"
        assert chat.chats.bound == {}


async def test_the_mode_is_chosen_by_word_or_button_and_never_bypass(tmp_path: Path, project: Path):
    async with session_of(project) as session, chatting(tmp_path, session) as chat:
        assert "plan" in await chat.write("/mode plan")
        assert session.mode == "plan"
        assert [*chat.chats.kept.values()] == [{"mode": "plan"}]
        labels = await shown(chat, "/mode")
        assert any(each.startswith("✓ plan") for each in labels)
        assert not any("bypass" in each for each in labels)
        assert "Mode: auto" in await chat.press(chat.last().token("auto"))
        assert session.mode == "auto"
        for word in ("bypass", "BYPASS", " bypass ", "6", "#6", "6.", "byp", "ByPass"):
            assert await chat.write(f"/mode {word}") != ""
            assert session.mode == "auto"


async def test_a_button_of_a_menu_counts_once_and_only_for_the_owner(tmp_path: Path, project: Path):
    async with session_of(project) as session, chatting(tmp_path, session) as chat:
        await chat.write("/mode", OWNER, GROUP)
        menu = chat.last()
        plan, auto = menu.token("plan"), menu.token("auto")
        assert "Only the owner" in await chat.press(auto, GUEST, GROUP)
        assert await chat.press(auto, OWNER) == NO_LONGER  # another chat
        assert session.mode == "ask"
        await chat.press(plan, OWNER, GROUP)
        assert session.mode == "plan"
        assert [await chat.press(each, OWNER, GROUP) for each in (plan, auto)] == [NO_LONGER] * 2
        assert session.mode == "plan"


async def test_new_stops_what_runs_and_begins_anew(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        key = f"telegram:private:{GUEST}:{GUEST}"
        chat.turns.busy.add(key)
        assert "A new conversation" in await chat.write("/new", GUEST)
        assert chat.chats.anew == [key]
        assert not chat.turns.running(key)


async def test_stop_stops_the_turn_of_this_chat_alone(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        chat.turns.busy |= {
            f"telegram:private:{GUEST}:{GUEST}",
            f"telegram:private:{OWNER}:{OWNER}",
        }
        assert await chat.write("/stop", GUEST) == "Stopped."
        assert await chat.write("/stop", GUEST) == "Nothing is running here."
        assert chat.turns.busy == {f"telegram:private:{OWNER}:{OWNER}"}


async def test_status_says_more_to_the_owner_than_to_a_guest(tmp_path: Path, project: Path):
    async with session_of(project) as session, chatting(tmp_path, session, usd_per_day=5) as chat:
        said = await chat.write("/status")
        assert str(project) in said
        assert "Left to spend today: $5.00" in said
        said = await chat.write("/status", GUEST)
        assert said == "Model: scripted. Mode: ask. Nothing is running."


async def test_the_owner_binds_a_chat_to_a_project(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        key = f"telegram:private:{OWNER}:{OWNER}"
        assert await shown(chat, "/project") == ["shop", "none"]
        assert await chat.press(chat.last().token("shop")) == "This chat works in shop now."
        assert chat.chats.bound == {key: "shop"}
        assert await chat.write("/project none") == "This chat works in its own folder now."
        assert chat.chats.bound == {key: ""}
        assert "There is no project" in await chat.write("/project ../etc")
        chat.turns.busy.add(key)
        assert "A turn is running" in await chat.write("/project shop")
        assert chat.chats.bound == {key: ""}


async def test_undo_takes_the_last_turn_back(tmp_path: Path, project: Path):
    from ybs.testing import call

    script = (call("write_file", path="new", content="x"), "done")
    async with (
        session_of(project, *script, mode="accept-edits") as session,
        chatting(tmp_path, session) as chat,
    ):
        await session.send("go")
        assert (project / "new").exists()
        assert "Took back the last turn" in await chat.write("/undo")
        assert not (project / "new").exists()
        assert "Usage: /undo" in await chat.write("/undo everything")


async def test_the_owner_goes_on_with_a_saved_conversation(tmp_path: Path, project: Path):
    async with session_of(project, "first") as session:
        await session.send("an old conversation")
        old = session.journal.name
    async with session_of(project, "second") as session, chatting(tmp_path, session) as chat:
        await session.send("a new conversation")
        labels = await shown(chat, "/sessions")
        assert labels[0].startswith("✓ A new conversation")
        said = await chat.press(chat.last().token("An old conversation"))
        assert "Resumed" in said
        assert session.journal.name == old
        assert chat.chats.kept == {f"telegram:private:{OWNER}:{OWNER}": {"session": old}}


async def test_where_the_session_cannot_be_opened_the_chat_is_told_why(tmp_path: Path):
    async with chatting(tmp_path) as chat:
        assert await chat.write("/mode plan") == "The project's folder is not there."
