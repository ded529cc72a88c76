"""The words of code, messages and docs: no private vocabulary, and commands, options and keys only where frontends are."""

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
    (
        "security/commands/options.py",
        "-p -P --paginate --no-pager --bare --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --literal-pathspecs --no-literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --exec-path --html-path --man-path --info-path -h --help -v --version",
    ): "options of git",
    ("git/moves.py", "--format=%H %T %P%x09%s"): "an option of git",
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


#: Words of a private vocabulary in names of modules, classes and functions, with the word to use. Local variables are free.
PRIVATE_NAMES = {
    "cage": "sandbox",
    "charting": "map worker",
    "concerns": "reasons",
    "door": "frontend",
    "goals": "targets",
    "judged": "verdict, checked",
    "knock": "probe",
    "leash": "supervise",
    "legible": "visible, printable",
    "mend": "fix, repair",
    "occupation": "running task",
    "pieces?": "chunk, delta, part",
    "roundabout": "indirect",
    "rounds?": "turn",
    "rooms": "package",
    "runs_later|is_later|later_(?:files|watch|changes)": "autorun",
    "shelf": "tree",
    "spill(?:ed)?": "overflow",
    "standing": "rules",
    "strays": "orphans",
    "stretch(?:ed)?": "segment",
    "surroundings": "context",
    "upkeep": "recorder",
    "walls?": "denial, protection",
    "workshop": "environment",
}
PRIVATE_ENDINGS = ("Aside", "Later")
#: Phrases that a stranger reads twice, in code, comments, messages and docs.
PRIVATE_PHRASES = (
    *(
        "mend it",
        "mends",
        "mended",
        "to mend",
        "speaks against",
        "speak against",
        "say shortly",
        "for the which",
        "gone for good",
    ),
    *(
        "is no regular",
        "are no regular",
        "is no file",
        "is no folder",
        "is no link",
        "needs it not",
        "that is none",
        "which is none",
    ),
    *(
        "that are none",
        "a word that is none",
        "of that which",
        "of these those",
        "tell whether",
        "roundabout",
        "not a wall",
        "no wall:",
    ),
    *(
        "of all rooms",
        "other rooms",
        "terminal door",
        "no door",
        " cage",
        "leash",
        "his workshop",
        "surroundings of",
    ),
)
HONEST = re.compile(
    "there is no (?:file|folder|link)|\\w(?:mends|mended|mend it)|nobody can tell whether"
)
#: Where such words are data: examples for models, words of requests, the history.
PHRASES_AS_DATA = {
    "CHANGELOG.md",
    "src/ybs/providers/text_protocol.py",
    "src/ybs/small_models/topics.py",
}


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


DEFINED = re.compile(r"^ *(?:async )?(?:def|class) (\w+)", re.MULTILINE)
PRIVATE_NAME = re.compile(
    rf"(?:[a-z\d_]*_)?(?:{'|'.join(PRIVATE_NAMES)})(?:_[a-z\d_]*)?"
    rf"|_*(?:[A-Z]\w*)?(?:{'|'.join(PRIVATE_NAMES).title()}|{'|'.join(PRIVATE_ENDINGS)})s?(?![a-z])\w*"
)


def _phrases_in(text: str) -> list[str]:
    lower = text.lower()
    found = [each for each in PRIVATE_PHRASES if each in lower]
    rest = HONEST.sub("", lower) if found else ""
    return [each for each in found if each in rest]


@every_row(
    ("name", "is_found"),
    [
        *(
            (name, True)
            for name in ("LegibleModel", "runs_later", "_pieces", "later_watch", "Standing")
        ),
        *(
            (name, True)
            for name in ("FilesLater", "Round", "_Round", "Rounds", "pieces_of", "Aside")
        ),
        *(
            (name, False)
            for name in ("Background", "background", "call_later", "put_aside", "Rounded")
        ),
        *((name, False) for name in ("understanding", "firewall", "Recommended", "around")),
    ],
)
def test_a_private_name_is_found(name: str, is_found: bool) -> None:
    assert bool(PRIVATE_NAME.fullmatch(name)) is is_found


@every_row(
    ("text", "is_found"),
    [
        ("It is no regular file.", True),
        ("{path} is no file", True),
        ("what speaks against it", True),
        ("Mend it.", True),
        ("The terminal door", True),
        ("There is no file of that name", False),
        ("none is needed", False),
        ("amended and recommended", False),
    ],
)
def test_a_private_phrase_is_found(text: str, is_found: bool) -> None:
    assert bool(_phrases_in(text)) is is_found


@pytest.mark.integration
def test_code_and_docs_have_no_private_vocabulary() -> None:
    root = SOURCE.parents[1]
    pages = [*SOURCE.rglob("*.md"), *root.glob("*.md"), *(root / "docs").glob("*.md")]
    modules, phrases, names = list(SOURCE.rglob("*.py")), list[str](), dict[str, Path]()
    for path in [*modules, *pages]:
        place, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        if place not in PHRASES_AS_DATA:
            phrases += [f"{place}: {each}" for each in _phrases_in(text)]
        if path.suffix == ".py":
            names |= dict.fromkeys([path.stem, *DEFINED.findall(text)], path)
    assert phrases == []
    assert {name: path.name for name, path in names.items() if PRIVATE_NAME.fullmatch(name)} == {}


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
