"""The environment of a sandboxed program: E01, E02, E05 of the security cases."""

import pytest

from rows import every_row
from ybs.core.errors import ToolError
from ybs.security.sandbox.launch import environment_of, open_environment_of, search_path_of

OUTSIDE = {
    "PATH": "/usr/bin:.::bin:/bin",
    "HOME": "/home/me",
    "LANG": "C.UTF-8",
    "LC_ALL": "C",
    "LC_SECRET": "x",
    "TZ": "UTC",
    "USER": "me",
    "LOGNAME": "me",
    "TERM": "xterm",
    "SSH_AUTH_SOCK": "/run/agent",
    "MY_PASSPHRASE": "x",
    "SOMETHING_ELSE": "y",
}


def test_the_environment_is_built_and_not_inherited() -> None:
    assert environment_of(OUTSIDE, home="/home/me") == {
        "PATH": "/usr/bin:/bin",
        "HOME": "/home/me",
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "TZ": "UTC",
        "USER": "me",
        "LOGNAME": "me",
        "TMPDIR": "/tmp",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "PIP_RETRIES": "1",
        "UV_HTTP_RETRIES": "0",
        "CARGO_NET_RETRY": "0",
        "npm_config_fetch_retries": "0",
    }
    assert "PIP_RETRIES" not in environment_of(OUTSIDE, home="/home/me", network=True)


@every_row("name", ["BASH_ENV", "ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONSTARTUP", "PYTHONPATH", "NODE_OPTIONS", "GIT_SSH_COMMAND", "GIT_DIR", "PERL5OPT", "RUBYOPT", "PROMPT_COMMAND", "YBS_HOME", "OPENAI_API_KEY", "DBUS_SESSION_BUS_ADDRESS"])  # fmt: skip
def test_what_runs_code_reaches_sockets_or_holds_keys_stays_outside(name: str) -> None:
    assert name not in environment_of({name: "x"}, home="/h", network=True)


@every_row("path", ["", ".", "bin:./x:", ":"])
def test_a_path_without_absolute_parts_is_the_systems(path: str) -> None:
    assert search_path_of({"PATH": path}) == "/usr/local/bin:/usr/bin:/bin"
    assert search_path_of({}) == "/usr/local/bin:/usr/bin:/bin"


def test_toolchains_are_named_by_absolute_paths_and_plain_words() -> None:
    given = {"RUSTUP_HOME": "/opt/rustup", "PYENV_VERSION": "3.12.1", "GOPATH": "go", "NODE_ENV": "$(id)", "RUSTUP_TOOLCHAIN": "x" * 101, "CONDA_DEFAULT_ENV": "x" * 100}  # fmt: skip
    built = environment_of(given, home="/h")
    assert {name: built.get(name) for name in given} == {
        "RUSTUP_HOME": "/opt/rustup",
        "PYENV_VERSION": "3.12.1",
        "GOPATH": None,
        "NODE_ENV": None,
        "RUSTUP_TOOLCHAIN": None,
        "CONDA_DEFAULT_ENV": "x" * 100,
    }


@every_row(("word", "is_kept"), [("", False), ("3", True), ("3.12-dev_x", True), ("é1", True), ("3/4", False), ("a b", False)])  # fmt: skip
def test_a_word_has_letters_figures_and_few_signs(word: str, is_kept: bool) -> None:
    assert ("PYENV_VERSION" in environment_of({"PYENV_VERSION": word}, home="/h")) is is_kept


def test_proxies_are_handed_on_with_the_network_unless_they_hold_a_password() -> None:
    given = {"HTTPS_PROXY": "http://proxy:3128", "http_proxy": "http://me:pass@proxy:3128"}
    assert "HTTPS_PROXY" not in environment_of(given, home="/h")
    built = environment_of(given, home="/h", network=True)
    assert built["HTTPS_PROXY"] == "http://proxy:3128"
    assert "http_proxy" not in built


def test_without_a_sandbox_a_program_has_home_temporary_files_and_network_of_the_person() -> None:
    given = {"HOME": "/home/me", "TMPDIR": "/t", "PATH": "/bin", "HTTPS_PROXY": "http://p:1", "KEY": "k"}  # fmt: skip
    fixed = {
        "TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
    }  # fmt: skip
    kept = {name: value for name, value in given.items() if name != "KEY"}
    assert open_environment_of(given, declared={"MORE": "m"}) == {**kept, **fixed, "MORE": "m"}
    usual = {"HOME": "/", "TMPDIR": "/tmp", "PATH": "/usr/local/bin:/usr/bin:/bin"}
    assert open_environment_of({}) == {**usual, **fixed}


def test_declared_variables_are_added_and_win() -> None:
    built = environment_of(OUTSIDE, home="/h", declared={"GITHUB_TOKEN": "t", "TERM": "xterm"})
    assert (built["GITHUB_TOKEN"], built["TERM"]) == ("t", "xterm")


@every_row(("name", "value"), [("", "x"), ("A=B", "x"), ("A", "x\0y"), ("A\0", "x"), ("LD_PRELOAD", "x"), ("TMPDIR", "/x"), ("BASH_ENV", "x")])  # fmt: skip
def test_what_cannot_be_declared_is_an_error(name: str, value: str) -> None:
    with pytest.raises(ToolError, match="cannot be"):
        environment_of({}, home="/h", declared={name: value})
