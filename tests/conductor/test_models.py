"""Where the words of sub-agents may go: to what the person has named, and nowhere else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conductor_cast import ALWAYS, delegated, results
from scripted import OllamaServer, OpenAIServer
from trusting import give_trust, put
from ybs.core.events import Noticed
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call

pytestmark = pytest.mark.integration
Open = Callable[..., tuple[Session, RecordedEvents]]
REFUSED = "is refused: the person has not named it"
LOOK: dict[str, Any] = {"task": "look", "kind": "explore"}


def notices(events: RecordedEvents) -> list[str]:
    found = [each.event for each in events.envelopes if each.is_main]
    return [each.text for each in found if isinstance(each, Noticed)]


async def test_a_models_words_reach_no_provider_that_the_person_has_not_named(
    project: Path, open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another user's server at a usual port, another company, whose key is there, a program that has a login of the person's, files.
    names = ["ollama/strict", "ollama", "lmstudio/reviewer", "deepseek/deepseek-chat", "claude-cli/sonnet"]  # fmt: skip
    names += ["llamacpp/weights/x.gguf", "llamacpp//etc/passwd", "llamacpp"]
    monkeypatch.setenv("DEEPSEEK_API_KEY", "k" * 20)
    tasks = delegated(*({**LOOK, "model": name} for name in names))
    async with OpenAIServer([tasks, "done"]) as server, OllamaServer() as strange:
        monkeypatch.setenv("OLLAMA_HOST", strange.url)
        session, events = open_session(server, overrides=ALWAYS)
        async with session:
            await session.send("go")
        assert strange.requests == strange.other_requests == []
    told = results(events)[0].output
    assert [f"{name} {REFUSED}" in told for name in names] == [True] * len(names)
    assert "of these: openai (`openai/ollama/strict` is" in told
    assert notices(events) == []


async def test_a_model_may_choose_what_the_person_has_named(
    project: Path, open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = delegated({**LOOK, "model": "ollama/strict"}, {**LOOK, "model": "ollama/other"})
    async with OpenAIServer([tasks, "done"]) as server, OllamaServer(["seen"]) as named:
        monkeypatch.setenv("OLLAMA_HOST", named.url)
        own = {**ALWAYS, "agents.models": {"review": "ollama/strict"}}
        session, events = open_session(server, overrides=own)
        async with session:
            await session.send("go")
        assert [each.body["model"] for each in named.requests] == ["strict"]
    told = results(events)[0].output
    assert "seen" in told
    assert f"ollama/other {REFUSED}" in told
    assert "of these: ollama/strict, openai (`openai/ollama/other` is" in told
    assert notices(events) == ["explore-1 works with strict (ollama)."]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("anthropic/claude-haiku-4-5", "anthropic/claude-haiku-4-5"), ("openrouter/x-1", "x-1")],
)
async def test_where_models_have_names_of_companies_such_a_name_is_one_of_that_provider(
    project: Path, open_session: Open, monkeypatch: pytest.MonkeyPatch, name: str, meant: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k" * 20)
    script = [delegated({**LOOK, "model": name}), "seen", "done"]
    async with OpenAIServer(script) as server:
        own = {"provider": "openrouter", "model": "deepseek/deepseek-chat"}
        session, events = open_session(server, **own, overrides=ALWAYS)
        async with session:
            await session.send("go")
        assert server.requests[1].body["model"] == meant
    assert "seen" in results(events)[0].output


@pytest.mark.parametrize("model", ["/etc/passwd", "a/../b", "weights/x.gguf", "./x", "x;id", "a b"])
async def test_a_models_words_are_no_path_and_no_command_at_the_sessions_own_provider(
    project: Path, open_session: Open, model: str
) -> None:
    task = delegated({**LOOK, "model": f"openai/{model}"})
    async with OpenAIServer([task, "done"]) as server:
        session, events = open_session(server, overrides=ALWAYS)
        async with session:
            await session.send("go")
    assert "it has to be the plain name of a model" in results(events)[0].output


@pytest.mark.parametrize("name", ["auto", "Auto", "openai/auto", "openai/AUTO"])
async def test_the_router_sends_no_words_further_away_however_it_is_asked_for(
    project: Path, open_session: Open, name: str
) -> None:
    far = {"far": {"wire": "openai", "endpoint": "https://far.example/v1", "api_key": "k"}}
    own = {**ALWAYS, "providers": far, "router.arms": ["far/a", "far/b"]}
    async with OpenAIServer([delegated({**LOOK, "model": name}), "done"]) as server:
        session, events = open_session(server, overrides=own)
        async with session:
            await session.send("go")
    assert "all are further away" in results(events)[0].output


FORK = "---\ndescription: Review\ncontext: fork\nagent: explore\nmodel: ollama/strict\n---\nReview it.\n"
KIND = "---\nname: spy\ndescription: Reviews.\nmodel: ollama/strict\n---\nReview it.\n"
SKILL = FORK.replace("description", "name: own\ndescription")


@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize(
    ("own", "theirs", "text", "line"),
    [
        (".config/ybs/commands/own.md", ".ybs/commands/own.md", FORK, "/own"),
        (".config/ybs/skills/own/SKILL.md", ".agents/skills/own/SKILL.md", SKILL, "/own"),
        (".config/ybs/skills/own/SKILL.md", ".agents/skills/own/SKILL.md", SKILL, call("skill", name="own")),
        (".config/ybs/agents/spy.md", ".ybs/agents/spy.md", KIND, delegated({**LOOK, "kind": "spy"})),
    ],
    ids=["command", "skill", "skill that the model loads", "kind"],
)  # fmt: skip
async def test_a_file_of_a_trusted_project_names_no_more_than_the_person_has(
    project: Path,
    home: Path,
    open_session: Open,
    monkeypatch: pytest.MonkeyPatch,
    is_own: bool,
    own: str,
    theirs: str,
    text: str,
    line: Any,
) -> None:
    put(home if is_own else project, own if is_own else theirs, text)
    give_trust(project)
    script = ["done"] if isinstance(line, str) else [line, "done"]
    async with OpenAIServer(script) as server, OllamaServer(["seen"] * 3 * is_own) as strange:
        monkeypatch.setenv("OLLAMA_HOST", strange.url)
        session, _ = open_session(server, overrides=ALWAYS)
        async with session:
            await session.handle(line if isinstance(line, str) else "go")
        assert bool(strange.requests) is is_own
        assert is_own or strange.other_requests == []
        told = str(server.requests[-1].body["messages"])
    assert ("seen" in told) is is_own
    assert (f"ollama/strict {REFUSED}" in told) is not is_own
