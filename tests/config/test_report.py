import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from rows import every_row
from ybs.config.report import SCHEMA_DIALECT, check, json_schema, mask_address, show
from ybs.config.schema import Config
from ybs.config.tree import flatten
from ybs.trust.settings import load

Write = Callable[[str, str], Path]

SECRET = "sk-" + "z9y8" * 8
#: What draft 2020-12 allows in a schema, as far as one of ours uses it.
KEYWORDS = {
    "$schema": str,
    "$defs": dict,
    "$ref": str,
    "title": str,
    "description": str,
    "type": str,
    "default": object,
    "properties": dict,
    "additionalProperties": (bool, dict),
    "required": list,
    "items": (dict, bool),
    "enum": list,
    "anyOf": list,
    "minimum": (int, float),
    "maximum": (int, float),
    "exclusiveMinimum": (int, float),
    "minLength": int,
    "maxLength": int,
    "pattern": str,
}


def schemas_in(schema: Any) -> Iterator[dict[str, Any]]:
    yield schema
    for word in ("properties", "$defs"):
        for inner in schema.get(word, {}).values():
            yield from schemas_in(inner)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from schemas_in(schema[word])
    for inner in schema.get("anyOf", []):
        yield from schemas_in(inner)


# --- show ----------------------------------------------------------------------------------------


def test_every_setting_is_shown_with_its_source(project: Path, write: Write):
    file = write("user", '{"llm": {"model": "m"}, "hooks": {"a": {"b": [1, "x"]}}}')
    rows = {row.key: row for row in show(load(this_host(), folder=project))}
    assert rows.keys() >= flatten(Config()).keys() - {"hooks"}
    assert rows["llm.model"].value == "m"
    assert (rows["llm.model"].origin.layer, rows["llm.model"].origin.source) == ("user", str(file))
    assert rows["llm.max_tokens"].origin.layer == "default"
    assert rows["hooks.a.b"].value == [1, "x"]


def test_no_secret_is_shown(project: Path, write: Write):
    values = {
        "llm": {
            "api_key": SECRET,
            "endpoint": f"http://me:{SECRET}@host/v1?key={SECRET}&b={SECRET}#c",
        },
        "providers": {
            "w": {"endpoint": "http://w", "api_key": SECRET, "headers": {"X-Thing": SECRET}}
        },
        "mcpServers": {
            "x": {
                "env": {"ANY": SECRET},
                "args": ["--token", SECRET, f"--api-key={SECRET}", {"password": SECRET}, "--x=1"],
                "url": f"https://x?auth={SECRET}",
            }
        },
        "gateway": {"channels": {"telegram": {"token": SECRET, "x": [{"client_secret": SECRET}]}}},
        "memory": {"a": 1},
        "tools": {"external": [{"name": "x", "path": f"http://{SECRET}@h"}]},
    }
    write("user", json.dumps(values))
    loaded = load(this_host(), folder=project)
    (warning,) = loaded.warnings
    assert warning.startswith("memory: without effect")
    rows = show(loaded)
    assert SECRET not in repr(rows)
    shown = {row.key: row.value for row in rows}
    assert shown["llm.api_key"] == "****z9y8"
    assert shown["providers.w.headers.X-Thing"] == "****z9y8"
    assert shown["mcpServers.x.args"][0] == "--token"
    assert shown["mcpServers.x.args"][4] == "--x=1"
    assert shown["llm.endpoint"] == "http://host/v1?…"
    assert mask_address(f"a --at=ws://{SECRET}@h/x#@y 'http://h?a={SECRET}'") == (
        "a --at=ws://h/x 'http://h?…'"
    )


def test_counts_of_tokens_and_names_of_variables_are_no_secrets(project: Path, write: Write):
    write(
        "user", '{"providers": {"w": {"endpoint": "http://w", "api_key_env": "WORK_LLM_KEY_NAME"}}}'
    )
    rows = {row.key: row.value for row in show(load(this_host(), folder=project))}
    assert rows["providers.w.api_key_env"] == "WORK_LLM_KEY_NAME"
    assert rows["llm.max_tokens"] == 8192
    assert rows["llm.api_key"] is None


def test_nothing_that_a_terminal_acts_on_is_shown(project: Path, write: Write):
    write(
        "user", json.dumps({"llm": {"model": "a\x1b[2J"}, "hooks": {"k\x07": {"\x1b": ["\x1b"]}}})
    )
    assert "\x1b" not in "".join(
        f"{row.key} {row.value}" for row in show(load(this_host(), folder=project))
    )


@every_row("text", ["plain?x=y", "http://host:1/v1", "a@b"])
def test_an_address_without_secrets_stays(text: str):
    assert mask_address(text) == text


# --- check ---------------------------------------------------------------------------------------


def test_good_settings_have_no_problems(project: Path, write: Write):
    write("user", '{"llm": {"provider": "w"}, "providers": {"w": {"endpoint": "https://w"}}}')
    assert check(load(this_host(), folder=project)) == ()


def test_warnings_are_problems(project: Path, write: Write):
    write("user", '{"lmm": 1}')
    loaded = load(this_host(), folder=project)
    assert check(loaded) == loaded.warnings != ()


def test_an_address_that_is_none_is_a_problem(project: Path, write: Write):
    file = write(
        "user",
        '{"llm": {"endpoint": "localhost:1"}, "providers": {"w": {"endpoint": "file:///x"}}}',
    )
    words = "does not begin with http:// or https:// and the name of a server"
    assert check(load(this_host(), folder=project)) == (
        f"{file}: llm.endpoint: the address {words}",
        f"{file}: providers.w.endpoint: the address {words}",
    )


def test_a_key_that_others_can_read_is_a_problem(project: Path, write: Write):
    file = write("user", f'{{"profiles": {{"p": {{"llm": {{"api_key": "{SECRET}"}}}}}}}}')
    loaded = load(this_host(), folder=project, profile="p")
    words = f"{file}: contains a key and other users can read it; run: chmod 600 '{file}'"
    assert check(loaded) == (words,)
    file.chmod(0o600)
    assert check(loaded) == ()


# --- schema --------------------------------------------------------------------------------------


def test_the_schema_uses_the_words_of_its_dialect():
    schema = json_schema()
    assert schema["$schema"] == SCHEMA_DIALECT
    for each in schemas_in(schema):
        for word, value in each.items():
            assert isinstance(value, KEYWORDS[word]), word
        if "pattern" in each:
            re.compile(each["pattern"])
        if "$ref" in each:
            assert each["$ref"] == "#" or each["$ref"].removeprefix("#/$defs/") in schema["$defs"]
    json.dumps(schema)


def test_the_schema_describes_every_setting():
    schema = json_schema()
    objects = [schema, *schema["$defs"].values()]
    assert len(objects) == 29
    for each in objects:
        assert each["description"]
        assert each["additionalProperties"] is False
        for name, facts in each["properties"].items():
            assert name == "$schema" or "$ref" in facts or facts["description"]
            assert name == "$schema" or name in each["required"] or "default" in facts


@pytest.mark.integration
def test_the_schema_can_be_changed_by_the_caller_without_harm():
    json_schema()["properties"].clear()
    assert json_schema()["properties"]


def test_settings_of_features_that_are_not_there_yet_are_named_in_one_line(project, write):
    write("user", '{"memory": {"a": 1}}')
    loaded = load(this_host(), folder=project)
    said = "memory: without effect, because this version does not have these features yet"
    assert check(loaded) == (said,)
    assert loaded.config.memory == {"a": 1}
