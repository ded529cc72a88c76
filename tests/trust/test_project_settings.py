import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hosts import this_host
from rows import every_row
from trusting import give_trust, trusted
from ybs.config.host import Host
from ybs.config.schema import Config, SafetySettings
from ybs.config.shape import all_names
from ybs.config.tree import flatten
from ybs.trust import project_settings as rules
from ybs.trust.settings import load
from ybs.trust.wording import lines_of

Write = Callable[[str, str], Path]
NEEDS_TRUST = "ignored, because this project is not trusted: "

#: One value of every setting that could run a program, send something out, or allow more.
POWERFUL: dict[str, Any] = {
    "llm": {"endpoint": "http://evil", "api_key": "k", "provider": "evil"},
    "providers": {"openai": {"endpoint": "http://evil"}},
    "profiles": {"default": {"llm": {"endpoint": "http://evil"}}},
    "tools": {
        "external": [{"name": "x", "path": "./evil"}],
        "search_paths": ["./tools"],
        "builtin": {"run_shell": {"timeout_seconds": 9}},
    },
    "hooks": {"start": "evil"},
    "mcpServers": {"x": {"command": "evil"}},
    "skills": {"search_paths": ["x"]},
    "gateway": {"x": 1},
    "cli_agents": {"x": {"command": ["evil"]}},
    "memory": {"x": 1},
    "router": {"x": 1},
    "firewall": {"x": 1},
    "incognito": {"x": 1},
    "session": {"storage_path": "/tmp", "auto_save": False, "max_sessions": 1},
    "safety": {
        "mode": "bypass",
        "safe_commands": ["rm"],
        "sandbox_allowed_paths": ["/"],
        "outside_sandbox": ["git *"],
    },
    "agent": {"retry_backoff_base_ms": 0},
}


def test_nothing_powerful_is_taken_and_what_trust_would_give_is_told_from_the_rest(
    project: Path, write: Write
):
    file = write("project", json.dumps(POWERFUL))
    loaded = load(this_host(), folder=project)
    assert loaded.config == Config()
    waits = "tools.builtin.run_shell.timeout_seconds, hooks, mcpServers"
    never = "ignored, because a project's file may not set it: llm.endpoint, llm.api_key, "
    assert len(loaded.warnings) == 2
    assert loaded.warnings[0] == f"{file}:1: {NEEDS_TRUST}{waits}"
    assert loaded.warnings[1].startswith(f"{file}:1: {never}")
    assert loaded.warnings[1].endswith(" more")


def test_harmless_settings_are_taken(project: Path, write: Write):
    harmless = {
        "version": "1.0",
        "llm": {"temperature": 0},
        "context": {"max_tokens": 8000, "repo_map_tokens": 0},
        "git": {"commit_message_prefix": "[bot]"},
        "ui": {"color": False, "stream_responses": False, "show_token_usage": False},
    }
    file = write("project", json.dumps(harmless))
    loaded = load(this_host(), folder=project)
    assert loaded.warnings == ()
    assert loaded.config.llm.temperature == 0
    assert loaded.config.context.max_tokens == 8000
    assert loaded.config.git.commit_message_prefix == "[bot]"
    assert loaded.config.ui.color is False
    assert loaded.origins["ui.color"].source == str(file)


def test_every_setting_has_a_rule_or_is_refused():
    known = set(all_names())
    for rule in rules.INERT | rules.ONLY_LOWER | rules.UNITED | rules.ONLY_THIS.keys():
        assert rule in known
    for words in (
        "endpoint",
        "api_key",
        "provider",
        "headers",
        "path",
        "storage",
        "search",
        "model",
    ):
        allowed = rules.INERT | rules.ONLY_LOWER | set(rules.ONLY_THIS)
        assert not [rule for rule in allowed if words in rule.split(".")[-1]]


@pytest.mark.integration
@every_row(
    "model",
    [
        "/etc/x",
        "./x",
        "~/x",
        "../x",
        "a/../b",
        "http://x",
        "file:///x",
        "a\\b",
        "x.gguf",
        "a b",
        "",
        "-x",
        "gpt-oss:120b-cloud",
        "Qwen3:Cloud",
        "gpt-oss-cloud",
        "kimi:cloud[1m]",
        "Auto",
        "m;touch$IFS/x",
        "m`id`",
        "m$(id)",
        "m|sh",
        "m'x",
        "m[a;b]",
    ],
)
def test_a_model_of_a_trusted_project_is_a_plain_name(project: Path, model: str):
    loaded = trusted(project, {"llm": {"model": model}, "hooks": {"Stop": []}})
    assert loaded.config.llm.model is None
    assert "only give the plain name of a model" in loaded.warnings[0]


@every_row("model", ["opus[1m]", "us.org/a_b-c:8b@20250514+x"])
def test_a_trusted_project_gives_a_model_by_the_names_that_models_have(project: Path, model: str):
    loaded = trusted(project, {"llm": {"model": model}})
    assert (loaded.config.llm.model, loaded.warnings) == (model, ())


def test_which_company_reads_the_words_is_asked_about_first(project: Path, write: Write):
    # At an aggregator the model's name says that, and what it costs.
    own = {"provider": "openrouter", "model": "anthropic/claude-sonnet-4.5"}
    write("user", json.dumps({"llm": own}))
    theirs = "deepseek/deepseek-chat-v3:free"
    write(
        "project",
        json.dumps(
            {"llm": {"model": theirs, "timeout_seconds": 1}, "agent": {"retry_attempts": 0}}
        ),
    )
    loaded = load(this_host(), folder=project)
    assert loaded.config.llm.model == own["model"]
    assert loaded.config.llm.timeout_seconds == Config().llm.timeout_seconds
    assert loaded.config.agent == Config().agent
    assert loaded.warnings[0].endswith(f"{NEEDS_TRUST}llm.model, llm.timeout_seconds")
    assert loaded.warnings[1].endswith("may not set it: agent.retry_attempts")
    assert loaded.review is not None
    assert f"chooses the model {theirs}" in "\n".join(lines_of(loaded.review))
    give_trust(project)
    llm = load(this_host(), folder=project).config.llm
    assert (llm.provider, llm.model) == ("openrouter", theirs)


def test_a_variable_is_not_read_for_a_project(project: Path, write: Write):
    secret = "sk-" + "q" * 20
    file = write(
        "project",
        '{"git": {"commit_message_prefix": "x-${SECRET}"},\n"safety": {"blocked_commands": ["${SECRET}"]}}',
    )
    loaded = load(Host.of({**os.environ, "SECRET": secret}), folder=project)
    assert loaded.config == Config()
    assert secret not in repr(loaded)
    assert loaded.warnings == (
        f"{file}:1: git.commit_message_prefix: a project's file may not read environment variables; this is ignored",
        f"{file}:2: safety.blocked_commands: a project's file may not read environment variables; "
        "this is ignored",
    )


# --- tightening ------------------------------------------------------------------------------


def test_safety_lists_are_united_with_the_users(project: Path, write: Write):
    write("user", '{"safety": {"blocked_commands": ["a", "b"], "require_confirmation": []}}')
    file = write(
        "project",
        '{"safety": {"blocked_commands": ["b", "c", "c"], "require_confirmation": ["edit_file"],'
        ' "sandbox_blocked_paths": ["./secret"]}}',
    )
    loaded = load(this_host(), folder=project)
    assert loaded.warnings == ()
    assert loaded.config.safety.blocked_commands == ("a", "b", "c")
    assert loaded.config.safety.require_confirmation == ("edit_file",)
    assert loaded.config.safety.sandbox_blocked_paths == (
        *SafetySettings().sandbox_blocked_paths,
        "./secret",
    )
    assert loaded.origins["safety.blocked_commands"].source == str(file)


@pytest.mark.parametrize("trusts", [False, True])
def test_a_project_blocks_places_in_it_alone(project: Path, home: Path, write: Write, trusts: bool):
    """The person's guards need their programs, and their scripts."""
    (project / "led").symlink_to("/usr/bin")
    (project / "round").symlink_to("round")
    inside = ["./secret", str(project / "keys"), "a/../b"]
    outside = ["~", "~/bin", "/usr/bin/dash", "/", "..", "a/../../x", "led/grep", "round/x"]
    names = [*outside[:3], *inside, *outside[3:]]
    file = write("project", json.dumps({"safety": {"sandbox_blocked_paths": names}}))
    if trusts:
        give_trust(project)
    loaded = load(this_host(), folder=project)
    shipped = SafetySettings().sandbox_blocked_paths
    assert loaded.config.safety.sandbox_blocked_paths == (*shipped, *inside)
    assert loaded.blocked_by_project == tuple(inside)
    (warning,) = loaded.warnings
    assert "a project can only block places in it" in warning
    assert str(file) in warning
    write("user", json.dumps({"safety": {"sandbox_blocked_paths": ["./secret", "~/bin"]}}))
    loaded = load(this_host(), folder=project)
    assert loaded.config.safety.sandbox_blocked_paths == ("./secret", "~/bin", *inside[1:])
    assert loaded.blocked_by_project == tuple(inside[1:])


def test_a_project_may_add_rules_that_ask_or_deny_and_none_that_allow(project: Path, write: Write):
    write("user", '{"safety": {"deny": ["a"], "allow": ["b"]}}')
    write("project", '{"safety": {"deny": ["c"], "ask": ["d"], "allow": ["run_shell"]}}')
    loaded = load(this_host(), folder=project)
    safety = loaded.config.safety
    assert (safety.deny, safety.ask, safety.allow) == (("a", "c"), ("d",), ("b",))
    assert "safety.allow" in " ".join(loaded.warnings)


def test_safety_lists_of_later_layers_are_united_too(project: Path, write: Write):
    write("project", '{"safety": {"blocked_commands": ["p"]}}')
    file = write("file", '{"safety": {"blocked_commands": ["f"]}}')
    config = load(this_host(), folder=project, config_file=file).config
    assert config.safety.blocked_commands == ("f", "p")


def test_an_empty_list_of_a_project_takes_nothing_away(project: Path, write: Write):
    write("project", '{"safety": {"blocked_commands": []}}')
    loaded = load(this_host(), folder=project)
    assert loaded.config == Config()
    assert loaded.origins["safety.blocked_commands"].layer == "default"


@pytest.mark.parametrize(
    ("user", "project_says", "result"),
    [
        (None, 100, 100),
        (50, 10, 10),
    ],
)
def test_a_project_may_lower_a_limit(
    project: Path, write: Write, user: int | None, project_says: int, result: int
):
    write("user", json.dumps({"agent": {"max_cost_usd": user}}))
    write("project", json.dumps({"agent": {"max_cost_usd": project_says}}))
    loaded = load(this_host(), folder=project)
    assert loaded.config.agent.max_cost_usd == result
    assert loaded.warnings == ()


def test_a_project_may_not_raise_a_limit(project: Path, write: Write):
    write(
        "user", '{"agent": {"max_cost_usd": 5, "max_seconds": 60}, "git": {"auto_commit": false}}'
    )
    file = write(
        "project",
        '{"agent": {\n"max_cost_usd": 9, "max_seconds": null, "max_iterations": 999}, '
        '"git": {"auto_commit": true}, "safety": {"sandbox_enabled": false}}',
    )
    loaded = load(this_host(), folder=project)
    assert loaded.config.agent.max_cost_usd == 5
    assert loaded.config.agent.max_seconds == 60
    assert loaded.config.agent.max_iterations == 200
    assert loaded.config.git.auto_commit is False
    assert loaded.config.safety.sandbox_enabled is True
    assert loaded.warnings == (
        f"{file}:2: ignored, because a project can only make this stricter: agent.max_cost_usd, "
        "agent.max_seconds, agent.max_iterations, git.auto_commit, safety.sandbox_enabled",
    )


@pytest.mark.parametrize("llm", [5, {"endpoint": 5, "provider": ""}])
def test_a_project_cannot_make_an_address_unusable(project: Path, write: Write, llm: Any):
    write("project", json.dumps({"llm": llm, "providers": {"openai": 5}}))
    assert load(this_host(), folder=project).config == Config()


def test_a_project_may_not_show_the_model_more_than_the_user(project: Path, write: Write):
    user = {"max_tokens": 8192, "max_tool_output_chars": 2000, "repo_map_tokens": 10}
    write("user", json.dumps({"context": user}))
    write("project", json.dumps({"context": dict.fromkeys(user, 1_000_000)}))
    loaded = load(this_host(), folder=project)
    assert msgspec.to_builtins(loaded.config.context).items() >= user.items()
    assert "can only make this stricter: context.max_tokens, " in loaded.warnings[0]
    write("project", json.dumps({"context": dict.fromkeys(user, 5)}))
    loaded = load(this_host(), folder=project)
    assert loaded.config.context.repo_map_tokens == 5
    assert loaded.warnings == ()


def test_switches_go_one_way(project: Path, write: Write):
    write("user", '{"safety": {"sandbox_enabled": false}, "ui": {"show_tool_calls": false}}')
    write(
        "project",
        '{"safety": {"sandbox_enabled": true}, "git": {"auto_commit": false},'
        ' "ui": {"show_tool_calls": true}, "tools": {"builtin": {"run_shell": {"enabled": false}}}}',
    )
    loaded = load(this_host(), folder=project)
    assert loaded.warnings == ()
    assert loaded.config.safety.sandbox_enabled is True
    assert loaded.config.ui.show_tool_calls is True
    assert loaded.config.git.auto_commit is False
    assert loaded.config.tools.builtin["run_shell"].enabled is False


def test_a_project_may_not_switch_a_tool_on(project: Path, write: Write):
    write("user", '{"tools": {"builtin": {"run_shell": {"enabled": false}}}}')
    write("project", '{"tools": {"builtin": {"run_shell": {"enabled": true}}}}')
    loaded = load(this_host(), folder=project)
    assert loaded.config.tools.builtin["run_shell"].enabled is False
    assert "only make this stricter: tools.builtin.run_shell.enabled" in loaded.warnings[0]


def test_what_equals_the_users_setting_is_no_warning(project: Path, write: Write):
    write("project", '{"agent": {"max_iterations": 200}, "git": {"auto_commit": true}}')
    loaded = load(this_host(), folder=project)
    assert loaded.warnings == ()
    assert loaded.origins["agent.max_iterations"].layer == "default"


def test_an_option_may_exceed_a_projects_limit(project: Path, write: Write):
    write("project", '{"agent": {"max_iterations": 5}}')
    overrides = {"agent.max_iterations": 500}
    assert load(this_host(), folder=project).config.agent.max_iterations == 5
    assert load(this_host(), folder=project, overrides=overrides).config.agent.max_iterations == 500


# --- odd files -------------------------------------------------------------------------------


def test_mistakes_in_a_project_are_told_like_any_others(project: Path, write: Write):
    file = write(
        "project", '{"llm": {"modle": 1, "temperature": "x"}, "lmm": {}, "agent": 5, "ui": {}}'
    )
    assert load(this_host(), folder=project).warnings == (
        f"{file}:1: llm.modle: is not a setting; did you mean llm.model?",
        f"{file}:1: llm.temperature: must be a number or null, not text; it is ignored",
        f"{file}:1: lmm: is not a setting; did you mean llm?",
        f"{file}:1: agent: must be an object, in {{ }}; it is ignored",
    )


def test_a_link_to_the_users_own_file_is_not_followed(project: Path, write: Write):
    user = write("user", '{"llm": {"api_key": "k"}}')
    (project / ".ybs.json").symlink_to(user)
    loaded = load(this_host(), folder=project)
    assert loaded.config.llm.api_key == "k"
    assert "is a link" in loaded.warnings[0]


def test_in_the_home_folder_the_file_is_the_users_own(home: Path, write: Write):
    write("home", '{"llm": {"endpoint": "http://mine"}}')
    loaded = load(this_host(), folder=home)
    assert loaded.config.llm.endpoint == "http://mine"
    assert loaded.origins["llm.endpoint"].layer == "home"
    assert loaded.warnings == ()


def test_a_file_of_a_folder_above_is_not_read(project: Path, write: Write):
    write("project", '{"llm": {"temperature": 2}}')
    below = project / "below"
    below.mkdir()
    assert load(this_host(), folder=below).config == Config()


# --- any file --------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5000)
    | st.floats(0, 2)
    | st.sampled_from(["", "x", "${HOME}", "ask", "bypass", "http://evil", "/"])
)
ENTRIES = st.lists(SCALARS, max_size=3) | st.dictionaries(
    st.sampled_from("xyz"), SCALARS, max_size=2
)
SETTINGS = st.dictionaries(
    st.sampled_from([*all_names(), "llm", "tools.builtin.x", "nope", "llm.nope"]),
    SCALARS | ENTRIES,
    max_size=8,
)


#: Values that each setting takes, so that the rules about them are reached and not only those about broken files.
FITTING = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.integers(1, 5_000) for name in sorted(rules.ONLY_LOWER)},
        **{name.replace("*", "x"): st.booleans() for name in rules.ONLY_THIS},
        **{
            name: st.lists(st.sampled_from(["write_file", "run_shell", "read_file"]), max_size=2)
            for name in sorted(rules.UNITED)
        },
        "llm.endpoint": st.just("http://evil"),
        "safety.mode": st.sampled_from(["ask", "bypass"]),
    },
)


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        here = tree
        *sections, last = name.replace("*", "x").split(".")
        for section in sections:
            below = here.get(section)
            here[section] = below if isinstance(below, dict) else {}
            here = here[section]
        here[last] = value
    return tree


@pytest.mark.integration
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SETTINGS | FITTING, SETTINGS | FITTING)
@example(
    user={"safety.ask": ["write_file"], "agent.max_seconds": 100, "git.auto_commit": True},
    cloned={"safety.ask": ["run_shell"], "agent.max_seconds": 5, "git.auto_commit": False},
)
@example(
    user={"safety.deny": ["write_file"], "agent.max_seconds": 5, "git.auto_commit": False},
    cloned={"safety.deny": [], "agent.max_seconds": 100, "git.auto_commit": True},
)
@example(user={}, cloned={"tools.builtin.x.enabled": False, "llm.endpoint": "http://evil"})
def test_no_project_can_change_what_needs_trust(
    project: Path, write: Write, user: dict[str, Any], cloned: dict[str, Any]
):
    write("user", json.dumps(nested(user)))
    write("project", "{}")
    alone = load(this_host(), folder=project)
    write("project", json.dumps(nested(cloned)))
    together = load(this_host(), folder=project)
    mine, theirs = flatten(alone.config), flatten(together.config)
    assert together.origins.keys() == theirs.keys()
    for key in mine.keys() | theirs.keys():
        value, before = theirs.get(key), mine.get(key)
        rule = rules.rule_of(tuple(key.split(".")))
        if rule in rules.INERT or value == before:
            continue
        if rule in rules.UNITED:
            assert {*theirs[key]} >= {*mine[key]}
        elif rule in rules.ONLY_LOWER:
            assert before is None or value < before
        elif rule in rules.ONLY_THIS:
            assert value is rules.ONLY_THIS[rule]
        else:
            assert key in ("tools.builtin", "tools.builtin.x.timeout_seconds")
            assert value is None
    assert msgspec.json.encode(together.config)
