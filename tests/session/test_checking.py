"""What a start refuses and `ybs config check` finds: rules, tools, expressions and folders that do not exist."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rows import every_row
from ybs import cli
from ybs.agent.environment import ToolEnvironment
from ybs.config.schema import Config
from ybs.core.errors import ConfigError
from ybs.session.checking import unknown_tool
from ybs.session.options import BadOption, Options
from ybs.session.session import Session
from ybs.session.settings import environment_of, ready_settings
from ybs.tools.registry import NAMES

AT: dict[str, Any] = {"provider": "openai", "endpoint": "http://127.0.0.1:9/v1", "model": "x"}
#: Settings, the line of the key, the key, what is said of it, and whether it stops a start.
WRONG = [
    ('{"safety":\n{"deny": ["git",\n"run_shel(rm *)"]}}', 3, "safety.deny[1]", "run_shell?", True),
    ('{"safety":\n{"deny": ["wr*ite"]}}', 2, "safety.deny[0]", "no tool 'wr*ite'", True),
    ('{"safety":\n{"ask": ["delet_file"]}}', 2, "safety.ask[0]", "delete_file or", True),
    ('{"safety":\n{"ask": ["a b"]}}', 2, "safety.ask[0]", "'a b' is not a valid rule", True),
    ('{"safety":\n{"allow": ["("]}}', 2, "safety.allow[0]", "'(' is not a valid rule", True),
    ('{"safety":\n{"allow": ["bash(ls)"]}}', 2, "safety.allow[0]", "run_shell?", False),
    (
        '{"safety": {"require_confirmation":\n["write_file", "editfile"]}}',
        *(2, "safety.require_confirmation[1]", "edit_file?", True),
    ),
    (
        '{"tools": {"builtin":\n{"runshell": {"enabled": false}}}}',
        *(2, "tools.builtin.runshell", "run_shell?", True),
    ),
    (
        '{"tools": {"builtin":\n{"runshell": {"timeout_seconds": 5}}}}',
        *(2, "tools.builtin.runshell", "run_shell?", False),
    ),
    (
        '{"safety": {"sandbox_allowed_paths":\n["./", "./none"]}}',
        *(2, "safety.sandbox_allowed_paths[1]", "'./none' does not exist", False),
    ),
    ('{"firewall":\n{"allow": ["ok", "(x"]}}', 2, "firewall.allow[1]", "regular expression", True),
    ('{"llm":\n{"provider": "olama"}}', 2, "llm.provider", "Did you mean ollama?", True),
    (
        '{"llm": {"provider": "ollama", "fallback":\n["ollama/b", "anthropic/a"]}}',
        *(2, "llm.fallback[1]", "llm.fallback_elsewhere", False),
    ),
    ('{"llm": {"provider": "ollama", "fallback":\n["olama"]}}', 2, "llm.fallback[0]", "Did", False),
    ('{"network":\n{"ca_file": "/none"}}', 2, "network.ca_file", "there is no file /none", True),
    ('{"network":\n{"proxy": "::bad"}}', 2, "network.proxy", "this is not an address", True),
    (
        '{"context":\n{"system_prompt_file": "/none"}}',
        *(2, "context.system_prompt_file", "there is no file /none", False),
    ),
    ('{"models": {\n"m": {"input_price": 1}}}', 2, "models.m", "needs `input_price` and", False),
    (
        '{"llm": {"provider": "p"}, "providers": {"p": {"endpoint": "http://127.0.0.1:9",\n'
        '"quirks": {"nosuch": 1}}}}',
        *(2, "providers.p.quirks", "nosuch", True),
    ),
]


def opened(options: Options) -> ToolEnvironment:
    """Do what a start does, but for the model."""
    return environment_of(options, ready_settings(options))


def place(home: Path, settings: str) -> Path:
    file = home / ".config/ybs/config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(settings)
    file.chmod(0o600)
    return file


@pytest.mark.integration
@every_row(("settings", "line", "key", "said", "stops"), WRONG)
def test_a_start_and_a_check_name_file_line_and_key(
    settings: str,
    line: int,
    key: str,
    said: str,
    stops: bool,
    home: Path,
    project: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = place(home, settings)
    assert cli.main(["config", "check"]) == 3
    found = capsys.readouterr().out
    assert f"{file}:{line}: {key}: " in found
    assert said in found
    assert found.count(f"{key}: ") == 1
    at = {} if "llm" in settings else {"provider": "openai"}
    options = Options.of(project, {**at, "model": "x"})
    if stops:
        with pytest.raises(ConfigError) as caught:
            opened(options)
        assert str(caught.value).startswith(f"{file}:{line}: {key}: ")
        assert said in str(caught.value)
    else:
        (warning,) = opened(options).loaded.warnings
        assert warning.startswith(f"{file}:{line}: {key}: ")
        assert said in warning
    file.unlink()


async def test_a_session_shows_such_a_warning_once_also_after_new(home, project):
    place(home, '{"safety": {"allow": ["writefile"]}}')
    async with Session.open(project, **AT) as session:
        await session.start_anew(is_incognito=False)
        (warning,) = session.warnings
    assert "Did you mean write_file?" in warning
    assert "As it stands it does nothing." in warning


def test_a_key_that_does_not_follow_a_variable_to_an_address_is_named(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
):
    file = place(
        home, '{"llm": {"provider": "openai", "model": "m",\n"api_key": "' + "k" * 24 + '"}}'
    )
    assert opened(Options.of(project, {})).loaded.warnings == ()
    monkeypatch.setenv("OPENAI_BASE_URL", "https://proxy.example.org/v1")
    (warning,) = opened(Options.of(project, {})).loaded.warnings
    assert warning.startswith(f"{file}:2: llm.api_key: it is not sent to proxy.example.org")


def test_a_folder_that_is_not_opened_as_a_link_leads_out_is_named(home: Path, project: Path):
    (project / "build").symlink_to(home)
    file = place(home, '{"safety": {"sandbox_allowed_paths":\n["./", "build"]}}')
    found = opened(Options.of(project, {"provider": "openai", "model": "x"}))
    (warning,) = found.loaded.warnings
    assert warning.startswith(
        f"{file}:2: safety.sandbox_allowed_paths[1]: 'build': it is not opened"
    )
    assert "by a link that a project may have put there; name that place" in warning
    assert found.roots.folders == (project.resolve(),)


def test_no_folder_of_the_persons_own_is_opened_by_a_link_of_the_project(home, project):
    (home / "private/x").mkdir(parents=True)
    (project / "build").symlink_to(home / "private")
    for path in ("build", f"{project}/build", f"{project}/build/x"):
        place(home, json.dumps({"safety": {"sandbox_allowed_paths": ["./", path]}}))
        found = opened(Options.of(project, {"provider": "openai", "model": "x"}))
        assert found.roots.folders == (project.resolve(),)
        place(home, "{}")
        with pytest.raises(ConfigError, match=r"an additional folder: .* leads to ~/private"):
            opened(Options.of(project, {"add_dirs": (project / path,)}))
    opened(Options.of(project, {"add_dirs": (home / "private",)}))
    (home / ".ssh").mkdir()
    with pytest.raises(ConfigError, match=r"additional folder: ~/\.ssh cannot be added: keys"):
        opened(Options.of(project, {"add_dirs": (home / ".ssh",)}))


def test_a_folder_of_the_same_repository_is_opened_by_a_link_in_it(home: Path, project: Path):
    for folder in (".git/hooks", "pkg", "libs/shared"):
        (project / folder).mkdir(parents=True)
    (project / "shared").symlink_to("libs/shared")
    (project / "pkg/hooks").symlink_to("../.git/hooks")
    place(home, json.dumps({"safety": {"sandbox_allowed_paths": [f"{project}/shared"]}}))
    found = opened(Options.of(project / "pkg", {"add_dirs": (project / "shared",)}))
    assert (project / "libs/shared").resolve() in found.roots.folders
    assert not [each for each in found.loaded.warnings if "not opened" in each]
    with pytest.raises(ConfigError, match=r"pkg/hooks leads to .*/\.git/hooks by a link"):
        opened(Options.of(project / "pkg", {"add_dirs": (project / "pkg/hooks",)}))


def test_what_a_profile_or_a_variable_misspells_is_named_by_its_place(home, project, monkeypatch):
    file = place(home, '{"profiles":\n{"strict":\n{"safety": {"deny":\n["gti"]}}}}')
    with pytest.raises(ConfigError) as caught:
        opened(Options.of(project, {"profile": "strict"}))
    assert str(caught.value).startswith(f"{file}:4: profiles.strict.safety.deny[0]: ")
    monkeypatch.setenv("YBS_SAFETY__DENY", '["gti"]')
    with pytest.raises(
        ConfigError, match=r"^YBS_SAFETY__DENY: safety\.deny: there is no tool 'gti'"
    ):
        opened(Options.of(project, {}))


def test_a_projects_file_can_keep_nobody_from_starting(project: Path) -> None:
    (project / ".ybs.json").write_text('{"safety": {"deny": ["later_tool"]}}')
    (warning,) = opened(Options.of(project, {})).loaded.warnings
    assert "safety.deny[0]: there is no tool 'later_tool'" in warning
    assert "As it stands it does nothing." in warning


def test_an_entry_is_found_in_the_file_that_it_came_from(home: Path, project: Path) -> None:
    file = place(home, '{"safety": {"deny": ["gti"]}}')
    (project / ".ybs.json").write_text('{"safety": {"deny": ["git"]}}')  # united with the other
    with pytest.raises(ConfigError) as caught:
        opened(Options.of(project, {}))
    assert str(caught.value).startswith(f"{file}:1: safety.deny[0]: ")


@every_row(
    ("options", "said"),
    [
        (
            {"deny": ("run_shel:rm *",)},
            "the deny rule run_shel:rm *: there is no tool 'run_shel'. Did",
        ),
        ({"deny": ("Edit",)}, "Did you mean edit_file?"),
        ({"allow": ("nothing_like_it",)}, "The tools are: read_file, write_file"),
        ({"allow": ("(",)}, "the allow rule: '(' is not a valid rule"),
        ({"add_dirs": (Path("none"),)}, "the additional folder none does not exist"),
        ({"add_dirs": (Path(__file__),)}, "is not a folder"),
    ],
)
def test_an_option_that_means_nothing_is_bad_usage(options, said, project):
    with pytest.raises(BadOption) as caught:
        opened(Options.of(project, options))
    assert said in str(caught.value)


@pytest.mark.integration
@pytest.mark.parametrize("words", [["-P", "go"], ["tool", "call", "list_files", "{}"]])
def test_bad_usage_has_its_exit_code(words, project, capsys):
    at = ["--endpoint", "http://127.0.0.1:9/v1", "-m", "x"]
    assert cli.main([*at, "--deny", "run_shel", *words]) == 2
    assert "the deny rule run_shel: there is no tool 'run_shel'" in capsys.readouterr().err
    assert cli.main([*at, "--add-dir", "none", "-P", "--output-format", "json", "go"]) == 2
    assert msgspec.json.decode(capsys.readouterr().out)["exit_code"] == 2


def test_names_that_only_a_server_will_tell_are_accepted() -> None:
    for name in ("mcp__gh__search", "mcp__*", "mcp*", "*", "run_*", *NAMES):
        assert unknown_tool(name, Config()) == "", name
    assert unknown_tool("mpc__*", Config())
    assert unknown_tool("run*shel", Config())
    external: Any = {"tools": {"external": [{"name": "web-search", "path": "/x"}]}}
    assert unknown_tool("web-search", msgspec.convert(external, Config)) == ""


@pytest.mark.integration
def test_a_start_as_shipped_loads_nothing_to_look_at_settings(project: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from ybs.session.options import Options; from ybs.session.settings import ready_settings;"
        "ready_settings(Options.of(Path('.'), {'provider': 'openai', 'model': 'm'}));"
        "print('ybs.session.checking' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_check_finds_whatever_else_stops_a_start(
    home: Path, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # It holds for the whole process.
    monkeypatch.setattr("ybs.security.incognito.leave_no_dump", lambda: None)
    place(
        home, '{"llm": {"provider": "p"}, "providers": {"p": {"endpoint": "http://127.0.0.1:9"}}}'
    )
    assert cli.main(["config", "check"]) == 3
    assert "No model is chosen for p." in capsys.readouterr().out
    place(home, '{"incognito": {"enabled": true, "local_only": true}}')
    at = ["--endpoint", "https://h.example.org", "-m", "x"]
    assert cli.main([*at, "config", "check"]) == 3
    assert "incognito.local_only allows no other" in capsys.readouterr().out


def test_a_missing_key_or_model_is_no_fault_of_the_settings(project, capsys):
    for words in ([], ["--provider", "openai", "-m", "x"]):
        assert cli.main([*words, "config", "check"]) == 0
        assert "Nothing is wrong" in capsys.readouterr().out


@every_row(
    ("variable", "said"),
    [
        ("YBS_SAFTY__MODE", "; did you mean YBS_SAFETY__MODE?"),
        ("YBS_LLM__MODLE", "; did you mean llm.model?"),
        ("YBS_NOSUCH__KEY", "is not a setting"),
        ("YBS_MODLE", "; did you mean YBS_MODEL?"),
        ("YBS_PROFIEL", "; did you mean YBS_PROFILE?"),
    ],
)
def test_a_variable_that_is_no_setting_is_told(variable, said, project, monkeypatch):
    monkeypatch.setenv(variable, "1")
    (warning,) = opened(Options.of(project, {})).loaded.warnings
    assert warning.startswith(f"{variable}: is not a setting")
    assert said in warning
    monkeypatch.delenv(variable)


def test_a_variable_of_another_program_is_nobodys_concern(project, monkeypatch):
    for name in ("YBS_MODEL_HUB", "YBS_LLAMA_THREADS", "YBS_SOMETHING_ELSE"):
        monkeypatch.setenv(name, "1")
    assert opened(Options.of(project, {})).loaded.warnings == ()


def test_a_rule_may_name_an_external_tool_that_nobody_has_asked_yet(home, project):
    tools = home / ".config/ybs/tools"
    tools.mkdir(parents=True)
    (tools / "look-up.sh").write_text('#!/bin/sh\necho \'{"name": "lookup_word"}\'\n')
    (tools / "more.py").write_text("from ybs import tool\n\n\ndef add(a: int) -> int: ...\n")
    (tools / "seen.py").symlink_to(tools / "more.py")
    os.mkfifo(tools / "pipe")
    (tools / "gone").symlink_to(tools / "nothing")
    place(home, '{"safety": {"deny": ["look_up", "add(*)"], "require_confirmation": ["pipe"]}}')
    assert opened(Options.of(project, {"deny": ("lookup_word",)})).loaded.warnings == ()
    with pytest.raises(BadOption, match="there is no tool 'run_shel'"):
        opened(Options.of(project, {"deny": ("run_shel",)}))


@every_row(
    ("key", "value", "said"),
    [
        ("safety.deny", '["run_shel"]', "there is no tool 'run_shel'. Did you mean run_shell?"),
        ("safety.require_confirmation", '["run_shel"]', "there is no tool 'run_shel'."),
        ("safety.ask", '["run_shell("]', "'run_shell(' is not a valid rule"),
        ("firewall.allow", '["("]', "'(' is not a regular expression"),
        ("llm.provider", "olama", "There is no provider 'olama'."),
    ],
)
def test_no_value_is_set_with_which_no_session_would_start(key, value, said, home, project, capsys):
    assert cli.main(["config", "set", key, value]) == 3
    told = capsys.readouterr().err
    assert f"{key}: {said}" in told
    assert "Nothing was changed." in told
    assert not (home / ".config/ybs/config.json").exists()


def test_another_setting_can_be_set_where_one_is_wrong(home: Path, project: Path) -> None:
    file = place(home, '{"safety": {"deny": ["run_shel"]}}')
    assert cli.main(["config", "set", "llm.model", "x"]) == 0
    assert cli.main(["config", "set", "safety.deny", '["run_shell"]']) == 0
    assert msgspec.json.decode(file.read_bytes()) == {
        "safety": {"deny": ["run_shell"]},
        "llm": {"model": "x"},
    }


def test_a_check_looks_into_each_profile(home, project, capsys):
    strict = '"strict":\n{"safety": {"deny": ["gti"]}}'
    place(home, '{"profiles": {"fine": {}, "odd": {"safety": {"mode": "x"}},' + strict + "}}")
    assert cli.main(["config", "check"]) == 3
    first, second = capsys.readouterr().out.splitlines()
    assert "profiles.odd.safety.mode: must be one of" in first
    assert ":2: profiles.strict.safety.deny[0]: there is no tool 'gti'" in second
    place(home, '{"profiles": {"fine": {"safety": {"mode": "auto"}}}}')
    assert cli.main(["config", "check"]) == 0
