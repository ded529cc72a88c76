"""One process, two hosts and several sessions at once: nothing leaks from one to another, and the process stays as it was."""

import asyncio
import os
import resource
import signal
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from string import ascii_letters, digits
from typing import Any

import pytest

from hosts import host_at
from scripted import AnthropicServer, Interrupted, OllamaServer, OpenAIServer, ScriptedServer
from ybs.config.host import Host
from ybs.core.envelope import Envelope
from ybs.core.errors import ConfigError
from ybs.core.events import Event, TurnFinished
from ybs.core.messages import Usage
from ybs.core.ports import Answer, Question, Request
from ybs.session.session import Session
from ybs.testing import ScriptedConfirm, ScriptedModel, answer, call

pytestmark = pytest.mark.integration

#: What each session says, and what is to be found nowhere else.
MARKS = ("apricot", "blackthorn", "cloudberry", "damson")
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def process_state() -> dict[str, object]:
    """Return what is one for the whole process, and nobody below a frontend may change."""
    umask = os.umask(0)
    os.umask(umask)
    return {
        "environment": dict(os.environ),
        "folder": os.getcwd(),  # noqa: PTH109 - the text
        "umask": umask,
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "limits": {number: resource.getrlimit(number) for number in LIMITS},
        "hooks": (sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "recursion": sys.getrecursionlimit(),
    }


def files_in(*folders: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    }


class Crashing:
    """A model that raises what nobody expects."""

    name, window = "crashing", 32_768

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Raise."""
        assert request
        raise RuntimeError("a bug in somebody's model")
        yield


class Watched:
    """A session in a folder of its own, with the envelopes that its sinks got and the questions that it asked."""

    def __init__(self, place: Path, host: Host, **options: Any) -> None:
        self.folder = place
        self.folder.mkdir(parents=True)
        self.envelopes: list[Envelope] = []
        self.questions: list[Question] = []
        options = {"sandbox": False, "confirm": self.ask, **options}
        self.session = Session.open(place, host=host, **options)
        self.session.subscribe(self.envelopes.append)

    async def ask(self, question: Question) -> Answer:
        """Say always, of what is asked first."""
        self.questions.append(question)
        return Answer(is_allowed=True, is_for_session=True)

    @property
    def events(self) -> list[Event]:
        """What was told."""
        return [each.event for each in self.envelopes]


def at(server: ScriptedServer, provider: str, model: str) -> dict[str, Any]:
    """Return the options of a session that a server answers."""
    return {"provider": provider, "endpoint": server.url, "model": model}


def told(server: ScriptedServer) -> str:
    """Return everything that a server was told."""
    return repr([request.body for request in server.requests])


async def test_hosts_and_sessions_of_one_process_share_nothing(tmp_path, home, monkeypatch):
    key = "sk-" + "b" * 40
    here = host_at(tmp_path / "here")
    there = Host.of({**host_at(tmp_path / "there").environ, "LANG": "there", "OPENAI_API_KEY": key})
    for host in (here, there):
        host.home.mkdir()
    monkeypatch.setenv("LANG", "of-the-process")
    before = process_state()
    writing = [
        call("write_file", path="a.txt", content=MARKS[0]),
        call("memorize", text=f"Remember the {MARKS[0]}."),
        call("run_shell", command="echo LANG=$LANG"),
    ]
    asking = [
        call("run_shell", command=f"touch {MARKS[1]}"),
        Interrupted(answer=answer("never said"), how="stall"),
    ]
    other = [
        call("memorize", text=f"Remember the {MARKS[3]}."),
        call("run_shell", command="echo LANG=$LANG"),
    ]
    async with AsyncExitStack() as stack:
        opened = stack.enter_async_context
        openai = await opened(
            OpenAIServer([*writing, answer("done", usage=Usage(input_tokens=11, output_tokens=1))])
        )
        ollama = await opened(OllamaServer(asking))
        anthropic = await opened(
            AnthropicServer([*other, answer("bye", usage=Usage(input_tokens=7, output_tokens=1))])
        )
        first = Watched(tmp_path / "p1", here, mode="bypass", **at(openai, "openai", "one"))
        second = Watched(tmp_path / "p2", here, incognito=True, **at(ollama, "ollama", "two"))
        third = Watched(tmp_path / "p3", here, mode="plan", model=Crashing())
        fourth = Watched(
            tmp_path / "p4", there, mode="bypass", **at(anthropic, "anthropic", "four")
        )
        watched = (first, second, third, fourth)
        for each in watched:
            await opened(each.session)

        async def cancel_second() -> None:
            await ollama.received(2)
            assert second.session.cancel()

        *results, _ = await asyncio.gather(
            *(
                each.session.send(f"Go on, {mark}.")
                for each, mark in zip(watched, MARKS, strict=True)
            ),
            asyncio.wait_for(cancel_second(), 8),
            return_exceptions=True,
        )
        ends = [getattr(getattr(each, "finished", None), "reason", repr(each)) for each in results]
        assert ends == ["done", "interrupted", 'RuntimeError("a bug in somebody\'s model")', "done"]

        # Modes, providers and grants are each one's own, also where somebody said "always".
        modes = [each.session.mode for each in watched]
        assert modes == ["bypass", "ask", "plan", "bypass"]
        names = [(each.session.status().provider, each.session.status().model) for each in watched]
        assert names == [
            ("openai", "one"),
            ("ollama", "two"),
            ("in-process", "crashing"),
            ("anthropic", "four"),
        ]
        assert [len(each.questions) for each in watched] == [0, 1, 0, 0]
        grants = [tuple(sorted(each.session.environment.policy.rules.grants)) for each in watched]
        assert [bool(each) for each in grants] == [False, True, False, False]

        # Events, what models were told, and usage.
        sessions = [{each.session for each in one.envelopes} for one in watched]
        assert [len(each) for each in sessions] == [1, 1, 1, 1]
        assert len(set.union(*sessions[:3])) == 3  # a name is unique in its host
        for one, mark in zip(watched, MARKS, strict=True):
            assert mark in repr(one.events)
            assert not [other for other in MARKS if other != mark and other in repr(one.events)]
            assert len([each for each in one.events if isinstance(each, TurnFinished)]) == 1
        for server, mark in ((openai, MARKS[0]), (ollama, MARKS[1]), (anthropic, MARKS[3])):
            assert mark in told(server)
            assert not [other for other in MARKS if other != mark and other in told(server)]
        finished = [each.finished.usage for each in results if not isinstance(each, BaseException)]
        assert [first.session.usage, second.session.usage, fourth.session.usage] == finished
        assert first.session.usage.input_tokens != fourth.session.usage.input_tokens

        # Variables: commands get those of their host, and not those of the process.
        assert "LANG=there" in repr(fourth.events)
        assert "of-the-process" not in repr([each.events for each in watched])
        assert key not in repr([process_state(), *(each.events for each in watched)])

    # Files: each belongs to its host, the incognito session left none, and the process's own home stayed empty.
    for host, mark in ((here, MARKS[0]), (there, MARKS[3])):
        found = files_in(host.home)
        assert any(
            "memories" in path.parts and mark.encode() in data for path, data in found.items()
        )
        assert any(
            "sessions" in path.parts and mark.encode() in data for path, data in found.items()
        )
        for path, data in found.items():
            wrong = [other for other in MARKS if other.encode() in data and other != mark]
            # The crashed one is of the same host, and in a file of its own.
            assert wrong in ([], [MARKS[2]]), path
            assert mark.encode() not in data or not wrong, path
    assert MARKS[2].encode() not in b"".join(files_in(there.home).values())
    assert files_in(home) == {}
    assert {path.name for path in files_in(tmp_path / "p1", tmp_path / "p2")} == {"a.txt", MARKS[1]}
    assert files_in(tmp_path / "p3", tmp_path / "p4") == {}
    assert process_state() == before


async def test_memories_settings_and_sessions_are_those_of_the_host(tmp_path: Path, project: Path):
    hosts = [host_at(tmp_path / name) for name in ("one", "two")]
    for number, host in enumerate(hosts):
        (host.config_folder / "memories").mkdir(parents=True)
        host.user_config_file.write_text(f'{{"safety": {{"mode": "{("plan", "auto")[number]}"}}}}')
        model = ScriptedModel([call("memorize", text=f"It is {MARKS[number]}."), "done"])
        options: dict[str, Any] = {"model": model, "mode": "bypass", "sandbox": False}
        async with Session.open(project, host=host, **options) as session:
            await session.send(f"Note {MARKS[number]}.")
    for number, host in enumerate(hosts):
        model = ScriptedModel(["I know."])
        async with Session.open(project, host=host, model=model) as session:
            assert session.mode == ("plan", "auto")[number]
            await session.send("What do you know?")
            assert [saved.title for saved in session.journal.store().sessions()] != []
        prompt = model.requests[0].system
        assert [mark for mark in MARKS if mark in prompt] == [MARKS[number]]
    with pytest.raises(ConfigError):  # nothing is configured in a third
        Session.open(project, host=host_at(tmp_path / "three"))


async def test_an_agent_takes_back_its_own_refused_words(tmp_path: Path, project: Path):
    """What must not be sent is known by the agent that was to send it, however many a session has."""
    secret = "ghp_" + "".join(Random(7).choices(ascii_letters + digits, k=36))
    model = ScriptedModel(["never said"])
    (tmp_path / "home").mkdir()
    options: dict[str, Any] = {"model": model, "confirm": ScriptedConfirm([False])}
    async with Session.open(project, host=host_at(tmp_path / "home"), **options) as session:
        main = session.parts.main
        agent = main.agent
        another = main.build(agent.provider, agent.model)  # as for a sub-agent
        outcome = await session.send(f"My key is {secret}.")
        assert outcome.unsent.startswith("My key is ")
        assert another.firewall_model.take_out_refused(session.conversation) == ""
        assert model.requests == []
