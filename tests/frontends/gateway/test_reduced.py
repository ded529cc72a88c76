"""What a session of a chat may do: less than one at a terminal, whatever the settings allow there."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from chat_parts import GUEST, OWNER, Ledger
from hosts import this_host
from ybs.config.schema import GatewaySettings
from ybs.core.errors import ConfigError
from ybs.frontends.gateway.asking import ChatQuestions
from ybs.frontends.gateway.channel import ChatPlace, Incoming
from ybs.frontends.gateway.chats import Chats
from ybs.frontends.gateway.people import ChannelPolicy, People
from ybs.frontends.gateway.store import GatewayStore, sqlite_engine
from ybs.frontends.serve.sessions import HostedSessions
from ybs.security.sandbox.sandbox import Sandbox
from ybs.session.options import SHIPPED, Options
from ybs.session.questions import NO
from ybs.session.session import Session
from ybs.testing import ScriptedModel, call

pytestmark = pytest.mark.integration
#: What a person has allowed themselves.
LAX = {
    "mode": "bypass",
    "allow": ["run_shell(touch *)", "write_file(*)"],
    "outside_sandbox": ["git push *"],
    "sandbox_network": True,
    "sandbox_enabled": False,
    "sandbox_allowed_paths": ["./", "~/notes"],
    "sandbox_blocked_paths": [],
    "require_confirmation": [],
    "blocked_commands": [],
    "safe_commands": [*SHIPPED.safe_commands, "touch"],
}
#: What is stricter than as shipped.
STRICT = {
    "mode": "plan",
    "deny": ["delete_file"],
    "ask": ["run_shell(git *)"],
    "ask_before_edits": True,
    "sandbox_blocked_paths": ["~/diary"],
    "require_confirmation": ["edit_file", *SHIPPED.require_confirmation],
    "blocked_commands": ["dd", *SHIPPED.blocked_commands],
    "safe_commands": ["ls"],
}


@asynccontextmanager
async def chats_of(
    tmp_path: Path,
    home: Path,
    *script: Any,
    who: str = GUEST,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncGenerator[tuple[Chats, str]]:
    """Return the chats of a gateway, and the key of a guest's private one."""
    file = home / ".config" / "ybs" / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"version": "1.0", "safety": LAX, **(settings or {})}))
    given = {"host": this_host(), "model": ScriptedModel(script), "allow": ("run_shell(touch *)",)}
    store = GatewayStore(sqlite_engine(tmp_path / "state" / "gateway.db"))
    people = People(store, {"telegram": ChannelPolicy(owners=frozenset((OWNER,)))})
    place = ChatPlace("telegram", "bot", "private", who)
    await people.admit(Incoming(id="1", place=place, person=who, name="", at=0.0, is_own=True))
    try:
        hosted = HostedSessions(this_host(), tmp_path / "open.json")
        async with hosted.hub:
            chats = Chats(
                store,
                hosted,
                Options.of(home, {**given, **options}),
                GatewaySettings(),
                tools=lambda _key, _place: (),
                asking=ChatQuestions(Ledger(), people),
            )
            key = await chats.enter(place, who)
            yield chats, key
            await chats.close(key)
    finally:
        store.close()


@asynccontextmanager
async def chat(tmp_path: Path, home: Path, *script: Any, **options: Any) -> AsyncGenerator[Session]:
    """Open the session of a guest's private chat."""
    async with chats_of(tmp_path, home, *script, **options) as (chats, key):
        yield await chats.session(key)


async def test_nothing_that_was_allowed_at_a_terminal_is_allowed_in_a_chat(
    tmp_path: Path, home: Path
):
    async with chat(tmp_path, home, mode="bypass") as session:
        assert session.mode == "ask"
        assert session.config.safety == SHIPPED
        assert session.environment.sandbox.state == "full"
        assert session.folder.parent.name == "ybs-chats"


async def test_what_was_made_stricter_at_a_terminal_is_stricter_in_a_chat(
    tmp_path: Path, home: Path
):
    async with chat(tmp_path, home, settings={"safety": STRICT}) as session:
        safety = session.config.safety
        assert session.mode == "plan"
        assert set(safety.sandbox_blocked_paths) == {"~/diary", *SHIPPED.sandbox_blocked_paths}
        for name in STRICT.keys() - {"mode", "sandbox_blocked_paths"}:
            kept: Any = getattr(safety, name)
            assert kept == STRICT[name] or sorted(kept) == sorted(STRICT[name]), name


@pytest.mark.parametrize(
    ("paths", "works"),
    [(["."], True), (["~/ybs-chats"], True), (["~/notes", "~"], True), (["~/notes"], False)],
)
async def test_a_chat_works_in_its_own_folder_alone(
    tmp_path: Path, home: Path, paths: list[str], works: bool
):
    (home / "notes").mkdir()
    settings = {"safety": {"sandbox_allowed_paths": paths}}
    async with chat(tmp_path, home, settings=settings) as session:
        assert session.environment.roots.folders == ((session.folder,) if works else ())


@pytest.mark.parametrize(
    ("mode", "anew"), [("plan", "plan"), ("deny", "deny"), ("accept-edits", "ask"), ("auto", "ask")]
)
async def test_a_chat_keeps_the_mode_that_was_chosen_there(
    tmp_path: Path, home: Path, mode: str, anew: str
):
    async with chats_of(tmp_path, home, who=OWNER) as (chats, key):
        await chats.session(key)
        await chats.noted(key, mode=mode)
        await chats.close_idle(0)
        assert chats.opened(key) is None
        assert (await chats.session(key)).mode == mode
        await chats.begin_anew(key)
        assert (await chats.session(key)).mode == anew
    async with chats_of(tmp_path, home, who=OWNER) as (chats, key):
        assert (await chats.session(key)).mode == anew
        await chats.noted(key, mode=mode)
        await chats.bind(key, "")
        assert (await chats.session(key)).mode == anew


async def test_a_command_that_needs_no_question_at_a_terminal_is_asked_about_in_a_chat(
    tmp_path: Path, home: Path
):
    async with chat(tmp_path, home, call("run_shell", command="touch made"), "done") as session:
        asked = asyncio.Event()
        session.subscribe(lambda _: asked.set() if session.questions.open else None, follows=True)
        turn = asyncio.create_task(session.send("go"))
        await asyncio.wait_for(asked.wait(), 10)
        session.questions.answer(session.questions.open[0].id, NO)
        await turn
        assert not (session.folder / "made").exists()


async def play(session: Session) -> list[str]:
    """Send something, refuse what is asked, and return the names of the calls that were asked about."""
    asked = list[str]()

    def answer(_: Any) -> None:
        for each in session.questions.open:
            asked.append(each.name)
            session.questions.answer(each.id, NO)

    session.subscribe(answer, follows=True)
    await asyncio.wait_for(session.send("go"), 20)
    return asked


async def test_files_and_commands_that_settings_allow_at_a_terminal_are_asked_about_in_a_chat(
    tmp_path: Path, home: Path
):
    notes = home / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("a private note")
    script = (
        call("read_file", path=str(notes / "a.txt")),
        call("write_file", path=str(notes / "b.txt"), content="by a guest"),
        call("run_shell", command=f"touch {notes}/c.txt made"),
        call("run_shell", command="ls; echo nothing was changed"),
        "done",
    )
    async with chat(tmp_path, home, *script) as session:
        asked = await play(session)
        assert asked.count("run_shell") == 1  # the one that changes nothing is not
        said = str(session.conversation.messages)
        assert "a private note" not in said
        assert "nothing was changed" in said
        assert [each.name for each in notes.iterdir()] == ["a.txt"]
        assert not (session.folder / "made").exists()


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_an_allow_of_a_hook_does_not_count_in_a_chat(tmp_path: Path, home: Path, event: str):
    said = {"permissionDecision": "allow", "decision": {"behavior": "allow"}}
    answer = json.dumps({"hookSpecificOutput": {"hookEventName": event, **said}})
    hook = {"type": "command", "command": f"echo '{answer}'"}
    hooks = {event: [{"matcher": "Bash", "hooks": [hook]}]}
    script = (call("run_shell", command="touch made"), "done")
    async with chat(tmp_path, home, *script, settings={"hooks": hooks}) as session:
        assert await play(session) == ["run_shell"]
        assert not (session.folder / "made").exists()


@pytest.mark.parametrize(
    ("said", "why"),
    [({"enabled": True}, r"incognito\.enabled"), ({"local_only": True}, r"incognito\.local_only")],
)
async def test_what_a_chat_cannot_keep_of_incognito_is_refused(
    tmp_path: Path, home: Path, said: dict[str, Any], why: str
):
    async with chats_of(tmp_path, home, settings={"incognito": said}) as (chats, key):
        with pytest.raises(ConfigError, match=why):
            await chats.session(key)


async def test_without_a_sandbox_a_chat_has_no_tool_that_runs_programs(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Sandbox, "state", property(lambda _: "reduced"))
    script = (call("run_shell", command="id"), "done")
    async with chat(tmp_path, home, *script) as session:
        await session.send("go")
        assert "uid=" not in str(session.conversation.messages)


@pytest.mark.parametrize("who", [OWNER, GUEST])
async def test_what_the_owner_wrote_about_themselves_is_told_in_their_own_chat_alone(
    tmp_path: Path, home: Path, who: str
):
    own = home / ".config" / "ybs"
    (own / "memories").mkdir(parents=True)
    (own / "memories" / "2026-11-01-tea.md").write_text("# Likes Barry's tea\n")
    (own / "HUMAN.md").write_text("I am Ada, born in Thurles.")
    async with chat(tmp_path, home, "done", who=who) as session:
        (session.folder / "AGENTS.md").write_text("Write in Irish.")
        await session.send("hello")
        system = session.conversation.system
        assert "Write in Irish." in system
        assert [word in system for word in ("Thurles", "Barry")] == [who == OWNER] * 2


@pytest.mark.parametrize(("mode", "anew"), [("plan", "plan"), ("accept-edits", "ask")])
async def test_a_mode_that_another_screen_has_set_in_the_session_is_the_chats(
    tmp_path: Path, home: Path, mode: Any, anew: str
):
    async with chats_of(tmp_path, home, who=OWNER) as (chats, key):
        (await chats.session(key)).mode = mode
        await chats.close_idle(0)
        assert chats.opened(key) is None
        assert (await chats.session(key)).mode == mode
    async with chats_of(tmp_path, home, who=OWNER) as (chats, key):
        assert (await chats.session(key)).mode == mode
        await chats.begin_anew(key)
        assert (await chats.session(key)).mode == anew
        (await chats.session(key)).mode = mode
        await chats.begin_anew(key)
        assert (await chats.session(key)).mode == anew
        (await chats.session(key)).mode = mode
        await chats.bind(key, "")
        assert (await chats.session(key)).mode == anew
