"""The command line: what is understood, what is refused and how."""

import json
import subprocess
import sys
from errno import EIO
from pathlib import Path
from typing import Any

import pytest

import ybs
from rows import every_row
from ybs import __version__, cli
from ybs.cli import subcommands
from ybs.core.errors import ConfigError, ProviderDown, YbsError


def modules_after(*words: str) -> set[str]:
    """Run Python and return the names of the modules that it has loaded."""
    code = f"import sys; {'; '.join(words)}; sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run the command and return its one line of complaint."""
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.rstrip("\n")


class Door:
    """Remembers how a frontend was opened."""

    def __init__(self) -> None:
        self.options: Any = None
        self.rest: dict[str, Any] = {}

    def __call__(self, options: Any, **rest: Any) -> int:
        self.options, self.rest = options, rest
        return 0


@pytest.fixture
def headless(monkeypatch: pytest.MonkeyPatch) -> Door:
    door = Door()
    monkeypatch.setattr("ybs.frontends.headless.run.run_once", door)
    return door


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Door:
    door = Door()
    monkeypatch.setattr("ybs.frontends.terminal.app.chat", door)
    monkeypatch.setattr(cli, "is_terminal", lambda _stream: True)
    return door


@pytest.mark.integration
def test_the_version_is_said_without_importing_anything() -> None:
    loaded = modules_after("from ybs.cli import main", "main(['--version'])")
    assert not loaded & {"asyncio", "msgspec", "argparse", "json", "pathlib", "rich", "ybs.core"}


@pytest.mark.integration
def test_importing_the_command_loads_no_heavy_library() -> None:
    loaded = modules_after("import ybs.cli")
    assert not loaded & {"httpx2", "rich", "prompt_toolkit", "tree_sitter", "asyncio", "msgspec"}


@pytest.mark.integration
def test_a_prompt_of_many_words_is_not_compared_with_the_subcommands() -> None:
    words = ["fix the tests of the parser"]
    assert "difflib" not in modules_after("from ybs.cli.parser import parse", f"parse({words})")
    assert "difflib" in modules_after("from ybs.cli.parser import parse", "parse(['hello there'])")


def test_version_and_help_end_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert cli.main(["--verbose", "--version"]) == 0
    assert capsys.readouterr().out == f"ybs {ybs.__version__}\n" * 2
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "exit codes:" in shown
    assert all(name in shown for name in (*subcommands.SUBCOMMANDS, "--output-format", "--add-dir"))


@pytest.mark.integration
@every_row("name", subcommands.SUBCOMMANDS)
def test_every_subcommand_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == 0
    assert f"usage: ybs {name}" in capsys.readouterr().out


@every_row(
    ("words", "said"),
    [
        (["help"], "usage: ybs [OPTIONS] [PROMPT]"),
        (["Help"], "usage: ybs [OPTIONS] [PROMPT]"),
        (["--print", "help"], "usage: ybs [OPTIONS] [PROMPT]"),
        (["help", "sessions"], "usage: ybs sessions"),
        (["help", "config", "more"], "usage: ybs config"),
    ],
)
def test_help_is_a_word_too(words, said, capsys):
    assert cli.main(words) == 0
    assert capsys.readouterr().out.startswith(said)


@pytest.mark.integration
@every_row(
    ("words", "said"),
    [
        (["--modle", "x"], "Did you mean --mode or --model?"),
        (["--outputformat", "json"], "Did you mean --output-format?"),
        (["--zzzzzz"], "there is no option --zzzzzz."),
        (["--mode", "aks"], "invalid choice: 'aks'"),
        (["-m"], "expected one argument"),
        (["--max-turns", "0"], "'0' is not a whole number from 1 up"),
        (["--max-turns", "many"], "'many' is not a whole number from 1 up"),
        (["--max-cost", "-1"], "-1"),
        (["--max-cost", "nan"], "'nan' is not a number above 0"),
        (["--timeout", "inf"], "'inf' is not a number above 0"),
        (["--timeout", "soon"], "'soon' is not a number above 0"),
        (["fix", "the", "bug"], "put a prompt of several words in quotes"),
        (["modles"], "`ybs -- modles` sends it as a prompt. Did you mean models?"),
        (["config", "chek"], "invalid choice: 'chek'"),
        (["config", "show", "more"], "'more' is not understood here"),
        (["config", "--sorces"], "Did you mean --sources?"),
        (["--fork"], "--fork needs a session to copy"),
        (["--resume", "--fork"], "--fork needs a session to copy"),
        (["--continue", "--resume", "3"], "cannot be combined"),
        (["--continue", "config"], "not with a subcommand"),
        (["--resume", "fix the bug"], "--continue takes the newest"),
        (["--print", "--resume"], "without a terminal, --resume needs a session"),
        (["--print", "--resume="], "--continue for the newest"),
        (["--contineu"], "Did you mean --continue?"),
        (["sessions", "show"], "ybs sessions show NAME"),
        (["sessions", "list", "x"], "'x' is not understood here"),
        (["sessions", "export", "1", "a.md", "b"], "'b' is not understood here"),
        (["sessions", "show", "1", "--format", "md"], "works only with `ybs sessions export`"),
        (["session"], "Did you mean sessions?"),
        (["--yolo"], "--mode auto works without asking"),
        (["--permission-mode", "plan"], "it is called --mode"),
        (["--permission-mode=plan"], "it is called --mode"),
        (["-r"], "write --resume ID, or --continue"),
        (["-p", "fix the bug"], "-p takes the name of a provider here; write `ybs --print"),
        (["-c"], "-c reads a configuration FILE here; write `ybs --continue`"),
        (["-c", "--plain"], "-c reads a configuration FILE here; write `ybs --continue`"),
        (["-c", "fix the bug"], "-c reads a configuration FILE here; write `ybs --continue`"),
        (["login"], "`ybs setup` chooses a provider and saves its key. `ybs -- login` sends"),
        (["Update"], "ybs does not update itself"),
        (["config", "set", "llm.model"], "ybs config set KEY VALUE"),
        (["config", "unset"], "ybs config unset KEY."),
        (["config", "unset", "llm.model", "x"], "'x' is not understood here"),
        (["hlep"], "`ybs -- hlep` sends it as a prompt. Did you mean help?"),
        (["Docter"], "Did you mean doctor?"),
        (["modles", "list"], "Did you mean models?"),
        (["help", "sesions"], "there is no subcommand 'sesions'. Did you mean sessions?"),
    ],
)
def test_bad_usage_is_one_line_and_two(words, said, capsys):
    assert said in refused(capsys, *words)


def test_a_prompt_goes_to_the_terminal_with_its_options(terminal: Door, project: Path) -> None:
    words = [
        "-m",
        "qwen3:14b",
        "-p",
        "ollama",
        "--endpoint",
        "http://x",
        "--mode",
        "plan",
        "--plain",
        "-v",
        "fix it",
    ]
    assert cli.main(words) == 0
    assert terminal.rest == {"prompt": "fix it", "command": "", "is_verbose": True}
    assert terminal.options.overrides == {
        "llm.model": "qwen3:14b",
        "llm.provider": "ollama",
        "llm.endpoint": "http://x",
        "safety.mode": "plan",
        "ui.plain": True,
    }
    assert terminal.options.folder == project


def test_every_option_of_a_session_arrives(headless: Door, project: Path) -> None:
    words = [
        *("-P", "--output-format", "json", "-c", "c.json", "--profile", "fast", "-v", "go"),
        *("--allow", "run_shell:git log *", "--allow", "read_file", "--deny", "delete_file"),
        *("--add-dir", "a", "--add-dir", "b", "--no-sandbox", "--dry-run"),
        *(
            "--max-turns",
            "3",
            "--max-cost",
            "0.5",
            "--timeout",
            "60",
            "--system-prompt-file",
            "s.md",
        ),
    ]
    assert cli.main(words) == 0
    assert headless.rest == {
        "prompt": "go",
        "output_format": "json",
        "is_verbose": True,
        "is_command": False,
    }
    options = headless.options
    assert options.overrides == {
        "agent.max_iterations": 3,
        "agent.max_cost_usd": 0.5,
        "agent.max_seconds": 60.0,
    }
    assert (options.config_file, options.profile) == (Path("c.json"), "fast")
    assert options.allow == ("run_shell:git log *", "read_file")
    assert options.deny == ("delete_file",)
    assert options.add_dirs == (Path("a"), Path("b"))
    assert options.system_prompt_file == Path("s.md")
    assert (options.dry_run, options.sandbox) == (True, False)


def test_the_schema_of_the_answer_is_read_from_its_file(headless: Door, project: Path) -> None:
    (project / "s.json").write_text('{"type": "object"}')
    assert cli.main(["-P", "--output-schema", "s.json", "go"]) == 0
    assert headless.options.output_schema == {"type": "object"}


@every_row(
    ("text", "said"),
    [
        (None, "--output-schema s.json cannot be read: No such file"),
        ("{", "--output-schema s.json is not JSON"),
        ("[]", "--output-schema s.json: the schema is not a JSON Schema"),
    ],
)
def test_a_schema_that_cannot_be_used_is_bad_usage(text, said, project, capsys):
    if text is not None:
        (project / "s.json").write_text(text)
    assert cli.main(["-P", "--output-schema", "s.json", "go"]) == 2
    assert said in capsys.readouterr().err


def test_a_schema_works_with_print_alone(terminal, project, capsys):
    (project / "s.json").write_text("{}")
    assert cli.main(["--output-schema", "s.json", "go"]) == 2
    assert terminal.options is None
    assert cli.main(["--output-schema", "s.json", "models"]) == 2
    assert capsys.readouterr().err.count("--output-schema works ") == 2


@pytest.mark.integration
@every_row(
    ("words", "resume", "prompt"),
    [
        (["go on"], None, "go on"),
        (["--continue", "go on"], "", "go on"),
        (["--resume", "3", "go on"], "3", "go on"),
        (["--resume", "session-1", "--", "config"], "session-1", "config"),
        (["--resume", "config", "go on"], "config", "go on"),  # a name, whatever else it is called
        (["--resume=the second one", "go on"], "the second one", "go on"),
        (["-m", "x", "--resume", "3", "go"], "3", "go"),
        (["--", "--resume", "x"], None, None),
    ],
)
def test_a_session_to_go_on_with_is_one_word_or_tied_to_its_option(headless, words, resume, prompt):
    code = cli.main(["--print", *words])
    if prompt is None:
        assert code == 2  # two prompts
        return
    assert (headless.options.resume, headless.rest["prompt"]) == (resume, prompt)
    assert not headless.options.fork
    assert cli.main(["-P", "--resume", "3", "--fork", "go on"]) == 0
    assert headless.options.fork


def test_a_session_is_chosen_on_a_terminal_where_none_is_named(terminal: Door) -> None:
    assert cli.main(["--resume"]) == 0
    assert terminal.rest["command"] == "/resume"
    assert (terminal.options.resume, terminal.options.fork) == (None, False)


def test_without_a_terminal_it_runs_once(headless: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "is_terminal", lambda stream: stream is sys.stdin)
    assert cli.main(["go"]) == 0
    assert headless.rest["prompt"] == "go"
    monkeypatch.setattr(cli, "is_terminal", lambda stream: stream is sys.stdout)
    assert cli.main([]) == 0
    assert headless.rest["prompt"] is None


@every_row(
    ("words", "prompt"),
    [
        (["--", "config"], "config"),
        (["-m", "models", "hello there"], "hello there"),
        (["config is broken"], "config is broken"),
        (["--", "--odd"], "--odd"),
        (["-P", "--", "models"], "models"),
    ],
)
def test_a_prompt_may_look_like_something_else(headless, words, prompt):
    assert cli.main(["--print", *words]) == 0
    assert headless.rest["prompt"] == prompt


def test_a_subcommand_takes_options_before_and_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def remember(arguments: Any, options: Any) -> int:
        seen.append((arguments, options))
        return 0

    monkeypatch.setattr("ybs.frontends.subcommands.commands.run_subcommand", remember)
    assert cli.main(["-m", "a", "config", "check", "-p", "ollama", "--format", "json"]) == 0
    ((arguments, options),) = seen
    assert (arguments.subcommand, arguments.action, arguments.format) == ("config", "check", "json")
    assert options.overrides == {"llm.model": "a", "llm.provider": "ollama"}


def test_setup_tells_whether_something_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ybs.frontends.terminal.start.setup.set_up", lambda _host, using: True)
    assert cli.main(["setup"]) == 0
    monkeypatch.setattr("ybs.frontends.terminal.start.setup.set_up", lambda _host, using: False)
    assert cli.main(["setup"]) == 1


@every_row(
    ("error", "code"), [(ConfigError("bad"), 3), (ProviderDown("down"), 75), (YbsError("odd"), 1)]
)
def test_an_error_is_one_line_and_its_code(error, code, monkeypatch, capsys):
    def fail(_arguments: object) -> int:
        raise error

    monkeypatch.setattr(cli, "start_frontend", fail)
    assert cli.main(["go on"]) == code
    assert capsys.readouterr().err == f"ybs: {error}\n"


def test_an_interrupt_anywhere_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_words: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run", interrupted)
    assert cli.main(["go on"]) == 130


def test_a_code_that_is_known_outlives_what_can_no_longer_be_written(monkeypatch, capsys):
    class Gone:
        def flush(self) -> None:
            raise OSError(EIO, "Input/output error")

    muted: list[int] = []
    monkeypatch.setattr(cli, "start_frontend", lambda _arguments: 129)
    monkeypatch.setattr(cli, "mute", muted.append)
    monkeypatch.setattr(sys, "stdout", Gone())
    assert cli.main(["go on"]) == 129
    assert muted == [1]
    assert capsys.readouterr().err == ""


@pytest.mark.integration
def test_a_reader_that_has_gone_is_no_traceback() -> None:
    command = f"{sys.executable} -m ybs config schema | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("", "")


@every_row("stream", [None, object])
def test_what_is_no_stream_is_no_terminal(stream: Any) -> None:
    class Closed:
        def isatty(self) -> bool:
            raise ValueError("I/O operation on closed file")

    assert not cli.is_terminal(Closed() if stream else None)


@pytest.mark.integration
def test_python_dash_m_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ybs", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"ybs {ybs.__version__}\n"


FULL = "/dev/full"
needs_full = pytest.mark.skipif(not Path(FULL).exists(), reason="this system has no /dev/full")
COMMANDS = ["--version", "--help", "config schema"]
#: Those that do more at their start.
SLOW_COMMANDS = [pytest.param(words, marks=pytest.mark.slow) for words in ("doctor", "setup")]


def run_in_shell(command: str) -> subprocess.CompletedProcess[str]:
    whole = f"{sys.executable} -m ybs {command}"
    return subprocess.run(["sh", "-c", whole], capture_output=True, text=True, check=False)


@pytest.mark.integration
@needs_full
@pytest.mark.parametrize("command", [*COMMANDS, *SLOW_COMMANDS])
@pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.slow)])
def test_a_full_disk_is_one_line_and_one(command, unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    done = run_in_shell(f"{command} </dev/null >{FULL}")
    assert (done.returncode, done.stderr) == (1, "ybs: cannot write: No space left on device\n")


@pytest.mark.integration
@pytest.mark.parametrize("closed", [pytest.param(">&-", marks=pytest.mark.slow), "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["--version", SLOW_COMMANDS[0], "setup"])
def test_a_closed_standard_output_is_no_traceback(command: str, closed: str) -> None:
    done = run_in_shell(f"{command} {closed} {'' if '<' in closed else '</dev/null'}")
    assert done.stderr == ""
    assert done.returncode == (1 if command == "setup" else 0)


@pytest.mark.integration
@needs_full
def test_a_complaint_that_nobody_can_read_keeps_its_exit_code() -> None:
    assert run_in_shell(f"--modle 2>{FULL}").returncode == 2


def test_an_error_that_is_not_about_writing_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_words: object) -> int:
        raise FileNotFoundError(2, "No such file", "x")

    monkeypatch.setattr(cli, "run", broken)
    with pytest.raises(FileNotFoundError):
        cli.main(["go on"])


def test_a_command_of_a_chat_opens_the_terminal_with_it(terminal: Door, project: Path) -> None:
    assert cli.main(["/help"]) == 0
    assert (terminal.rest["prompt"], terminal.rest["command"]) == ("", "/help")
    assert cli.main(["--", "/help"]) == 0
    assert (terminal.rest["prompt"], terminal.rest["command"]) == ("/help", "")


def test_a_prompt_that_would_run_something_opens_no_terminal(terminal, project, capsys):
    assert "runs a command in a chat" in refused(capsys, "!touch made")
    assert terminal.options is None


@pytest.mark.integration
@pytest.mark.parametrize(("words", "is_kept"), [(["--incognito"], False), ([], True)])
def test_an_incognito_session_of_the_command_lets_no_crash_write_memory_down(
    words: list[str], *, is_kept: bool, project: Path
) -> None:
    code = (
        "import resource, sys; from ybs import cli\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (100, resource.getrlimit(resource.RLIMIT_CORE)[1]))\n"
        "cli.main(sys.argv[1:])\n"
        "print(resource.getrlimit(resource.RLIMIT_CORE)[0] == 100, file=sys.stderr)"
    )
    endpoint = ["--endpoint", "http://127.0.0.1:1/v1", "--model", "m", "--print", "/help"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words, *endpoint],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.endswith(f"{is_kept}\n"), done.stderr


def test_the_help_of_a_subcommand_shows_its_own_options_alone(capsys):
    assert cli.main(["sessions", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--all" in shown
    assert "--format" in shown
    for option in ("--mode", "--provider", "--max-cost", "--json"):
        assert option not in shown
    assert cli.main(["config", "show", "--mode", "plan", "--json"]) == 0, "it is understood"
    assert json.loads(capsys.readouterr().out)["safety.mode"] == "plan"


def test_the_version_is_said_to_people_and_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version"]) == 0
    assert capsys.readouterr().out == f"ybs {__version__}\n"
    assert cli.main(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == __version__


@pytest.mark.integration
def test_a_setting_is_set_and_removed_in_the_users_own_file(home, project, capsys):
    file = home / ".config" / "ybs" / "config.json"
    file.parent.mkdir(parents=True, mode=0o700)
    file.write_text('{"$schema": "x", "llm": {"model": "a"}, "ui": {"color": false}}')
    assert cli.main(["config", "set", "llm.temperature", "0.3"]) == 0
    assert json.loads(file.read_text()) == {
        "$schema": "x",
        "llm": {"model": "a", "temperature": 0.3},
        "ui": {"color": False},
    }
    assert cli.main(["config", "unset", "llm.temperature"]) == 0
    assert json.loads(file.read_text())["llm"] == {"model": "a"}
    before = file.read_text()
    assert cli.main(["config", "set", "llm.temperature", "hot"]) == 3
    assert file.read_text() == before
    (project / ".ybs.json").write_text('{"llm": {"temperature": 1}}')
    capsys.readouterr()
    assert cli.main(["config", "set", "llm.temperature", "0"]) == 0
    assert "takes precedence" in capsys.readouterr().err
