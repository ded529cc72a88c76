"""No package below `commands/` speaks of a slash command, an option, a subcommand or a key: each frontend words that."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rows import every_row
from ybs.cli.subcommands import SUBCOMMANDS
from ybs.commands.table import COMMANDS

SOURCE = Path(__file__).parents[1] / "src/ybs"
#: What may speak of them: the frontends, the commands, and what reads the command line.
ABOVE = ("ready_tools/", "commands/", "frontends/", "cli/", "__main__.py")
#: Texts that name an option of another program, or a file; this list may only shrink.
EXCEPTIONS = {
    ("security/commands/writers.py", "--write|-w"): "options of formatters",
    (
        "security/commands/writers.py",
        "--version --help -V -n -nd --dry-run --check --check-only --diff",
    ): "options of many",
    ("git/way_back.py", "--format=%H %T %P%x09%s"): "an option of git",
    ("git/moves.py", "--format=%(refname:short)"): "an option of git",
    ("git/titles.py", "--format=%h %s"): "an option of git",
    ("repo_map/history.py", "--format=%x01%m%H %s"): "an option of git",
    ("tools/builtin/git_plan.py", "--format=%h %as %an: %s"): "an option of git",
    ("providers/cli/__init__.py", "--model"): "an option of Claude Code",
    ("providers/cli/__init__.py", "--output-format"): "an option of Claude Code",
    ("providers/cli/__init__.py", "--print"): "an option of Claude Code",
    ("providers/cli/__init__.py", "--system-prompt-file"): "an option of Claude Code",
    ("providers/cli/__init__.py", "--tools"): "an option of Claude Code",
    ("providers/cli/__init__.py", "--verbose"): "an option of Claude Code",
    ("providers/cli/model.py", "--resume"): "an option of Claude Code",
    ("providers/local/fetch.py", "--no-cache"): "an option of uv",
    ("providers/local/hardware.py", "--format=csv,noheader,nounits"): "an option of nvidia-smi",
    ("providers/local/serve.py", "--host"): "an option of llama-server",
    ("providers/local/serve.py", "--model"): "an option of llama-server",
    ("repo_map/worker.py", "--wait"): "an option of the worker itself",
    ("security/commands/dangers.py", "-[a-zA-Z]*[ceErp]|--eval|--print|--execute"): (
        "options of node and the like"
    ),
    ("security/commands/options.py", "--config"): "an option of curl",
    (
        "tools/mcp/connection.py",
        'give it the network, which the first fetch of a package needs: take "network": false out of its entry (--no-network of ybs mcp add)',
    ): "how the entry of a server is written, by hand or by the command that adds it",
    (
        "tools/mcp/connection.py",
        'let it change the project: "project": "write" in its entry (--project write)',
    ): "the same",
    ("tools/mcp/connection.py", '"] in its entry (--write '): "the same",
    ("tools/mcp/connection.py", '"] in its entry, or "write" to change it (--write '): "the same",
    ("tools/builtin/run_shell.py", " is reached from outside only after /ports "): (
        "the summary of a call is for the person, who alone can open a port"
    ),
    (
        "tools/builtin/run_shell.py",
        "a port of it is reached from outside only after /ports",
    ): "the same",
}
OPTION = re.compile(r'(?m)(?:"|^)(--[a-z][a-z-]+)(?="| |$)')
#: Options of ybs that external tools have, too.
OF_TOOLS = {"--schema"}


def _any(words: set[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _spoken_of() -> re.Pattern[str]:
    texts = [
        (SOURCE / "cli" / name).read_text(encoding="utf-8")
        for name in ("parser.py", "subcommands.py", "flags.py")
    ]
    options = {option for text in texts for option in OPTION.findall(text)} - OF_TOOLS
    assert {"--model", "--allow", "--add-dir", "--no-sandbox"} <= options
    names = {name for name in COMMANDS if name.isalpha()}
    return re.compile(
        rf"(?<![\w/.~}}<])/(?:{_any(names)})\b(?!/|\.?\w)"
        rf"|(?<![\w-])(?:{_any(options)})(?![\w-])"
        rf"|`ybs (?:{_any(set(SUBCOMMANDS))})\b"
        r"|\b(?:[Cc]trl|Alt|Shift)[-+]\w|\b(?:Esc|Escape)\b"
    )


SPOKEN_OF = _spoken_of()


def _texts(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if not SPOKEN_OF.search(text):  # most files: parsing is what takes time
        return
    tree = ast.parse(text)
    docs = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body[:1]
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


@every_row(
    ("text", "is_found"),
    [
        ("Choose another model with /model.", True),
        ("`/resume x fork` goes on", True),
        ("Set it with --endpoint.", True),
        ("press Ctrl-C to stop", True),
        ("Esc stops it", True),
        ("`ybs setup` chooses one", True),
        ("the path /srv/model/x, a/model and /model/x", False),
        ("an escape sequence; git --amend", False),
        ("Start ybs in the folder of a project.", False),
    ],
)
def test_what_is_looked_for_is_found(text: str, is_found: bool) -> None:
    assert bool(SPOKEN_OF.search(text)) is is_found


@pytest.mark.integration
def test_no_package_below_commands_speaks_of_a_command_an_option_or_a_key() -> None:
    found = {
        (name, text)
        for path in sorted(SOURCE.rglob("*.py"))
        if not (name := path.relative_to(SOURCE).as_posix()).startswith(ABOVE)
        for text in _texts(path)
        if SPOKEN_OF.search(text)
    }
    assert found - EXCEPTIONS.keys() == set()
    unneeded = {text for _, text in EXCEPTIONS} - {text for _, text in found}
    assert unneeded == set(), "exceptions that are not needed any more"
