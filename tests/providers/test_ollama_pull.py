"""Downloads by an Ollama server: its progress in one count, and an end that says that it is one."""

from typing import Any

import msgspec
import pytest
from local.loopback_hub import Behaviour, open_hub, says
from msgspec.structs import replace

from rows import every_row
from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import ModelError, ProviderDown
from ybs.providers.http.client import HttpClient
from ybs.providers.http.failures import NotServed
from ybs.providers.registry import client_of
from ybs.providers.wire.ollama import PATIENCE, PROVIDER, pull

ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64
LINES: list[dict[str, Any]] = [
    {"status": "pulling manifest"},
    {"status": "pulling 111", "digest": ONE, "total": 100},
    {"status": "pulling 111", "digest": ONE, "total": 100, "completed": 60},
    {"status": "pulling 222", "digest": TWO, "total": 300, "completed": 30},
    {"status": "pulling 111", "digest": ONE, "total": 100, "completed": 100},
    {"status": "pulling 222", "digest": TWO, "total": 300, "completed": 300},
    {"status": "verifying sha256 digest"},
    {"status": "writing manifest"},
    {"status": "success"},
]


def at(endpoint: str, **more: Any) -> HttpClient:
    """Return what asks an Ollama at this address."""
    provider = replace(PROVIDER, endpoint=endpoint, **more)
    return client_of(Host.of({}), provider, Config(), "m", patience=PATIENCE)


def lines(*given: dict[str, Any]) -> Behaviour:
    """Send these lines."""
    body = b"".join(msgspec.json.encode(each) + b"\n" for each in given)

    def answer(to: Any) -> None:
        to.head(200, Content_Type="application/x-ndjson", Content_Length=len(body))
        to.wfile.write(body)

    return answer


@pytest.mark.integration
def test_the_lines_are_such_as_the_official_client_takes():
    import ollama  # an SDK is slow to import

    for each in LINES:
        ollama.ProgressResponse.model_validate(each)


async def test_the_layers_are_counted_together():
    steps: list[Any] = []
    with open_hub(lines(*LINES)) as server:
        await pull(at(server.url), "qwen3:8b", lambda *step: steps.append(step))
    assert server.asked[0][0] == "/api/pull"
    assert msgspec.json.decode(server.bodies[0]) == {"model": "qwen3:8b", "stream": True}
    assert steps == [
        (0, 0, "pulling manifest"),
        (0, 100, "fetching"),
        (60, 100, "fetching"),
        (90, 400, "fetching"),
        (130, 400, "fetching"),
        (400, 400, "fetching"),
        (400, 400, "verifying sha256 digest"),
        (400, 400, "writing manifest"),
        (400, 400, "success"),
    ]


@pytest.mark.integration
@every_row(
    ("behaviour", "kind", "words"),
    [
        (lines(*LINES[:4]), ProviderDown, r"without saying that it succeeded \(last: pulling 222\)"),
        (lines(), ProviderDown, r"\(last: nothing\)"),
        (lines(LINES[0], {"error": "pull model manifest: file does not exist"}), NotServed, "ollama knows no model 'm' to download"),
        (lines(LINES[0], {"error": "max retries exceeded"}), ProviderDown, "max retries exceeded"),
        (says(500), ModelError, "500"),
    ],
)  # fmt: skip
async def test_a_download_that_does_not_succeed_is_an_error(
    behaviour: Behaviour, kind: type[Exception], words: str
):
    with open_hub(behaviour) as server, pytest.raises(kind, match=words):
        await pull(at(server.url), "m", lambda *_: None)


@pytest.mark.integration
@every_row("path", ["", "/", "/v1", "/api/chat"])
async def test_the_address_may_have_a_path_as_that_of_a_chat_has(path: str):
    with open_hub(lines(*LINES)) as server:
        await pull(at(server.url + path), "m", lambda *_: None)
    assert server.asked[0][0] == "/api/pull"


async def test_it_goes_through_what_stands_before_the_server_as_a_chat_does():
    seen: list[dict[str, str]] = []

    def note(to: Any) -> None:
        seen.append({name.lower(): value for name, value in to.headers.items()})
        lines(*LINES)(to)

    with open_hub(note) as server:
        client = at(f"{server.url}?team=a", headers={"X-Gate": "b"}, api_key="k" * 8)
        await pull(client, "m", lambda *_: None)
    assert server.asked[0][0] == "/api/pull?team=a"
    assert (seen[0]["x-gate"], seen[0]["authorization"]) == ("b", "Bearer " + "k" * 8)


async def test_a_server_that_is_not_there_says_how_to_start_it():
    with open_hub(lines()) as server:
        pass
    with pytest.raises(ProviderDown) as caught:
        await pull(at(server.url), "m", lambda *_: None)
    assert "ollama serve" in f"{caught.value} {caught.value.remedies}"
