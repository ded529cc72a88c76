"""A conversation changes its provider in the middle: for every ordered pair, the target takes the next request."""

from base64 import b64decode, b64encode
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scripted import (
    AnthropicServer,
    GoogleServer,
    MistralServer,
    OllamaServer,
    OpenAIServer,
    ResponsesServer,
    ScriptedServer,
)
from sdk_requests import accept
from ybs.core.messages import Image
from ybs.session.session import Session
from ybs.small_models.hints import ASKED
from ybs.testing import answer, call, thought

#: Importing the SDKs takes seconds on a busy machine.
pytestmark = pytest.mark.timeout(60)
SERVERS: dict[str, type[ScriptedServer]] = {
    kind.wire.name: kind
    for kind in (
        *(OpenAIServer, ResponsesServer, AnthropicServer),
        *(GoogleServer, MistralServer, OllamaServer),
    )
}
PIXEL = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PICTURE_TEXT = b64encode(PIXEL).decode()
#: Ids as some servers give them: what others refuse, and more than the longest that any of them takes.
ODD_IDS = ("functions.read_file:0", f"call_{'x' * 80}")


def script(name: str) -> list[Any]:
    """Play a turn of two steps: thinking, words and two calls, then thinking and words."""
    picture, text = (
        msgspec.structs.replace(call("read_file", path=path), id=f"{name[:2]}{call_id}")
        for path, call_id in zip(("a.png", "b.txt"), ODD_IDS, strict=True)
    )
    first = answer(thought(f"{name} ponders", signature="c2ln"), f"{name} reads.", picture, text)
    return [first, answer(thought(f"{name} muses", signature="c2ln"), f"{name} has read.")]


def open_at(project: Path, servers: list[ScriptedServer]) -> Session:
    """Open a session with a provider for each server, named by its wire and in use from the first on."""
    (project / "a.png").write_bytes(PIXEL)
    (project / "b.txt").write_text("the words of b\n")
    overrides: dict[str, Any] = {"git.auto_commit": False}
    for place, server in enumerate(servers):
        name = server.wire.name
        own: dict[str, Any] = {"endpoint": server.url, "wire": name, "model": f"{name}-model"}
        own["window"] = 20_000 + 1_000 * place
        overrides |= {f"providers.my-{name}.{key}": value for key, value in own.items()}
    first = f"my-{servers[0].wire.name}"
    return Session.open(project, provider=first, sandbox=False, overrides=overrides)


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), [*permutations(SERVERS, 2)])
async def test_every_ordered_pair_of_providers(source: str, target: str, project: Path):
    picture = Image(media_type="image/png", data=PIXEL)
    async with (
        SERVERS[source]([*script(source), "Back again."]) as first,
        SERVERS[target](script(target)) as second,
        open_at(project, [first, second]) as session,
    ):
        await session.send("What is in it?", [picture])
        await session.switch_model(provider=f"my-{target}", model=None)
        assert (await session.send("And now?")).text == f"{target} has read."
        await session.switch_model(provider=f"my-{source}", model=None)
        assert (await session.send("Once more.")).text == "Back again."
    for server in (first, second):
        for request in server.requests:
            accept(server.wire.name, request.body)
    asked = second.requests[0].body
    text = msgspec.json.encode(asked).decode().replace(ASKED.format("What is in it?"), "")
    # Words, calls, results and both pictures are translated; what the other one thought is not.
    for words in (f"{source} reads.", f"{source} has read.", "What is in it?", "the words of b"):
        assert text.count(words) == 1, words
    assert text.count(PICTURE_TEXT) == 2
    assert not [word for word in ("ponders", "muses", "c2ln") if word in text]
    # Back at the first, its own thinking is there again as it would be without the change.
    last = msgspec.json.encode(first.requests[-1].body).decode()
    before = msgspec.json.encode(first.requests[1].body).decode()
    assert (f"{source} ponders" in last) == (f"{source} ponders" in before)
    assert f"{target} ponders" not in last


@pytest.mark.integration
async def test_prompt_tools_and_window_are_those_of_the_new_model_at_once(project: Path):
    async with (
        OpenAIServer(["Hello.", "Back."]) as first,
        OllamaServer(["Hello too."]) as second,
        open_at(project, [first, second]) as session,
    ):
        await session.send("One.")
        await session.switch_model(provider="my-ollama", model=None, form="short")
        assert (session.status().window, session.status().model) == (21_000, "ollama-model")
        await session.send("Two.")
        await session.switch_model(provider="my-openai", model="other", form="full")
        assert (session.status().window, session.status().model) == (20_000, "other")
        await session.send("Three.")
    (full, again), (short,) = ([r.body for r in each.requests] for each in (first, second))
    prompts = [body["messages"][0]["content"] for body in (full, short, again)]
    names = [{tool["function"]["name"] for tool in body["tools"]} for body in (full, short, again)]
    assert "my-openai openai-model, window 20,000" in prompts[0]
    assert "my-openai other, window 20,000" in prompts[2]
    assert "openai" not in prompts[1]
    assert short["options"]["num_ctx"] <= 21_000
    assert len(prompts[1]) < len(prompts[0]) / 2
    assert names[0] == names[2] > names[1] > set()
    assert [body["model"] for body in (full, short, again)] == [
        *("openai-model", "ollama-model", "other"),
    ]
    assert [m["content"] for m in again["messages"][1:] if m["role"] == "assistant"] == [
        *("Hello.", "Hello too."),
    ]
