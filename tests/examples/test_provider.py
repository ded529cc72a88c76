"""examples/provider, installed: its provider and its wire format are found by their names."""

from pathlib import Path
from typing import Any

import pytest

from parrot import ParrotServer, install_parrot
from ybs.config.host import Host
from ybs.config.schema import Config, LlmSettings
from ybs.core.errors import ConfigError
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.registry import create_model


async def test_the_provider_is_found_by_its_name_with_the_format_of_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_parrot(tmp_path, monkeypatch)
    key = "seed-" + "7" * 12
    async with ParrotServer(["polly"], models=["ara", "kea"]) as server:
        config = Config(llm=LlmSettings(provider="parrot", endpoint=server.url, api_key=key))
        model = create_model(Host.of({}), config)
        request = Request("be brief", [UserMessage.of("who are you?")])
        events: list[Any] = [event async for event in model.stream(request)]
        assert await model.list_models() == ["ara", "kea"]
        await model.aclose()
    assert events[-1].message.text == "polly"
    (asked,) = server.requests
    assert (asked.path, asked.headers["x-seed"]) == ("/birds/ara/talk", key)
    assert asked.body["talk"] == [{"who": "person", "says": "who are you?"}]


def test_without_it_the_name_is_not_known() -> None:
    with pytest.raises(ConfigError, match="no provider 'parrot'"):
        create_model(Host.of({}), Config(llm=LlmSettings(provider="parrot")))
