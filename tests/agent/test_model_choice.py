"""Which models get the short prompt."""

from pathlib import Path
from typing import Any

from hosts import this_host
from rows import every_row
from ybs.agent.model_choice import is_small, size_of
from ybs.config.layers import load
from ybs.config.schema import PromptForm
from ybs.providers.registry import InProcessModel, create_model
from ybs.testing import ScriptedModel

HERE = "http://127.0.0.1:9/v1"
AWAY = "https://models.example/v1"


def config_of(folder: Path, **settings: Any) -> Any:
    overrides = {f"llm.{name}": value for name, value in settings.items()}
    return load(this_host(), folder=folder, overrides=overrides).config


@every_row(
    "settings, is_short",
    [
        ({"endpoint": HERE, "model": "qwen2.5-coder-1.5b"}, True),
        ({"endpoint": HERE, "model": "qwen3-8b"}, True),
        ({"endpoint": HERE, "model": "llama-3.3-70b"}, False),
        ({"endpoint": HERE, "model": "gpt-4.1"}, False),
        ({"endpoint": AWAY, "model": "llama-3.2-3b"}, True),
        ({"endpoint": AWAY, "model": "qwen3-8b"}, False),
        ({"endpoint": AWAY, "model": "llama-3.2-3b", "prompt": "full"}, False),
        ({"endpoint": AWAY, "model": "gpt-4.1", "prompt": "short"}, True),
        ({"endpoint": AWAY, "model": "gpt-4"}, True),  # a window of 8,192
        ({"provider": "ollama", "model": "m"}, True),
        ({"provider": "ollama", "model": "qwen3:14b"}, True),
        ({"provider": "ollama", "model": "llama3.3:70b"}, False),
    ],
)
async def test_size_window_and_place_decide_and_the_settings_before_them(
    settings: dict[str, str], is_short: bool, project: Path
):
    config = config_of(project, **settings)
    provider = settings.get("provider", "openai")
    model = create_model(this_host(), config, provider=provider)
    assert is_small(this_host(), provider, model, config) is is_short
    await model.aclose()


@every_row("form, is_short", [("short", True), ("full", False), ("auto", True), (None, True)])
def test_what_is_asked_for_goes_before_all(form: PromptForm | None, is_short: bool, project: Path):
    model = InProcessModel(ScriptedModel(window=4_096), 1_024)
    assert is_small(this_host(), "in-process", model, config_of(project), form) is is_short


@every_row("name, is_short", [("scripted", False), ("my-1b", True), ("my-8b", False)])
def test_a_model_that_was_handed_in_is_judged_by_window_and_name(
    name: str, is_short: bool, project: Path
):
    model = InProcessModel(ScriptedModel(name=name), 1_024)
    assert is_small(this_host(), "in-process", model, config_of(project)) is is_short


def test_the_size_of_a_model_is_what_its_name_says():
    names = ("smollm2:360m", "llama3.2:1b", "qwen2.5-coder-1.5b", "gpt-4o")
    assert [size_of(ScriptedModel(name=name)) for name in names] == [0.36, 1.0, 1.5, None]
