import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hosts import this_host
from rows import every_row
from timing import takes_at_most
from ybs.config.host import Host
from ybs.config.layers import Loaded
from ybs.config.schema import Config
from ybs.config.tree import DEFAULT, ValueOrigin, flatten
from ybs.core.errors import ConfigError
from ybs.trust.settings import load

Write = Callable[[str, str], Path]

VARIABLES = (
    *("YBS_MODEL", "YBS_LLM__MODEL", "YBS_LLM__MAX_TOKENS", "YBS_UI__COLOR", "YBS_SAFETY__MODE"),
    *(
        "YBS_SAFETY__BLOCKED_COMMANDS",
        "YBS_TOOLS__EXTERNAL",
        "YBS_LLM__X",
        "YBS_PROVIDERS__A__MODEL",
    ),
)

SPECIFICATION = """{
  "version": "1.0",
  "llm": {"provider": "ollama", "model": "qwen3:14b", "endpoint": "http://localhost:11434",
    "api_key": null, "temperature": 0.7, "max_tokens": 4096, "timeout_seconds": 120},
  "context": {"max_tokens": 32000, "compaction_threshold": 0.95, "repo_map_tokens": 1024,
    "max_tool_output_chars": 10000},
  "agent": {"max_iterations": 25, "retry_attempts": 3, "retry_backoff_base_ms": 1000},
  "safety": {"sandbox_enabled": true, "sandbox_allowed_paths": ["./"],
    "sandbox_blocked_paths": ["~/.ssh", "~/.aws", "~/.config"],
    "require_confirmation": ["write_file", "run_shell", "delete_file"],
    "blocked_commands": ["rm -rf /", "sudo", "chmod 777"]},
  "tools": {
    "builtin": {"read_file": {"enabled": true}, "write_file": {"enabled": true},
      "run_shell": {"enabled": true, "timeout_seconds": 30}},
    "external": [{"name": "web_search", "type": "executable", "path": "~/.ybs/tools/web-search",
      "enabled": true, "timeout_seconds": 30, "description": "Search the web.",
      "parameters": {"query": {"type": "string", "required": true}}}],
    "search_paths": ["~/.config/ybs/tools", "~/.ybs/tools", "./tools"]},
  "git": {"auto_commit": true, "commit_message_prefix": "[ybs]"},
  "ui": {"color": true, "show_token_usage": true, "show_tool_calls": true,
    "stream_responses": true},
  "session": {"storage_path": "~/.config/ybs/sessions", "auto_save": true, "max_sessions": 100,
    "retention_days": 30},
  "router": {}, "mcpServers": {"x": {"command": "y", "env": {"T": "${NOT_SET}"}}},
  "hooks": {"a": ["b"]}, "skills": {}, "memory": {"a": null}, "gateway": {"projects": {"b": "c"}},
  "profiles": {"p": {"llm": {"model": "${NOT_SET}"}}}, "firewall": {}, "incognito": {},
  "providers": {"work": {"endpoint": "http://x"}}
}"""


def origin_of(loaded: Loaded, key: str) -> tuple[str, str]:
    origin = loaded.origins[key]
    return origin.layer, Path(origin.source).name


def test_nothing_configured_gives_the_defaults(project: Path):
    loaded = load(this_host(), folder=project)
    assert loaded.config == Config()
    assert loaded.warnings == ()
    assert set(loaded.origins.values()) == {DEFAULT}
    assert loaded.origins.keys() == flatten(loaded.config).keys()


def test_every_key_of_the_specification_is_taken_and_one_line_names_those_without_effect(
    project: Path, write: Write
):
    write("user", SPECIFICATION)
    loaded = load(this_host(), folder=project)
    assert loaded.warnings == (
        "memory: without effect, because this version does not have these features yet",
    )
    config = loaded.config
    assert config.llm.model == "qwen3:14b"
    assert config.context.max_tokens == 32000
    assert config.agent.max_iterations == 25
    assert config.tools.builtin["run_shell"].timeout_seconds == 30
    assert config.tools.external[0].path == "~/.ybs/tools/web-search"
    assert config.mcpServers["x"]["env"] == {"T": "${NOT_SET}"}
    assert config.memory == {"a": None}
    assert config.providers["work"].wire == "openai"


def test_later_layers_win_and_every_value_knows_where_it_came_from(project, write, monkeypatch):
    names = ["system", "user", "home", "project", "file"]
    file: Path | None = None
    for number, layer in enumerate(names):
        keys = ["a", "b", "c", "d", "e"][number:]
        values: dict[str, Any] = {"memory": dict.fromkeys(keys, layer), "llm": {"model": layer}}
        if layer == "project":
            values = {"llm": {"temperature": 1}}
        file = write(layer, json.dumps(values))
    monkeypatch.setenv("YBS_MODEL", "variable")
    monkeypatch.setenv("YBS_LLM__MAX_TOKENS", "7")
    loaded = load(this_host(), folder=project, config_file=file, overrides={"llm.model": "option"})
    assert loaded.warnings == (
        "memory: without effect, because this version does not have these features yet",
    )
    assert loaded.config.memory == {
        "a": "system",
        "b": "user",
        "c": "home",
        "d": "home",
        "e": "file",
    }
    assert origin_of(loaded, "memory.a") == ("system", "config.json")
    assert origin_of(loaded, "memory.b") == ("user", "config.json")
    assert origin_of(loaded, "memory.c") == ("home", ".ybs.json")
    assert origin_of(loaded, "memory.e") == ("file", "asked-for.json")
    assert loaded.config.llm.max_tokens == 7
    assert loaded.origins["llm.max_tokens"] == ValueOrigin("environment", "YBS_LLM__MAX_TOKENS")
    assert loaded.config.llm.model == "option"
    assert loaded.origins["llm.model"] == ValueOrigin("option", "option")
    assert loaded.origins["llm.timeout_seconds"] == DEFAULT


@pytest.mark.parametrize(
    ("layers", "winner"),
    [
        (["system"], "system"),
        (["system", "user"], "user"),
        (["system", "user", "home"], "home"),
        (["system", "user", "home", "project"], "project"),
        (["system", "user", "home", "project", "file"], "file"),
    ],
)
def test_each_file_wins_over_the_ones_before(project, write, layers, winner):
    said = {layer: json.dumps({"git": {"commit_message_prefix": layer}}) for layer in layers}
    written = {layer: write(layer, text) for layer, text in said.items()}
    loaded = load(this_host(), folder=project, config_file=written.get("file"))
    assert loaded.config.git.commit_message_prefix == winner
    assert loaded.origins["git.commit_message_prefix"] == ValueOrigin(winner, str(written[winner]))  # pyright: ignore[reportArgumentType] - a layer


def test_objects_are_merged_and_lists_are_replaced(project: Path, write: Write):
    write("user", '{"safety": {"blocked_commands": ["a"], "safe_commands": ["b"]}}')
    write("home", '{"safety": {"blocked_commands": []}}')
    config = load(this_host(), folder=project).config
    assert config.safety.blocked_commands == ()
    assert config.safety.safe_commands == ("b",)


def test_null_takes_a_value_back(project: Path, write: Write):
    write("user", '{"llm": {"model": "m", "temperature": 1}}')
    write("home", '{"llm": {"model": null}}')
    config = load(this_host(), folder=project).config
    assert config.llm.model is None
    assert config.llm.temperature == 1.0


def test_xdg_and_ybs_home_move_the_users_file(project, tmp_path, monkeypatch):
    for name, folder in (("XDG_CONFIG_HOME", "x/ybs"), ("YBS_HOME", "y")):
        file = tmp_path / folder / "config.json"
        file.parent.mkdir(parents=True)
        file.write_text(f'{{"llm": {{"model": "{name}"}}}}')
        monkeypatch.setenv(name, str(file.parent if name == "YBS_HOME" else file.parent.parent))
        assert load(this_host(), folder=project).config.llm.model == name


def test_a_relative_ybs_home_is_ignored_with_a_warning(project: Path):
    (project / "config.json").write_text('{"llm": {"model": "evil"}}')
    loaded = load(Host.of({"HOME": "/nowhere", "YBS_HOME": "."}), folder=project)
    assert loaded.config == Config()
    assert loaded.warnings == ("YBS_HOME: must be an absolute path; it is ignored",)


def test_the_given_environment_is_the_one_that_is_read(project, home, write, monkeypatch):
    write("home", '{"llm": {"model": "${NAME}"}}')
    monkeypatch.setenv("YBS_LLM__MAX_TOKENS", "9")
    loaded = load(Host.of({"HOME": str(home), "NAME": "n"}), folder=project)
    assert loaded.config.llm.model == "n"
    assert loaded.config.llm.max_tokens == 8192


# --- what goes wrong -------------------------------------------------------------------------


def test_a_broken_file_names_file_line_and_reason_and_the_rest_stands(project: Path, write: Write):
    file = write("user", '{"llm": {\n"model": "x",}}')
    write("home", '{"llm": {"max_tokens": 5}}')
    loaded = load(this_host(), folder=project)
    assert loaded.config.llm.max_tokens == 5
    assert loaded.config.llm.model is None
    assert loaded.warnings == (
        f"{file}:2: IGNORED as a whole, because it is not valid JSON: trailing comma in object",
    )


def test_a_bad_value_falls_back_to_the_layer_before(project: Path, write: Write):
    write("user", '{"llm": {"model": "good", "max_tokens": 5}}')
    file = write("home", '{"llm": {\n"model": "${NOT_SET}",\n"max_tokens": "6"}}')
    loaded = load(this_host(), folder=project)
    assert loaded.config.llm.model == "good"
    assert loaded.config.llm.max_tokens == 5
    assert loaded.warnings == (
        f"{file}:2: llm.model: the variable NOT_SET is not set; it is ignored",
        f"{file}:3: llm.max_tokens: must be a whole number, not text; it is ignored",
    )


def test_a_file_that_others_can_write_is_ignored_loudly(project: Path, write: Write):
    file = write("user", '{"llm": {"model": "evil"}}')
    file.chmod(0o666)
    loaded = load(this_host(), folder=project)
    assert loaded.config == Config()
    assert loaded.warnings == (
        f"{file}: IGNORED as a whole, because it can be written by others (mode 0666); "
        f"run: chmod go-w '{file}'",
    )


@pytest.mark.integration
@pytest.mark.parametrize("layer", ["user", "home", "project"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "giant", "binary", "deep", "list"])
def test_odd_files_are_a_warning_within_a_second(project, write, layer, kind):
    file = write(layer, "")
    file.unlink()
    match kind:
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "giant":
            with file.open("wb") as handle:
                handle.truncate(1_000_000_000)
        case "binary":
            file.write_bytes(bytes(range(256)))
        case "deep":
            file.write_text('{"hooks":' * 20_000)
        case _:
            file.write_text("[]")
    if kind not in ("device", "pipe"):
        file.chmod(0o755 if kind == "folder" else 0o644)
    with takes_at_most(1):
        loaded = load(this_host(), folder=project)
    assert loaded.config == Config()
    assert len(loaded.warnings) == 1
    assert loaded.warnings[0].startswith(str(file))
    assert ": IGNORED as a whole, because it " in loaded.warnings[0]


def test_a_provider_without_what_it_needs_is_left_out(project: Path, write: Write):
    text = '{"providers": {\n"half": {"model": "x"}}, "cli_agents": {\n"none": {"command": []}}}'
    file = write("user", text)
    loaded = load(this_host(), folder=project)
    assert (loaded.config.providers, loaded.config.cli_agents) == ({}, {})
    assert loaded.warnings == (
        f"{file}:2: providers.half: ignored, because it has no `endpoint`",
        f"{file}:3: cli_agents.none: ignored, because it has no `command`",
    )


def test_a_provider_may_be_put_together_by_several_layers(project: Path, write: Write):
    write("system", '{"providers": {"work": {"endpoint": "http://work", "wire": "ollama"}}}')
    write("user", '{"providers": {"work": {"model": "m"}}}')
    environ = {**os.environ, "YBS_PROVIDERS__WORK__WINDOW": "4096"}
    loaded = load(Host.of(environ), folder=project)
    work = loaded.config.providers["work"]
    assert (work.endpoint, work.wire, work.model, work.window) == (
        "http://work",
        "ollama",
        "m",
        4096,
    )
    assert loaded.origins["providers.work.window"].layer == "environment"


# --- --config ----------------------------------------------------------------------------------


def test_config_file_that_is_missing_is_an_error(project: Path):
    with pytest.raises(
        ConfigError, match=r"none\.json: the requested configuration file does not exist"
    ):
        load(this_host(), folder=project, config_file=Path("none.json"))


def test_config_file_that_is_broken_is_an_error_with_its_line(project: Path, write: Write):
    file = write("file", '{"llm":\n}')
    with pytest.raises(ConfigError, match=r"asked-for\.json:2: .* is not valid JSON: "):
        load(this_host(), folder=project, config_file=file)


def test_config_file_that_is_unusable_is_an_error(project: Path, write: Write):
    file = write("file", "{}")
    file.chmod(0o666)
    with pytest.raises(ConfigError, match="can be written by others"):
        load(this_host(), folder=project, config_file=file)
    with pytest.raises(ConfigError, match="not a regular file"):
        load(this_host(), folder=project, config_file=project)


def test_config_file_with_a_bad_value_is_only_a_warning(project: Path, write: Write):
    file = write("file", '{"llm": {"max_tokens": "x", "model": "m"}}')
    loaded = load(this_host(), folder=project, config_file=file)
    assert loaded.config.llm.model == "m"
    assert len(loaded.warnings) == 1


# --- profiles ------------------------------------------------------------------------------------


def test_a_profile_lies_over_the_files_and_under_the_environment(project: Path, write: Write):
    profiles = '"profiles": {"fast": {"llm": {"model": "small", "max_tokens": 10}}}'
    user = write("user", '{"llm": {"model": "big"}, ' + profiles + "}")
    write("home", '{"llm": {"model": "home"}, "profiles": {"fast": {"llm": {"max_tokens": 20}}}}')
    environ = {**os.environ, "YBS_LLM__TEMPERATURE": "1"}
    loaded = load(Host.of(environ), folder=project, profile="fast")
    assert loaded.config.llm.model == "small"
    assert loaded.config.llm.max_tokens == 20
    assert loaded.config.llm.temperature == 1.0
    assert loaded.origins["llm.model"] == ValueOrigin("profile", f"{user}: profiles.fast")
    assert loaded.warnings == ()


def test_a_profile_can_be_chosen_by_a_variable(project: Path, write: Write):
    write("user", '{"profiles": {"a": {"llm": {"model": "a"}}, "b": {"llm": {"model": "b"}}}}')
    environ = {**os.environ, "YBS_PROFILE": "a"}
    assert load(Host.of(environ), folder=project).config.llm.model == "a"
    assert load(Host.of(environ), folder=project, profile="b").config.llm.model == "b"


def test_an_unknown_profile_is_an_error_that_lists_those_there_are(project: Path, write: Write):
    with pytest.raises(ConfigError, match=r"'fast': there is no such profile .*\(only: none\)"):
        load(this_host(), folder=project, profile="fast")
    write("user", '{"profiles": {"fast": {}, "slow": {}}}')
    with pytest.raises(
        ConfigError, match=r"'fsat': there is no such profile .*\(only: fast, slow\)"
    ):
        load(Host.of({**os.environ, "YBS_PROFILE": "fsat"}), folder=project)


def test_of_many_profiles_ten_are_named(project: Path, write: Write):
    names = [f"p{number:02}" for number in range(12)]
    write("user", msgspec.json.encode({"profiles": {name: {} for name in names}}).decode())
    with pytest.raises(ConfigError, match=rf"\(only: {', '.join(names[:10])}\)"):
        load(this_host(), folder=project, profile="p99")


def test_a_profile_lost_with_its_file_says_what_is_wrong_with_the_file(project: Path, write: Write):
    write("user", '{"profiles": {"fast": {}}')
    with pytest.raises(ConfigError, match=r"no such profile(?s:.)*IGNORED as a whole"):
        load(this_host(), folder=project, profile="fast")


def test_a_bad_profile_names_its_lines(project: Path, write: Write):
    file = write("user", '{"profiles": {"p": {\n"llm": {\n"modle": 1},\n"profiles": {}}, "q": 5}}')
    loaded = load(this_host(), folder=project, profile="p")
    assert loaded.warnings == (
        f"{file}:4: profiles.p.profiles: a profile cannot contain profiles; this is ignored",
        f"{file}:3: profiles.p.llm.modle: is not a setting; did you mean llm.model?",
    )
    with pytest.raises(ConfigError, match=r":4: profiles\.q: must be an object, in { }"):
        load(this_host(), folder=project, profile="q")


def test_a_projects_profile_is_never_chosen(project: Path, write: Write):
    write("project", '{"profiles": {"p": {"llm": {"endpoint": "http://evil"}}}}')
    with pytest.raises(ConfigError, match=r"'p': there is no such profile"):
        load(this_host(), folder=project, profile="p")


# --- environment and options ---------------------------------------------------------------------


def test_variables_that_are_no_settings_are_left_alone(project: Path):
    environ = {"HOME": "/nowhere", "YBS_HOME": "/nowhere", "YBS_SERVER": "x"}
    assert load(Host.of(environ), folder=project).warnings == ()


@pytest.mark.parametrize(
    ("variable", "value", "warning"),
    [
        ("YBS_LLM_MODEL", "m", "YBS_LLM_MODEL: is not read; use YBS_LLM__MODEL"),
        ("YBS_LLM__MODLE", "m", "YBS_LLM__MODLE: is not a setting; did you mean llm.model?"),
        (
            "YBS_LLM__MAX_TOKENS",
            "many",
            "YBS_LLM__MAX_TOKENS: must be a whole number, not text; it is ignored",
        ),
        (
            "YBS_LLM__API_KEY",
            "k",
            "YBS_LLM__API_KEY: a key is read from the provider's own variable or from your files only; "
            "this one is ignored",
        ),
    ],
)
def test_a_variable_that_does_not_fit_is_a_warning(project, variable, value, warning):
    loaded = load(Host.of({"HOME": "/nowhere", variable: value}), folder=project)
    assert loaded.config == Config()
    assert loaded.warnings == (warning,)


def test_an_option_that_was_not_given_changes_nothing(project: Path, write: Write):
    write("user", '{"llm": {"model": "m"}}')
    assert load(this_host(), folder=project, overrides={"llm.model": None}).config.llm.model == "m"


@every_row(
    ("key", "value", "words"),
    [
        ("agent.max_cost_usd", -1, "must be a number >= 0.0$"),
        ("agent.max_cost_usd", float("nan"), "must be a number"),
        ("agent.max_cost_usd", "much", "must be a number or null, not text$"),
        ("agent.max_seconds", 0, "must be a number > 0.0$"),
        ("agent.max_iterations", 0, "must be a whole number >= 1$"),
        ("safety.mode", "yolo", "must be one of ask"),
        ("llm.endpoint", "", "must be text"),
        ("agent.max_cost", 1, "is not a setting; did you mean"),
        ("llm.api_key", "k", "a key is read from"),
    ],
)
def test_an_option_that_does_not_fit_is_an_error(project, key, value, words):
    with pytest.raises(ConfigError, match=f"^{key}: {words}"):
        load(this_host(), folder=project, overrides={"safety.mode": "plan", key: value})


def test_a_key_in_the_users_own_files_is_honoured_and_never_represented(project, write):
    key = "sk-" + "x1y2" * 8
    write(
        "user",
        f'{{"llm": {{"api_key": "${{KEY}}"}}, "providers": {{"w": {{"endpoint": "http://w", "api_key": "{key}"}}}}}}',
    )
    loaded = load(Host.of({**os.environ, "KEY": key}), folder=project)
    assert loaded.config.llm.api_key == key
    assert loaded.config.providers["w"].api_key == key
    assert key not in repr(loaded)


def test_no_section_is_represented(project: Path, write: Write):
    secret = "sk-" + "r3p7" * 8
    sections = {
        "mcpServers": {"x": {"command": "y", "env": {"T": secret}}},
        "gateway": {"channels": {"bot": {"token": secret}}},
        "profiles": {"p": {"llm": {"api_key": secret}}},
        "tools": {"external": [{"name": "x", "path": "y", "description": secret}]},
        "providers": {"w": {"endpoint": f"http://me:{secret}@w", "headers": {"a": secret}}},
    }
    write("user", json.dumps({"llm": {"model": "m"}, **sections}))
    loaded = load(this_host(), folder=project)
    assert loaded.config.gateway.channels["bot"]["token"] == secret
    for shown in (loaded, loaded.config, loaded.config.gateway, loaded.config.providers):
        assert secret not in repr(shown)
    assert "model='m'" in repr(loaded.config)


# --- anything at all -----------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*Config.__struct_fields__, "model", "x"]), inner)
    ),
    max_leaves=12,
)


@pytest.mark.integration
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=40))
def test_no_file_is_an_error(project: Path, write: Write, content: bytes):
    for layer in ("user", "project"):
        write(layer, "").write_bytes(content)
    loaded = load(this_host(), folder=project)
    assert loaded.origins.keys() == flatten(loaded.config).keys()
    assert all(warning.isprintable() for warning in loaded.warnings)


@pytest.mark.integration
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(VARIABLES), st.text(max_size=8)))
def test_no_variable_is_an_error(project: Path, environ: dict[str, str]):
    loaded = load(Host.of({"HOME": "/nowhere", **environ}), folder=project)
    for variable, value in environ.items():
        used = ValueOrigin("environment", variable) in loaded.origins.values()
        told = any(warning.startswith(variable) for warning in loaded.warnings)
        assert used or told or not value or variable == "YBS_MODEL"
