import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from ybs.config.host import Host
from ybs.config.provider_change import ADDRESS_ALONE
from ybs.config.schema import Config, LlmSettings
from ybs.providers.registry import is_named_at_address
from ybs.trust.settings import load

Write = Callable[[str, str], Path]
KEY = "k" * 20


def llm_of(
    project: Path, write: Write, *layers: dict[str, Any]
) -> tuple[LlmSettings, tuple[str, ...]]:
    """Load with each layer's `llm`: the user's file, the home file, then variables."""
    for name, values in zip(("user", "home"), layers, strict=False):
        write(name, json.dumps({"llm": values}))
    environ = {
        f"YBS_LLM__{name.upper()}": value for values in layers[2:] for name, value in values.items()
    }
    loaded = load(Host.of({**os.environ, **environ}), folder=project)
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
        assert (llm.endpoint, llm.api_key) == ("http://b", ADDRESS_ALONE)
        assert len(warnings) == 1
        assert "llm.api_key: ignored, because llm.endpoint has changed" in warnings[0]


def test_an_address_is_named_with_its_provider_by_one_layer_or_alone(project: Path, write: Write):
    both = {"provider": "openai", "endpoint": "http://b"}
    alone, one = {"endpoint": "http://b"}, {"provider": "openai"}
    for layers, is_named in (
        ([both], True),
        ([{"endpoint": "http://a"}, both], True),
        ([alone, both], True),
        ([both, one], True),
        ([both, {"model": "m"}], True),
        ([{}, {}, both], True),
        ([alone], False),
        ([one, alone], False),
        ([one, {}, alone], False),
        ([alone, one], False),
        ([{**both, "endpoint": "http://a"}, alone], False),
    ):
        llm, warnings = llm_of(project, write, *layers, *[{}] * (2 - len(layers)))
        assert llm.endpoint == "http://b", layers
        assert is_named_at_address(Config(llm=llm)) is is_named, layers
        assert warnings == (), layers
    llm, _ = llm_of(project, write, {"endpoint": "http://a"}, {"endpoint": None})
    assert (llm.endpoint, llm.api_key) == (None, None)


def test_a_key_set_with_the_endpoint_is_used(project: Path, write: Write):
    first = {"provider": "a", "api_key": KEY}
    llm, warnings = llm_of(project, write, first, {"endpoint": "http://b", "api_key": "other"})
    assert (llm.endpoint, llm.api_key) == ("http://b", "other")
    assert warnings == ()


@pytest.mark.parametrize("named", [{"provider": "b"}, {"endpoint": "http://b"}])
def test_a_key_for_nobody_in_particular_goes_to_nobody_that_a_variable_names(project, write, named):
    llm, warnings = llm_of(project, write, {"api_key": KEY}, {}, named)
    assert not llm.api_key
    assert len(warnings) == 1
    assert "llm.api_key: ignored" in warnings[0]


def test_a_key_for_nobody_in_particular_goes_to_no_provider_that_an_option_names(project, write):
    write("user", json.dumps({"llm": {"api_key": KEY}}))
    loaded = load(this_host(), folder=project, overrides={"llm.provider": "anthropic"})
    assert loaded.config.llm.api_key is None
    assert "llm.api_key: ignored" in loaded.warnings[0]


def test_a_provider_of_a_stronger_own_file_may_have_the_key(project: Path, write: Write):
    llm, warnings = llm_of(project, write, {"api_key": KEY}, {"provider": "b"})
    assert (llm.provider, llm.api_key) == ("b", KEY)
    assert warnings == ()


# --- providers of one's own ------------------------------------------------------------------

WORK = {"endpoint": "https://a", "api_key": KEY, "model": "m", "headers": {"x": "A"}}


def work_of(project: Path, write: Write, over: dict[str, Any], **variables: str):
    write("user", json.dumps({"providers": {"work": {**WORK, "api_key_env": "WORK_KEY"}}}))
    write("home", json.dumps({"providers": {"work": over}}))
    loaded = load(Host.of({**os.environ, **variables}), folder=project)
    return loaded.config.providers["work"], loaded.warnings


def test_another_address_takes_back_key_and_headers_of_an_own_provider(project: Path, write: Write):
    by_variable = {"YBS_PROVIDERS__WORK__ENDPOINT": "http://b"}
    for over, variables in (({"endpoint": "http://b"}, {}), ({}, by_variable)):
        work, warnings = work_of(project, write, over, **variables)
        assert (work.endpoint, work.model) == ("http://b", "m")
        assert (work.api_key, work.api_key_env, work.headers) == (None, None, {})
        assert len(warnings) == 3
        assert "providers.work.api_key: ignored, because providers.work.endpoint has" in warnings[0]
        assert KEY not in repr(warnings)


def test_what_comes_with_the_other_address_is_used(project: Path, write: Write):
    over = {"endpoint": "http://b", "api_key": "other", "headers": {"y": "B"}}
    work, warnings = work_of(project, write, over)
    assert (work.api_key, work.api_key_env, work.headers) == ("other", None, {"y": "B"})
    assert len(warnings) == 1
    assert "providers.work.api_key_env: ignored" in warnings[0]


def test_the_same_address_takes_nothing_back(project: Path, write: Write):
    work, warnings = work_of(project, write, {"endpoint": "https://a", "headers": {"y": "B"}})
    assert (work.api_key, work.headers) == (KEY, {"x": "A", "y": "B"})
    assert warnings == ()


def test_a_key_of_an_own_provider_that_is_used_at_another_address_is_told(project, write):
    llm = {"provider": "work", "endpoint": "http://b"}
    write("user", json.dumps({"llm": llm, "providers": {"work": WORK}}))
    loaded = load(this_host(), folder=project)
    assert len(loaded.warnings) == 1
    assert "providers.work: its key, headers and extra_body are not sent" in loaded.warnings[0]


def test_an_endpoint_taken_back_takes_the_key_with_it(project: Path, write: Write):
    llm, warnings = llm_of(
        project, write, {"endpoint": "http://a", "api_key": KEY}, {"endpoint": None}
    )
    assert (llm.endpoint, llm.api_key) == (None, None)
    assert len(warnings) == 1
