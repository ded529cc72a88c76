"""`ybs acp` as editors see it: sessions, prompts, updates, questions, and files that are not saved yet."""

import asyncio
import base64
import json
import urllib.parse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from hosts import host_at
from mcp_http import quiet_root, real_server, served
from mcp_servers import entry_of
from processes import comes
from saving import save
from ybs.core.errors import AuthError, ModelError
from ybs.core.messages import Image, Text, Thinking, ToolCall
from ybs.core.open_question import OpenQuestion
from ybs.core.remedies import Remedy
from ybs.session.options import Options
from ybs.testing import ScriptedModel, call
from ybs.testing.script import ScriptedAnswer
from ybs.transcripts.store import SessionStore

#: The first one imports the SDK, which takes seconds on a busy machine.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def link(acp: Any, path: Path, lines: str = "") -> Any:
    return acp.resource_link_block(path.name, f"file://{path}{lines}")


async def test_a_turn_is_told_as_thoughts_calls_and_words(clients: Any, project: Path):
    (project / "a").write_text("one\ntwo\n")
    read_a = ToolCall(id="", name="read_file", arguments=Raw(b'{"path":"a"}'))
    thinking = ScriptedAnswer(parts=(Thinking(text="Look first."), read_a))
    async with clients.edited(project, thinking, "It says **two**.") as editor:
        done = await editor.say(await editor.new(project), "What does a say?")
    assert (done.stop_reason, done.usage.output_tokens) == ("end_turn", 10)
    assert "".join(c.content.text for c in editor.of("agent_thought_chunk")) == "Look first."
    assert editor.text.endswith("It says **two**.")
    read = editor.call("")
    assert (read["kind"], read["status"]) == ("read", "completed")
    assert read["locations"] == [{"path": str(project / "a")}]
    assert read["raw_input"] == {"path": "a"}
    assert "two" in read["content"][0]["content"]["text"]
    assert editor.of("usage_update")[-1].size == 32_768
    assert editor.of("session_info_update")[-1].title


async def test_what_is_asked_has_one_answer_of_each_kind(clients: Any, project: Path):
    (project / "a").write_text("text")
    script = [call("delete_file", path="a"), "Gone."]
    async with clients.edited(project, *script, mode="ask") as editor:
        await editor.say(await editor.new(project), "delete it")
    (asked, names), rule = editor.asked[0], "delete_file(a)"
    assert asked.title == "Delete a"
    assert names == ["Yes", "No", f"Always in this session: {rule}"]
    assert not (project / "a").exists()


async def test_always_holds_for_the_session_and_no_is_read_by_the_model(clients, project):
    for name in ("a", "b", "c"):
        (project / name).write_text("text")
    model = ScriptedModel(
        [call("delete_file", path="a"), "1", call("delete_file", path="b"), "2", call("delete_file", path="c"), "3"]
    )  # fmt: skip
    editor = clients.Editor("Always in this session")
    async with clients.edited(project, editor=editor, model=model, mode="ask"):
        session = await editor.new(project)
        await editor.say(session, "a")
        editor.choice = "No"
        await editor.say(session, "b")
        await editor.say(session, "c")
    assert [(project / name).exists() for name in ("a", "b", "c")] == [False, True, True]
    assert len(editor.asked) == 3
    assert "the person said no" in model.requests[-1].messages[-1].output


async def test_a_question_of_the_models_own_is_a_form(clients: Any, project: Path):
    question = call("ask_user", question="Which one?", options=["red", "blue"])
    model = ScriptedModel([question, "1", question, "2", question, "3"])
    editor = clients.Editor("blue")
    async with clients.edited(project, editor=editor, model=model, offers=clients.ALL):
        session = await editor.new(project)
        editor.form = {"answer": "1"}
        await editor.say(session, "ask")
        editor.form = {"own_words": "green"}
        await editor.say(session, "ask")
        editor.form = None
        await editor.say(session, "ask")
    answers = [request.messages[-1].output for request in model.requests[1::2]]
    assert "blue" in answers[0]
    assert "green" in answers[1]
    assert "no answer" in answers[2]
    assert editor.forms[0][0] == "The model asks: Which one?"
    assert editor.asked == []


async def test_a_stopped_turn_is_answered_at_once_also_at_an_open_question(clients, project):
    (project / "a").write_text("text")
    editor = clients.Editor(None)
    script = [call("delete_file", path="a"), "never", "next"]
    async with clients.edited(project, *script, editor=editor, mode="ask") as editor:
        session = await editor.new(project)
        turn = asyncio.create_task(editor.say(session, "delete it"))
        waiting = asyncio.create_task(editor.say(session, "and then"))
        await asyncio.wait_for(editor.has_asked.wait(), 10)
        await editor.agent.cancel(session_id=session)
        assert (await asyncio.wait_for(turn, 5)).stop_reason == "cancelled"
        assert (await waiting).stop_reason == "cancelled"
        assert (await editor.say(session, "go on")).stop_reason == "end_turn"
    assert (project / "a").exists()
    assert editor.call("Delete a")["status"] == "failed"


async def test_prompts_wait_for_the_running_one_and_sessions_do_not(clients: Any, project: Path):
    gate = asyncio.Event()

    async def later(_: Any) -> str:
        await gate.wait()
        return "first"

    model = ScriptedModel([later, "other", "second"])
    async with clients.edited(project, model=model) as editor:
        one, other = await editor.new(project), await editor.new(project)
        first = asyncio.create_task(editor.say(one, "1"))
        second = asyncio.create_task(editor.say(one, "2"))
        assert await comes(lambda: model.requests)
        status = await editor.say(one, "/status")  # beside the turn
        assert (await editor.say(other, "3")).stop_reason == "end_turn"
        assert not first.done()
        gate.set()
        assert {(await first).stop_reason, (await second).stop_reason} == {"end_turn"}
        assert status.stop_reason == "end_turn"
    assert [request.messages[-1].text for request in model.requests] == ["1", "3", "2"]


async def test_a_prompt_brings_links_resources_and_pictures(clients: Any, project: Path):
    acp, model = clients.acp, ScriptedModel(["Seen."])
    (project / "a b.txt").write_text("1\n2\n3\n")
    resource = acp.embedded_text_resource("file:///elsewhere/x.py#L5:9", "print(@a)")
    picture = acp.image_block(base64.b64encode(PIXEL).decode(), "image/png")
    async with clients.edited(project, model=model) as editor:
        await editor.say(
            await editor.new(project), "Look at ", link(acp, project / "a b.txt", "#L2:3"), " and ",
            acp.resource_link_block("page", "https://example.org/"), acp.resource_block(resource), picture,
        )  # fmt: skip
    parts = model.requests[0].messages[-1].content
    text = "".join(each.text for each in parts if isinstance(each, Text))
    assert "page (https://example.org/)" in text
    assert "[/elsewhere/x.py#L5:9]\nprint(@a)" in text
    assert "2\n" in text.partition("lines 2-3")[2]
    assert [each.media_type for each in parts if isinstance(each, Image)] == ["image/png"]


async def test_a_link_in_a_command_of_the_person_is_one_word(clients, project):
    for name in ("a;touch bad;echo .txt", "$(touch bad) b.txt", "it's.txt"):
        (project / name).write_text("1\n")
    model = ScriptedModel(["1", "2", "3"])
    async with clients.edited(project, model=model, mode="bypass") as editor:
        session = await editor.new(project)
        for name in ("a;touch bad;echo .txt", "$(touch bad) b.txt", "it's.txt"):
            await editor.say(session, "!wc -l ", link(clients.acp, project / name))
    assert not (project / "bad").exists()
    said = [request.messages[-1].text for request in model.requests]
    assert ["1 " in each for each in said] == [True] * 3


async def test_a_link_right_behind_a_word_is_the_file_that_it_leads_to(clients, project, home):
    """Else the `@` in the name of a folder would begin a mention of its own."""
    secret = home / "secret.txt"
    secret.write_text("the secret")
    evil = project / "src @" / str(secret).lstrip("/")
    evil.parent.mkdir(parents=True)
    evil.write_text("harmless")
    model = ScriptedModel(["1", "2"])
    async with clients.edited(project, model=model) as editor:
        session = await editor.new(project)
        for words in ("Explain", "(see"):
            await editor.say(session, words, link(clients.acp, evil), ")")
    for request in model.requests:
        text = request.messages[-1].text
        assert "harmless" in text
        assert "the secret" not in text


async def test_what_others_named_or_wrote_is_no_command_and_names_no_file(clients, project, home):
    acp, model = clients.acp, ScriptedModel(["1", "2", "3", "4"])
    (home / "secret.txt").write_text("the secret")
    web = "https://example.org/"
    evil = acp.resource_link_block(f"!touch bad @{home}/secret.txt", web)
    text = acp.embedded_text_resource(web, f"\ntouch bad\n@{home}/secret.txt")
    async with clients.edited(project, model=model, mode="bypass") as editor:
        session = await editor.new(project)
        await editor.say(session, " \n")
        await editor.say(session, evil)
        await editor.say(session, "", evil)
        await editor.say(session, acp.resource_block(text))
        await editor.say(session, "/help model", acp.resource_block(text))
        await editor.say(session, "!echo own", acp.resource_block(text))
    assert not (project / "bad").exists()
    assert "the secret" not in str(model.requests[-1].messages)
    assert model.requests[0].messages[-1].text.startswith("!touch bad")
    assert "own" in model.requests[3].messages[-1].text
    assert len(model.requests) == 4


async def test_a_text_of_the_editor_attaches_no_file_outside_unasked_and_a_link_does(
    clients: Any, project: Path, home: Path
):
    """Editors send what was pasted, a selection and a project's AGENTS.md as texts, beside what was typed."""
    (home / "diary.md").write_text("the diary")
    (project / "plan.md").write_text("the plan")
    rules = f"Sharing `AGENTS.md`:\n\nStyle: @{home}/diary.md and @plan.md\n"
    model = ScriptedModel(["1", "2", "3"])
    editor = clients.Editor("No")
    async with clients.edited(project, editor=editor, model=model):
        session = await editor.new(project)
        await editor.say(session, rules, "What does this do?")
        assert len(editor.asked) == 1
        await editor.say(session, rules, "And ", link(clients.acp, home / "diary.md"))
        assert len(editor.asked) == 1
        editor.choice = "Yes"
        (home / "list.md").write_text("the list")
        await editor.say(session, f"see @{home}/list.md")
    texts = [request.messages[-1].text for request in model.requests]
    assert ["the plan" in each for each in texts] == [True, True, False]
    assert ["the diary" in each for each in texts] == [False, True, False]
    assert ["the list" in each for each in texts] == [False, False, True]


async def test_of_two_texts_in_a_row_none_is_a_command(clients: Any, project: Path):
    model = ScriptedModel(["1", "2", "3"])
    picture = clients.acp.image_block(base64.b64encode(PIXEL).decode(), "image/png")
    async with clients.edited(project, model=model, mode="bypass") as editor:
        session = await editor.new(project)
        await editor.say(session, "!touch ran; true\n", "What does this do?")
        await editor.say(session, "!touch ran; true\n", " ", picture, "What does this do?")
        await editor.say(session, "/help", "What does this do?")
        assert not (project / "ran").exists()
        assert len(model.requests) == 3
        await editor.say(session, "/help", " ")
        assert len(model.requests) == 3


async def test_a_document_beside_a_link_is_no_command_and_a_line_around_one_is(clients, project):
    """An editor sends a document of the project as a text, as it sends the words behind the link."""
    model, cart = ScriptedModel(["1", "2"]), link(clients.acp, project / "cart.py")
    async with clients.edited(project, model=model, mode="bypass") as editor:
        session = await editor.new(project)
        await editor.say(session, "!touch ran #\n", cart, "please review this file")
        assert not (project / "ran").exists()
        await editor.say(session, "!touch ran #", cart, " as typed")
        assert (project / "ran").exists()


async def test_a_link_names_its_own_file_and_no_other_whatever_that_is_called(
    clients, project, home
):
    acp, model = clients.acp, ScriptedModel(["1"] * 7)
    secret = home / "secret.txt"
    secret.write_text("the secret")
    (home / "x.png").write_bytes(PIXEL)
    (project / "report").write_text("x")
    names = (f"report\n@{secret} .md", f"a {home}/x.png b", "a\\")
    for name in names:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("harmless\n")
    web = acp.resource_link_block("page", "https://example.org/")
    async with clients.edited(project, model=model) as editor:
        session = await editor.new(project)
        for name in names:
            await editor.say(session, "Look at ", _quoted(acp, project / name), ' and "x"')
        evil = _quoted(acp, project / names[0])
        await editor.say(session, " !cat ", evil)
        await editor.say(session, "!cat ", evil, web, " and more")
    texts = [request.messages[-1].text for request in model.requests]
    assert ["harmless" in each for each in texts] == [True, True, False, True, False]
    assert "the secret" not in "".join(texts)
    assert not any(isinstance(each, Image) for each in model.requests[1].messages[-1].content)


async def test_a_link_within_open_quotes_of_a_command_makes_words_of_it(
    clients: Any, project: Path
):
    acp, name = clients.acp, "note$(touch ran).md"
    (project / name).write_text("harmless\n")
    model = ScriptedModel(["Noted."] * 3)
    async with clients.edited(project, model=model) as editor:
        session = await editor.new(project)
        evil, plain = _quoted(acp, project / name), _quoted(acp, project / "plain.md")
        await editor.say(session, '!echo "read ', evil, ' tomorrow"')
        await editor.say(session, '!echo "read ', plain, ' tomorrow"')
        await editor.say(session, '!echo "x"; cat ', evil)
    texts = [request.messages[-1].text for request in model.requests]
    ran = ["[Shell command output]" in each for each in texts]
    assert ran == [False, True, True], "what may not stand in the line makes it words for the model"
    assert f"read {project}/plain.md tomorrow" in texts[1]
    assert "harmless" in texts[2]
    assert not (project / "ran").exists()


def _quoted(acp: Any, path: Path) -> Any:
    return acp.resource_link_block("link", f"file://{urllib.parse.quote(str(path))}")


async def test_what_is_no_picture_is_refused_in_words(clients: Any, project: Path):
    acp = clients.acp
    async with clients.edited(project) as editor:
        session = await editor.new(project)
        for data, why in (("%%%", "not base64"), (base64.b64encode(b"text").decode(), "not a PNG")):
            with pytest.raises(acp.RequestError, match=why):
                await editor.say(session, acp.image_block(data, "image/png"))
        with pytest.raises(acp.RequestError, match="links, resources and pictures"):
            await editor.say(session, acp.audio_block("AA==", "audio/wav"))


async def test_commands_are_offered_and_answer_as_text_and_tables(clients: Any, project: Path):
    async with clients.edited(project, "Hello.") as editor:
        session = await editor.new(project)
        await editor.say(session, "hi")
        done = await editor.say(session, "/context")
        assert done.stop_reason == "end_turn"
        await editor.say(session, "/quit")
        await editor.say(session, "!!ls")
        await editor.say(session, "/nonsense")
    offered = {
        each.name: each for each in editor.of("available_commands_update")[0].available_commands
    }
    assert {"undo", "compact", "plan", "mcp"} <= offered.keys()
    assert not {"quit", "new", "resume", "copy"} & offered.keys()
    assert offered["compact"].input.root.hint
    assert "| --- | --: |" in editor.text
    assert "/quit needs a terminal" in editor.text
    assert "needs a terminal" in editor.text
    assert "Unknown command" in editor.text


async def test_the_steps_of_the_model_are_the_plan(clients: Any, project: Path):
    steps = call("todo", steps="[x] look\n[>] write\n[ ] test")
    async with clients.edited(project, steps, "On it.") as editor:
        await editor.say(await editor.new(project), "go")
    plan = editor.of("plan")[-1].entries
    assert [(each.content, each.status) for each in plan] == [
        ("look", "completed"),
        ("write", "in_progress"),
        ("test", "pending"),
    ]


async def test_mode_model_and_effort_are_chosen(clients: Any, project: Path):
    acp = clients.acp
    async with clients.edited(project, mode="ask") as editor:
        agent, session = editor.agent, await editor.new(project)
        await agent.set_session_mode(session_id=session, mode_id="plan")
        assert await comes(lambda: editor.of("current_mode_update"))
        assert editor.of("current_mode_update")[-1].current_mode_id == "plan"
        done = await agent.set_config_option(session_id=session, config_id="mode", value="auto")
        known = {each.id: each for each in done.config_options}
        assert [*known] == ["mode", "model", "effort"]
        assert known["mode"].current_value == "auto"
        assert known["model"].current_value == "/model scripted"
        assert known["effort"].category == "thought_level"
        for option, value in (("mode", "none"), ("colour", "red"), ("model", "/quit")):
            with pytest.raises(acp.RequestError, match="There is no"):
                await agent.set_config_option(session_id=session, config_id=option, value=value)


async def test_live_output_and_the_result_of_a_command_are_told(clients: Any, project: Path):
    script = [call("run_shell", command="echo one; sleep 0.4; echo two"), "Done."]
    async with clients.edited(project, *script, mode="bypass") as editor:
        await editor.say(await editor.new(project), "run it")
    shown = [each.content[0].content.text for each in editor.of("tool_call_update") if each.content]
    assert any("one" in text and "two" not in text for text in shown)
    assert "two" in shown[-1]
    assert editor.call("Run")["kind"] == "execute"


async def test_what_ends_a_turn_is_said_in_the_protocols_terms(clients: Any, project: Path):
    acp = clients.acp
    refused = ScriptedAnswer(parts=(Text(text="No."),), stop_reason="refusal")
    cut = ScriptedAnswer(parts=(Text(text="And"),), stop_reason="length")
    looping = [call("list_files", path=".")] * 3
    script = [refused, cut, cut, cut, cut, *looping]
    async with clients.edited(project, *script) as editor:
        session = await editor.new(project)
        assert (await editor.say(session, "1")).stop_reason == "refusal"
    async with clients.edited(project, *looping, max_turns=2) as editor:
        assert (await editor.say(await editor.new(project), "2")).stop_reason == "max_turn_requests"
        assert "agent.max_iterations" in editor.text
    down = ModelError("The server is on fire.", remedies=(Remedy("change_model"),))
    unknown = AuthError("There is no key.", remedies=(Remedy("set_key", "OPENAI_API_KEY"),))
    async with clients.edited(project, down, unknown) as editor:
        session = await editor.new(project)
        with pytest.raises(acp.RequestError, match="on fire") as error:
            await editor.say(session, "3")
        assert (error.value.code, error.value.data) == (-32603, {"remedies": ["change_model"]})
        assert "/model" in str(error.value)
        with pytest.raises(acp.RequestError, match="no key") as error:
            await editor.say(session, "4")
        assert error.value.code == -32000


async def test_a_session_is_listed_loaded_resumed_forked_and_closed(clients: Any, project: Path):
    (project / "a").write_text("text")
    script = [call("read_file", path="a"), "It says text."]
    async with clients.edited(project, *script) as editor:
        session = await editor.new(project)
        empty = await editor.new(project)
        await editor.say(session, "Read a.")
        await editor.agent.close_session(session_id=session)
        await editor.agent.close_session(session_id=empty)
        with pytest.raises(clients.acp.RequestError, match="is open here"):
            await editor.say(session, "gone")
    async with clients.edited(project, "Once more.", "A fork.") as editor:
        agent = editor.agent
        listed = (await agent.list_sessions(cwd=str(project))).sessions
        assert [(each.session_id, each.cwd) for each in listed] == [(session, str(project))]
        assert (await agent.list_sessions(cwd="/elsewhere")).sessions == []
        loaded = await agent.load_session(session_id=session, cwd=str(project), mcp_servers=[])
        assert loaded.config_options
        assert editor.of("user_message_chunk")[0].content.text == "Read a."
        assert editor.call("Read a")["status"] == "completed"
        assert editor.text == "It says text."
        assert (await editor.say(session, "Again.")).stop_reason == "end_turn"
        fork = await agent.fork_session(session_id=session, cwd=str(project), mcp_servers=[])
        assert fork.session_id != session
        assert (await editor.say(fork.session_id, "Here?")).stop_reason == "end_turn"
        with pytest.raises(clients.acp.RequestError, match="no saved session"):
            await agent.load_session(session_id="../../etc", cwd=str(project), mcp_servers=[])
        await agent.close_session(session_id=session)
        seen = len(editor.of("user_message_chunk"))
        await agent.resume_session(session_id=session, cwd=str(project), mcp_servers=[])
        assert len(editor.of("user_message_chunk")) == seen
        assert len((await agent.list_sessions()).sessions) == 2


async def test_a_session_that_is_open_is_told_again_from_its_beginning(clients: Any, project: Path):
    async with clients.edited(project, "Hello.", "Again.") as editor:
        session = await editor.new(project)
        await editor.say(session, "hi")
        editor.updates.clear()
        await editor.agent.load_session(session_id=session, cwd=str(project), mcp_servers=[])
        assert [each.content.text for each in editor.of("user_message_chunk")] == ["hi"]
        assert editor.text == "Hello."
        await editor.say(session, "more")
        assert editor.text.endswith("Again.")


async def test_a_picture_alone_is_a_prompt(clients: Any, project: Path):
    model = ScriptedModel(["A pixel."])
    picture = clients.acp.image_block(base64.b64encode(PIXEL).decode(), "image/png")
    async with clients.edited(project, model=model) as editor:
        await editor.say(await editor.new(project), picture)
    assert editor.text.endswith("A pixel.")
    assert [each.data for each in model.requests[0].messages[-1].content] == [PIXEL]


async def test_long_lists_of_sessions_have_pages(clients: Any, project: Path, home: Path):
    store = SessionStore(host_at(home).sessions_folder)
    for number in range(205):
        save(store, f"session-20260101-{number:06}", project=str(project))
    names: list[str] = []
    async with clients.edited(project) as editor:
        cursor: str | None = None
        for _ in range(3):
            page = await editor.agent.list_sessions(cwd=str(project), cursor=cursor)
            names += [each.session_id for each in page.sessions]
            cursor = page.next_cursor
        with pytest.raises(clients.acp.RequestError, match="cursor"):
            await editor.agent.list_sessions(cursor="nonsense")
    assert cursor is None
    assert len(set(names)) == 205


async def test_unsaved_text_is_what_is_read_and_edited(clients: Any, project: Path):
    (project / "a.txt").write_text("saved\r\nend\r\n")
    model = ScriptedModel(
        [
            call("read_file", path="a.txt"),
            call("edit_file", path="a.txt", old_text="typed", new_text="changed"),
            "Done.",
        ]
    )
    editor = clients.Editor(**{"a.txt": "typed\nend\n"})
    async with clients.edited(project, editor=editor, model=model, offers=clients.ALL, mode="ask"):
        session = await editor.new(project)
        assert (project / "a.txt").read_bytes() == b"saved\r\nend\r\n"
        await editor.say(session, "edit it")
        (diff,) = editor.call("Edit a.txt")["content"]
        assert diff["path"] == str(project / "a.txt")
        assert "typed" in diff["old_text"]
        assert "changed" in diff["new_text"]
        assert editor.written == [
            ("a.txt", "typed\r\nend\r\n"),  # saved first, as the person would
            ("a.txt", "changed\r\nend\r\n"),
        ]
        assert (project / "a.txt").read_bytes() == b"changed\r\nend\r\n"
        await editor.say(session, "/undo")
        assert (project / "a.txt").read_bytes() == b"typed\r\nend\r\n"
    read = model.requests[1].messages[-1].output
    assert "typed" in read
    assert "saved" not in read


async def test_reading_saves_nothing_and_what_is_gone_is_not_read(clients: Any, project: Path):
    (project / "a.txt").write_text("saved\n")
    model = ScriptedModel(
        [call("read_file", path="a.txt"), "1", call("read_file", path="a.txt"), "2"]
    )
    editor = clients.Editor(**{"a.txt": "typed\n"})
    async with clients.edited(project, editor=editor, model=model, offers=clients.ALL):
        session = await editor.new(project)
        await editor.say(session, "read")
        assert (project / "a.txt").read_text() == "saved\n"
        editor.buffers.clear()  # closed without saving
        await editor.say(session, "read")
    assert editor.written == []
    texts = [r.messages[-1].output for r in model.requests[1::2]]  # type: ignore[union-attr] - tool results
    assert ["typed" in text for text in texts] == [True, False]


async def test_no_name_in_a_question_is_markdown():
    """An editor draws the text of a question."""
    from ybs.frontends.acp.editor_session import asked  # behind the SDK

    class Asked:
        text = ""

        async def request_permission(self, _session: str, call: Any, _options: Any) -> Any:
            self.text = call.content[0].content.text
            return SimpleNamespace(outcome=None)

    words = "it wants to write to 'a** ![](http://x.org/p.png) ```'"
    question = OpenQuestion(
        id="1", name="run_shell", title="Run", preview="ls", reason=words, warnings=(words,)
    )
    client = Asked()
    assert not (await asked(client, "s", question, has_forms=False)).is_allowed
    assert client.text.split("\n\n") == [
        "```\nls\n```",
        f"````\nAsked because {words}.\n````",
        f"**Warning**\n````\n{words}\n````",
    ]


async def test_what_the_person_types_meanwhile_is_not_overwritten(clients: Any, project: Path):
    (project / "a.txt").write_text("one\n")
    editor = clients.Editor(**{"a.txt": "two\n"})
    model = ScriptedModel([call("write_file", path="a.txt", content="new\n"), "Oh."])

    class Typing(clients.Editor):
        async def request_permission(self, *args: Any, **more: Any) -> Any:
            self.buffers["a.txt"] = "three\n"
            return await super().request_permission(*args, **more)

    editor = Typing(**{"a.txt": "two\n"})
    async with clients.edited(project, editor=editor, model=model, offers=clients.ALL, mode="ask"):
        await editor.say(await editor.new(project), "write it")
    assert editor.buffers["a.txt"] == "three\n"
    assert (project / "a.txt").read_text() == "one\n"
    assert "changed" in model.requests[-1].messages[-1].output


async def test_a_prompt_that_is_stopped_while_the_editor_is_asked_for_its_file_is_not_sent(
    clients: Any, project: Path
):
    (project / "a.txt").write_text("text")
    is_asked, may_answer = asyncio.Event(), asyncio.Event()

    class Slow(clients.Editor):
        async def read_text_file(self, session_id: str, path: str, **more: Any) -> Any:
            is_asked.set()
            await may_answer.wait()
            return await super().read_text_file(session_id, path, **more)

    editor, model = Slow(**{"a.txt": "text"}), ScriptedModel(["Hello."])
    async with clients.edited(project, model=model, editor=editor, offers=clients.ALL):
        session = await editor.new(project)
        turn = asyncio.create_task(editor.say(session, link(clients.acp, project / "a.txt")))
        await is_asked.wait()
        await editor.agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        may_answer.set()
        assert (await editor.say(session, "hi")).stop_reason == "end_turn"
    assert len(model.requests) == 1


async def test_a_secret_in_unsaved_text_is_masked(clients: Any, project: Path):
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA2bC4"
    (project / "a.txt").write_text("saved\n")
    editor = clients.Editor(**{"a.txt": f"token = {secret}\n"})
    model = ScriptedModel([call("read_file", path="a.txt"), "Read."])
    async with clients.edited(project, editor=editor, model=model, offers=clients.ALL):
        await editor.say(await editor.new(project), "read it")
    assert "[ybs:secret:" in model.requests[1].messages[-1].output
    told = str([each.message for each in editor.messages if "update" in str(each.message)])
    assert secret not in told


async def test_an_editor_is_asked_for_no_file_that_tools_may_not_read(clients, project, home):
    key = home / ".ssh" / "id_ed25519"
    key.parent.mkdir()
    key.write_text("key")
    editor = clients.Editor("No", id_ed25519="key of the editor")
    model = ScriptedModel([call("read_file", path=str(key)), "No."])
    async with clients.edited(project, editor=editor, model=model, offers=clients.ALL):
        await editor.say(await editor.new(project), "read it")
    assert "key of" not in str(model.requests[-1].messages)
    methods = [each.message.get("method") for each in editor.messages]
    assert "fs/read_text_file" not in methods


async def test_an_editor_is_asked_and_told_nothing_while_a_command_may_exchange_folders(
    clients: Any, project: Path
):
    (project / "a.txt").write_text("saved\n")
    model = ScriptedModel(
        [
            call("run_shell", command="exec sleep 60", background=True),
            call("read_file", path="a.txt"),
            call("edit_file", path="a.txt", old_text="saved", new_text="changed"),
            call("shell_job", action="stop", id="job-1"),
            call("read_file", path="a.txt"),
            "Done.",
        ]
    )
    editor, options = clients.Editor(**{"a.txt": "typed\n"}), {"sandbox": True, "mode": "auto"}
    async with clients.edited(project, editor=editor, model=model, offers=clients.ALL, **options):
        await editor.say(await editor.new(project), link(clients.acp, project / "a.txt"))
        assert (project / "a.txt").read_text() == "changed\n"
    assert editor.written == []
    told = [each.messages[-1].output for each in model.requests[2:]]  # type: ignore[union-attr] - tool results
    assert "typed" not in told[0]
    assert "typed" in told[-1], "once nothing runs it is asked again"


async def test_an_editor_that_offers_no_files_is_asked_for_none(clients: Any, project: Path):
    (project / "a.txt").write_text("saved\n")
    editor = clients.Editor(**{"a.txt": "typed\n"})
    script = [call("edit_file", path="a.txt", old_text="saved", new_text="new"), "Done."]
    async with clients.edited(project, *script, editor=editor, mode="bypass"):
        await editor.say(await editor.new(project), "edit")
    assert (project / "a.txt").read_text() == "new\n"
    assert editor.written == []


async def test_the_editors_mcp_servers_are_shown_and_held_to_a_projects_rules(clients, project):
    schema = clients.schema
    stdio = schema.McpServerStdio(name="own", command="my-server", args=["--key"], env=[])
    docker = schema.McpServerStdio(name="box", command="docker", args=["run"], env=[])
    reads = schema.McpServerStdio(name="spy", command="x", args=["${OPENAI_API_KEY}"], env=[])
    header = schema.HttpHeader(name="X", value="1")
    http = schema.HttpMcpServer(
        type="http", name="web", url="http://127.0.0.1:9/mcp", headers=[header]
    )
    other = schema.AcpMcpServer(type="acp", name="tunnel", server_id="1")
    async with clients.edited(project, "Hi.", sandbox=True) as editor:
        session = await editor.new(project, mcp_servers=[stdio, docker, reads, http])
        assert await comes(lambda: "web" in editor.text and "spy" in editor.text)
        await editor.say(session, "/mcp")
        with pytest.raises(clients.acp.RequestError, match="not offered"):
            await editor.new(project, mcp_servers=[other])
    assert "The editor's MCP server own (\\`my-server --key\\`) has the network." in editor.text
    assert (
        "The editor's MCP server web (\\`http://127.0.0.1:9/mcp\\`) runs elsewhere." in editor.text
    )
    assert "'spy' is not used, because it reads OPENAI_API_KEY" in editor.text
    assert "an editor cannot start containers" in editor.text


async def test_a_server_of_the_editor_is_called_in_the_sandbox(clients: Any, project: Path):
    entry = entry_of(project)
    server = clients.schema.McpServerStdio(
        name="own", command=entry["command"], args=[*entry["args"]], env=[]
    )
    model = ScriptedModel([call("mcp__own__echo", text="hello"), "It answers."])
    async with clients.edited(project, model=model, sandbox=True, mode="bypass") as editor:
        session = await editor.new(project, mcp_servers=[server])
        assert (await editor.say(session, "call it")).stop_reason == "end_turn"
    assert "hello" in model.requests[1].messages[-1].output


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_of_the_editor_at_an_address_is_called_with_its_headers(
    clients: Any, project: Path, kind: str
):
    server, schema = real_server(), clients.schema
    app = server.streamable_http_app() if kind == "http" else server.sse_app(sse_path="/mcp")
    made = schema.HttpMcpServer if kind == "http" else schema.SseMcpServer
    model = ScriptedModel([call("mcp__web__add", a=2, b=40), call("mcp__web__headers"), "Done."])
    with quiet_root():
        async with (
            served(app) as url,
            clients.edited(project, model=model, sandbox=True, mode="bypass") as editor,
        ):
            header = schema.HttpHeader(name="X-Of-Editor", value="from the editor")
            web = made(type=kind, name="web", url=url, headers=[header])
            session = await editor.new(project, mcp_servers=[web])
            assert (await editor.say(session, "add them")).stop_reason == "end_turn"
            await editor.say(session, "/mcp")
            await editor.agent.close_session(session_id=session)
    first, second = (request.messages[-1].output for request in model.requests[1:])
    assert first == "42"
    assert "from the editor" in second
    assert f"The editor's MCP server web (\\`{url}\\`) runs elsewhere." in editor.text


async def test_what_is_missing_is_named_and_looked_for_again(clients, project, home):
    host = host_at(home)
    options = Options.of(project, {"host": host})
    editor = clients.Editor()
    async with clients.connected(options, editor) as agent:
        offers = clients.schema.ClientCapabilities(auth={"terminal": True})
        greeting = await agent.initialize(protocol_version=1, client_capabilities=offers)
        (method,) = greeting.auth_methods
        assert (method.id, method.type, method.args) == ("setup", "terminal", ["setup"])
        assert "No model is configured yet" in (method.description or "")
        assert "ybs setup" in (method.description or "")
        for asking in (
            agent.authenticate(method_id="setup"),
            agent.new_session(cwd=str(project), mcp_servers=[]),
        ):
            with pytest.raises(clients.acp.RequestError, match="No model is configured") as error:
                await asking
            assert error.value.code == -32000
        host.config_folder.mkdir(parents=True, exist_ok=True)
        settings = {"llm": {"provider": "ollama", "model": "m", "endpoint": "http://127.0.0.1:9"}}
        host.user_config_file.write_text(json.dumps(settings))
        assert await agent.authenticate(method_id="setup") is not None
        assert (await agent.new_session(cwd=str(project), mcp_servers=[])).session_id
    clients.check(editor.messages)


async def test_a_folder_that_is_none_is_refused(clients: Any, project: Path):
    async with clients.edited(project) as editor:
        for folder, why in (("relative", "not an absolute path"), ("/nonexistent", "not a folder")):
            with pytest.raises(clients.acp.RequestError, match=why):
                await editor.agent.new_session(cwd=folder, mcp_servers=[])
