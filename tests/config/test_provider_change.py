import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ybs.config.layers import load
from ybs.config.schema import Llm

Write = Callable[[str, str], Path]
KEY = "k" * 20


def llm_of(project: Path, write: Write, *layers: dict[str, Any]) -> tuple[Llm, tuple[str, ...]]:
    """Load with each layer's `llm`: the user's file, the home file, then variables."""
    for name, values in zip(("user", "home"), layers, strict=False):
        write(name, json.dumps({"llm": values}))
    environ = {
        f"YBS_LLM__{name.upper()}": value for values in layers[2:] for name, value in values.items()
    }
    loaded = load(folder=project, environ={**os.environ, **environ})
    return loaded.config.llm, loaded.warnings


def test_another_provider_takes_back_what_belonged_to_the_first(project: Path, write: Write):
    first = {"provider": "a", "model": "m", "endpoint": "http://a", "api_key": KEY, "max_tokens": 9}
    llm, warnings = llm_of(project, write, first, {"provider": "b"})
    assert (llm.provider, llm.model, llm.endpoint, llm.api_key) == ("b", None, None, None)
    assert llm.max_tokens == 9
    assert warnings == ()


def test_another_provider_keeps_what_comes_with_it(project: Path, write: Write):
    first = {"provider": "a", "model": "m", "endpoint": "http://a", "api_key": KEY}
    second = {"model": "n", "endpoint": "http://b", "provider": "b"}
    llm, _ = llm_of(project, write, first, {}, second)
    assert (llm.provider, llm.model, llm.endpoint, llm.api_key) == ("b", "n", "http://b", None)


def test_the_same_provider_and_a_first_one_take_nothing_back(project: Path, write: Write):
    first = {"model": "m", "endpoint": "http://a", "api_key": KEY}
    for second in ({"provider": "b"}, {"temperature": 1}, {"endpoint": "http://a"}):
        llm, warnings = llm_of(project, write, first, second)
        assert (llm.model, llm.endpoint, llm.api_key) == ("m", "http://a", KEY)
        assert warnings == ()


def test_another_endpoint_takes_back_the_key_with_a_warning(project: Path, write: Write):
    for first in ({"provider": "a", "api_key": KEY}, {"endpoint": "http://a", "api_key": KEY}):
        llm, warnings = llm_of(project, write, first, {}, {"endpoint": "http://b"})
        assert (llm.endpoint, llm.api_key) == ("http://b", None)
        assert len(warnings) == 1
        assert "llm.api_key: left out, for llm.endpoint is another one now" in warnings[0]


def test_a_key_set_with_the_endpoint_is_used(project: Path, write: Write):
    first = {"provider": "a", "api_key": KEY}
    llm, warnings = llm_of(project, write, first, {"endpoint": "http://b", "api_key": "other"})
    assert (llm.endpoint, llm.api_key) == ("http://b", "other")
    assert warnings == ()


def test_a_key_for_nobody_in_particular_is_used_anywhere(project: Path, write: Write):
    llm, warnings = llm_of(project, write, {"api_key": KEY}, {"endpoint": "http://b"})
    assert llm.api_key == KEY
    assert warnings == ()


def test_an_endpoint_taken_back_takes_the_key_with_it(project: Path, write: Write):
    llm, warnings = llm_of(
        project, write, {"endpoint": "http://a", "api_key": KEY}, {"endpoint": None}
    )
    assert (llm.endpoint, llm.api_key) == (None, None)
    assert len(warnings) == 1
