"""No secret leaves: whatever the provider, through whatever door it came in."""

import json
import re
import subprocess
from pathlib import Path
from random import Random
from string import ascii_letters, digits
from typing import Any

import pytest

import ybs
from replies import shown
from scripted import AnthropicServer, OllamaServer, OpenAIServer, ScriptedServer
from tools.skills.folders import OWN, skill
from ybs.commands.open import SlashCommands
from ybs.core.events import (
    Noticed,
    SystemPrompted,
    TextStreamed,
    ThinkingStreamed,
    ToolCallStreamed,
    ToolFinished,
)
from ybs.core.ports import Answer, Question
from ybs.frontends.headless.run import refuse
from ybs.session.reply import Outcome, Reply
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call

SOURCE = Path(ybs.__file__).parent
TOKEN = "ghp_" + "".join(Random(7).choices(ascii_letters + digits, k=36))
KEY = (
    "-----BEGIN RSA "
    + "PRIVATE KEY-----\n"
    + "MIIEow" * 20
    + "\n-----END RSA "
    + "PRIVATE KEY-----"
)
SERVERS = {"openai": OpenAIServer, "ollama": OllamaServer, "anthropic": AnthropicServer}


def opened(
    project: Path, server: ScriptedServer, provider: str = "openai", **options: Any
) -> tuple[Session, RecordedEvents]:
    session = Session.open(
        project,
        commands=SlashCommands(),
        provider=provider,
        endpoint=server.url,
        model="m",
        sandbox=False,
        **options,
    )
    events = RecordedEvents()
    session.subscribe(events)
    return session, events


@pytest.mark.integration
@pytest.mark.parametrize("provider", SERVERS)
async def test_no_provider_gets_a_secret(
    project: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-real-one")
    (project / "settings.py").write_text(f'TOKEN = "{TOKEN}"\n')
    script = [
        call("read_file", path="settings.py"),
        call("run_shell", command="cat settings.py"),
        call("search_files", pattern="TOKEN"),
        call("write_file", path=f"{TOKEN}.txt", content=TOKEN),
        "done",
        "seen",
    ]
    async with SERVERS[provider](script) as server:
        session, events = opened(project, server, provider, mode="bypass")
        async with session:
            await session.send(f"use {TOKEN} for the push")
            await session.handle(f"!echo {TOKEN}")
        sent = [repr(request.body) for request in server.requests]
    assert len(sent) >= 5
    assert "ybs:secret:github" in sent[0]
    assert [TOKEN in one for one in sent] == [False] * len(sent)
    assert all(TOKEN not in done.output for done in events.of(ToolFinished))
    assert any("github" in told.text for told in events.of(Noticed))


@pytest.mark.integration
async def test_an_edit_keeps_the_secret_that_the_file_holds(project: Path) -> None:
    (project / "settings.py").write_text(f'TOKEN = "{TOKEN}"\nDEBUG = True\n')
    script = [
        call("read_file", path="settings.py"),
        call(
            "edit_file",
            path="settings.py",
            old_text='TOKEN = "[ybs:secret:github-token#1]"\nDEBUG = True\n',
            new_text='TOKEN = "[ybs:secret:github-token#1]"\nDEBUG = False\n',
        ),
        call("write_file", path="other.py", content='T = "[ybs:secret:github-token#1]"\n'),
        "done",
    ]
    async with OpenAIServer(script) as server:
        session, events = opened(project, server, mode="bypass")
        async with session:
            await session.send("switch debugging off")
    assert (project / "settings.py").read_text() == f'TOKEN = "{TOKEN}"\nDEBUG = False\n'
    assert not (project / "other.py").exists()
    assert not events.of(ToolFinished)[-1].success


@pytest.mark.integration
@pytest.mark.parametrize("secret", [TOKEN, KEY])
async def test_where_nobody_can_be_asked_the_persons_secrets_are_masked_with_a_warning(
    project: Path, secret: str
) -> None:
    async with OpenAIServer(["fine"]) as server:
        session, events = opened(project, server)
        session.confirm = refuse  # as a run without a terminal does
        async with session:
            outcome = await session.send(f"see {secret} there")
        body = repr(server.requests[0].body)
    assert outcome.finished.reason == "done"
    assert secret[60:90] not in body if secret == KEY else secret not in body
    assert "see [ybs:secret:" in body
    assert [told.level for told in events.of(Noticed) if "your message" in told.text] == ["warning"]


def run_git(project: Path, *arguments: str) -> str:
    git = ["git", "-C", str(project), *arguments]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout


def committed(project: Path, *, branch: str, message: str) -> None:
    """Make a repository with one empty commit."""
    run_git(project, "init", "-q", "-b", branch)
    for name, value in (("user.name", "a"), ("user.email", "a@b")):
        run_git(project, "config", name, value)
    run_git(project, "commit", "-q", "--allow-empty", "-m", message)


@pytest.mark.integration
@pytest.mark.parametrize("name", ["git", "Git"])
async def test_a_commit_keeps_no_secret_whatever_the_model_calls_the_tool(
    project: Path, name: str
) -> None:
    committed(project, branch="main", message="begin")
    (project / "a").write_text("1")
    script = [call(name, action="commit", paths=["a"], text=f"use {TOKEN}"), "done"]
    async with OpenAIServer(script) as server:
        session, _ = opened(project, server, mode="bypass")
        async with session:
            await session.send("commit it")
    said = run_git(project, "log", "-1", "--format=%s")
    assert re.fullmatch(r"use \[ybs:secret:github-token#\d\]\n", said)


@pytest.mark.integration
async def test_no_event_holds_a_secret_of_the_place_or_of_anybodys_words(project: Path) -> None:
    committed(project, branch=f"fix-{TOKEN}", message=f"use {TOKEN}")
    async with OpenAIServer([f"I think of {TOKEN}"]) as server:
        session, events = opened(project, server)
        async with session:
            outcome = await session.send(f"what of {TOKEN}?")
            shown = await session.handle("/context")
            renamed = await session.handle(f"/nonsense-{TOKEN}")
            await session.handle(f"/rename {TOKEN}")
    assert "ybs:secret:github-token" in repr(events.of(SystemPrompted))
    pieces = (
        TextStreamed | ThinkingStreamed | ToolCallStreamed
    )  # the model's own words as they come
    kept = [event for event in events.events if not isinstance(event, pieces)]
    assert TOKEN not in repr(kept)
    assert TOKEN not in repr((shown, renamed))
    assert outcome.text == "I think of [ybs:secret:github-token#1]"


@pytest.mark.integration
@pytest.mark.parametrize("is_allowed", [True, False])
@pytest.mark.parametrize("secret", [TOKEN, KEY])
async def test_the_person_decides_about_their_own_words(
    project: Path, secret: str, is_allowed: bool
) -> None:
    asked: list[Question] = []

    async def confirm(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=is_allowed)

    async with OpenAIServer(["fine"]) as server:
        session, _ = opened(project, server)
        session.confirm = confirm
        async with session:
            outcome = await session.send(f"look: {secret}")
            assert isinstance(outcome, Outcome)
        sent = [repr(request.body) for request in server.requests]
    assert "your message" in asked[0].preview.title
    assert secret not in asked[0].preview.body
    assert len(sent) == int(is_allowed)
    assert not any(secret in one for one in sent)


@pytest.mark.integration
async def test_what_was_masked_is_listed_and_can_be_let_through(project: Path) -> None:
    async with OpenAIServer(["one", "two"]) as server:
        session, _ = opened(project, server)
        async with session:
            nothing = await session.handle("/secrets")
            assert isinstance(nothing, Reply)
            assert nothing.text == "No secrets were hidden from the model in this session."
            await session.send(TOKEN)
            listed = await session.handle("/secrets")
            assert isinstance(listed, Reply)
            assert "[ybs:secret:github-token#1]  in your message" in shown(listed)
            assert TOKEN not in shown(listed)
            wrong = await session.handle("/secrets allow jwt#7")
            assert isinstance(wrong, Reply)
            assert wrong.is_error
            await session.handle("/secrets allow github-token#1")
            await session.send(f"again {TOKEN}")
        assert TOKEN in repr(server.requests[1].body["messages"][-1])


@pytest.mark.integration
@pytest.mark.parametrize(
    ("pattern", "places"),
    [
        # Who can make a model, who runs turns, and who asks a model for an answer.
        (r"\bcreate_model\(", {"agent/model_choice.py", "router/routing.py"}),
        (r"\bAgent\(", {"agent/build.py"}),
        (
            r"\.stream\(",
            {
                "core/agent.py",
                "core/call_ids.py",
                "small_models/support.py",
                "small_models/unseen.py",
                "small_models/prefix.py",
                "small_models/read_ahead.py",
                "small_models/endings.py",
                "guards/calls.py",
                "guards/answer_form.py",
                "compaction/compaction.py",
                "guards/limits.py",
                "compaction/compacting.py",
                "commands/git.py",
                "security/firewall/model.py",
                "security/visible_text.py",
                "router/model.py",
                "router/classifier.py",  # is handed a model, and makes none
                "tools/web.py",  # a page of the web, not a model
                "frontends/gateway/webhook.py",  # the body of a request that came
                "frontends/gateway/received.py",  # a file that somebody sent
            },
        ),
    ],
)
def test_there_is_no_other_way_to_a_model(pattern: str, places: set[str]) -> None:
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if re.search(pattern, path.read_text("utf-8"))
    }
    assert {
        path for path in found - places if not path.startswith(("providers/", "testing/"))
    } == set()


async def test_a_turn_gets_nothing_but_the_guarded(project: Path) -> None:
    from ybs.security.firewall.model import FirewallModel
    from ybs.security.firewall.toolbox import FirewallToolbox

    async with OpenAIServer([]) as server:
        for options in ({}, {"timeout": 5}):
            session, _ = opened(project, server, **options)
            agent = session.agent._agent
            model, toolbox = agent.model, agent.toolbox
            around = [type(each).__name__ for each in layers(model)]
            assert around[:3] == ["_GuardedModel", "WatchedModel", "FirewallModel"]
            # Whatever adds text between the two, it passes the inner one.
            last = around.index(type(session.agent.model).__name__)
            assert around[last - 1] == "FirewallModel"
            assert type(layers(toolbox)[0]) is FirewallToolbox
            aside = [type(each) for each in layers(session.agent.compaction.model)]
            assert FirewallModel in aside[:2]  # a time limit may stand before it
            await session.close()


@pytest.mark.integration
@pytest.mark.parametrize("provider", ["openai", "ollama"])
async def test_what_becomes_known_in_a_session_is_masked_wherever_it_stands(
    project: Path, home: Path, provider: str
) -> None:
    value, said = "vq7Kx83hfQ2pLm9v" + "Tz4B", "lets you in by {} at night."
    said = f"The crane box {said.format(value)}"
    (project / ".env").write_text(f"STAGING_PASSWORD={value}\n")
    (project / "AGENTS.md").write_text(f"{'Use four blanks in each file. ' * 99}\n{said}\n")
    skill(home / OWN, "crane", "Do it.", description=f"Deploys: {said}")
    async with SERVERS[provider]([call("read_file", path=".env"), "read", "so"]) as server:
        session, _ = opened(project, server, provider)
        async with session:
            await session.send("read .env and name what is in it")
            await session.send("How do I get into the crane box at night?")
        bodies = [json.dumps(request.body) for request in server.requests if request.body]
    assert "The crane box lets you in by [ybs:secret:" in bodies[-1]
    assert value not in bodies[-1]


def layers(value: object) -> list[object]:
    """Return a wrapper and what it wraps, the outermost first."""
    inner = next(
        (
            getattr(value, n)
            for n in ("_model", "model", "_toolbox", "toolbox")
            if hasattr(value, n)
        ),
        None,
    )
    return [value] if inner is None else [value, *layers(inner)]


@pytest.mark.integration
async def test_words_that_are_not_let_go_leave_the_conversation(project: Path) -> None:
    asked: list[Question] = []

    async def confirm(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=False)

    async with OpenAIServer(["one", "two"]) as server:
        session, _ = opened(project, server)
        session.confirm = confirm
        async with session:
            await session.send("hello")
            outcome = await session.send(f"use {TOKEN}")
            assert outcome.finished.reason == "error"
            assert outcome.unsent == f"use {TOKEN}"
            assert [words for _, words in session.history.prompts()] == ["hello"]
            outcome = await session.send("go on without it")
            assert outcome.unsent == ""
            assert (await session.handle(f"!echo '{KEY}'")) is not None
            assert [words for _, words in session.history.prompts()] == [
                "hello",
                "go on without it",
            ]
            assert len(session.conversation.messages) == 4
        assert len(server.requests) == 2
    assert len(asked) == 2  # once about the words, once about the key that a command printed


VALUES = [f"{number}Qm7vT2xLr9" + "Kp4WzN8bHs" for number in range(1, 17)]
#: Settings that name variables for keys, by names that say nothing, and keys in settings.
NAMING = {
    "llm": {"provider": "w", "model": "m"},
    "providers": {
        "w": {
            "api_key_env": "V1",
            "headers": {"X-Team": "${V2}", "X-Home": "${HOME}"},
        }
    },
    "gateway": {
        "database": "postgresql://me:" + VALUES[7] + "@host/name",
        "channels": {
            "telegram": {"token_env": "V3"},
            "whatsapp": {"token_env": "V4", "app_secret": VALUES[6], "verify_token_env": "V5"},
        },
    },
    "mcpServers": {
        "i": {"url": "http://127.0.0.1:9/mcp", "headers": {"X-K": "Bearer ${V6}"}},
        "j": {"url": "http://127.0.0.1:9/", "oauth": {"client_secret": "${V9}"}, "enabled": False},
        "k": {"command": "/bin/true", "env": {"API_KEY": "${V10}", "TOKEN": VALUES[10]}},
        "l": {"command": "/bin/true", "args": ["${UNSET}"], "env": {"TOKEN": VALUES[11]}},
        "m": {"words": "that make no server"},
    },
    "agents": {"acp": {"a": {"command": ["/bin/true"], "env": {"SOME_TOKEN": VALUES[12]}}}},
    "profiles": {
        "work": {
            "llm": {"api_key": VALUES[15]},
            "providers": {"x": {"api_key_env": "V14"}},
            "gateway": {"channels": {"telegram": {"token_env": "V15"}}},
        }
    },
}


@pytest.mark.integration
async def test_what_settings_name_for_a_key_is_masked_whatever_its_name(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    for number in (*range(1, 7), 9, 10, 14, 15):
        monkeypatch.setenv(f"V{number}", VALUES[number - 1])
    (project / "deploy.log").write_text("\n".join([*VALUES, str(home)]))
    script = [call("read_file", path="deploy.log"), "done"]
    async with OpenAIServer(script) as server:
        NAMING["providers"]["w"]["endpoint"] = server.url
        settings = home / ".config" / "ybs" / "config.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(NAMING))
        settings.chmod(0o600)
        async with Session.open(project, sandbox=False) as session:
            await session.send("read it")
            asked = session.environment.secrets.firewall.asking().mask(" ".join(VALUES))
        sent = json.dumps(server.requests[-1].body)
    assert [value for value in VALUES if value in asked] == []  # these files are the person's
    assert [value for value in VALUES if value in sent] == []
    assert sent.count("[ybs:secret:own-secret#") == len(VALUES)
    assert str(home) in sent


def key_file(lines: int) -> tuple[str, list[str]]:
    """Make up a private key as files have it, and return the lines in it."""
    body = ["".join(Random(n).choices(ascii_letters + digits, k=64)) for n in range(lines)]
    body[-1] = body[-1][:20] + "=="
    marks = [f"-----{word} RSA " + "PRIVATE KEY-----" for word in ("BEGIN", "END")]
    return "\n".join([marks[0], *body, marks[1], ""]), body


@pytest.mark.integration
async def test_a_private_key_is_masked_whichever_part_of_it_is_read(project: Path) -> None:
    text, body = key_file(25)
    (project / "key.txt").write_text(f"# notes\n{text}more notes\n")
    (project / "big.log").write_text("a line\n" * 700_000 + text)
    script = [
        call("read_file", path="key.txt", offset=3, limit=9),
        call("search_files", pattern=body[15][:9], path="key.txt", context_lines=5),
        call("search_files", pattern=body[-1][:9], context_lines=0),
        call("Read", file_path="big.log", offset=-5, limit=3),
        call("run_shell", command="sort key.txt"),
        "done",
        "seen",
    ]
    async with OpenAIServer(script) as server:
        session, events = opened(project, server, mode="bypass")
        async with session:
            await session.send("look")
            await session.send("and at @key.txt:20-24")
        sent = [repr(request.body) for request in server.requests]
    assert [line for line in body if any(line in one for one in sent)] == []
    assert not any(line in repr(events.of(ToolFinished)) for line in body)
    assert "more notes" in sent[-1]
    assert any("A private key stands in" in told.text for told in events.of(Noticed))
