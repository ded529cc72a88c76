"""The rules of the house that no linter knows: who imports whom, how big things may grow, what a start may load."""

import ast
import re
import subprocess
import sys
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module
from itertools import takewhile
from pathlib import Path

import grimp
import pytest

from serving import serving
from ybs.config.presets import PRESETS
from ybs.config.schema import Config
from ybs.providers.registry import find_provider, provider_names

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "ybs"
MODULES = sorted(SOURCE.rglob("*.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

#: Functions of more lines than allowed. The list may only shrink.
LONG_FUNCTIONS: set[str] = set()
MANY_FILE_LINES = 600
MAX_FUNCTION_LINES = 50

#: Frontends talk to a terminal; no other package prints.
PRINTING_PACKAGES = ("cli", "frontends")

#: Libraries that cost tens of milliseconds; only who needs one imports it, at the moment of need.
HEAVY = ["httpx2", "httpcore2", "rich", "prompt_toolkit", "tree_sitter", "json_repair"]


def name_of(path: Path) -> str:
    """Return the dotted name of a module of ybs."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield every statement below, however deep."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for below in getattr(node, field, ()):
            if isinstance(below, ast.stmt):
                yield below
            yield from _statements(below)


#: What msgspec decodes to without looking at a class.
PLAIN = {"Any", "Raw", "bool", "dict", "float", "int", "list", "object", "str", "tuple"}


def unready_types(call: ast.Call) -> list[str]:
    """Return the type that a call has msgspec decode to without `decodable`, where that looks at a class."""
    called = re.fullmatch(
        r"((msgspec|json|msgpack)\.)*(convert|decode|Decoder)", ast.unparse(call.func)
    )
    if not called:
        return []
    named = [each.value for each in call.keywords if each.arg == "type"]
    place = {"convert": call.args[1:2], "Decoder": call.args[:1], "decode": []}[called[3]]
    return [
        ast.unparse(kind)
        for kind in (*named, *place)
        if not {each.id for each in ast.walk(kind) if isinstance(each, ast.Name)} <= PLAIN
        and not ast.unparse(kind).startswith("decodable(")
    ]


class Facts:
    """What the tests want to know of a module: its tree would fill memory a hundred times over."""

    def __init__(self, path: Path) -> None:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        self.docstring = ast.get_docstring(tree) or ""
        self.imports: list[str] = []  # those inside functions too
        self.functions: list[tuple[str, int]] = []  # the dotted name and the length in lines
        self.late: set[tuple[int, str]] = set()  # line and module of those inside functions
        self.prints: list[str] = []
        typing = {
            each.lineno for node in tree.body if isinstance(node, ast.If) for each in node.body
        }
        # `print` is looked for in every expression, the rest in statements: nine nodes of ten are expressions.
        prints = re.search(r"\bprint\b", source)
        for node in ast.walk(tree) if prints else _statements(tree):
            if isinstance(node, ast.Import):
                self.imports += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                self.imports += [node.module or ""]
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                self.imports += names
                if node.col_offset and node.lineno not in typing:
                    self.late |= {(node.lineno, name) for name in names}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                length = node.end_lineno - node.lineno + 1
                self.functions.append((f"{name_of(path)}.{node.name}", length))
            elif isinstance(node, ast.Name) and node.id == "print":
                self.prints.append(f"{name_of(path)}:{node.lineno}")


facts_of = cache(Facts)


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def loaded_after(code: str) -> set[str]:
    """Return the names of all modules in memory after an interpreter ran a line of code."""
    report = "import sys; print('loaded', *sys.modules, file=sys.stderr)"
    program = f"import atexit\natexit.register(lambda: exec({report!r}))\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("loaded "), done.stderr
    return set(last.split()[1:])


@pytest.mark.integration
def test_core_imports_only_the_standard_library_msgspec_and_itself() -> None:
    allowed = sys.stdlib_module_names | {"msgspec"}
    wrong = [
        f"{name_of(path)} imports {name}"
        for path in (SOURCE / "core").glob("*.py")
        for name in facts_of(path).imports
        if name.split(".")[0] not in allowed and not name.startswith("ybs.core")
    ]
    assert wrong == []


@pytest.mark.integration
def test_what_is_decoded_to_is_ready_for_several_threads() -> None:
    known = {
        "ybs.core.decoding": ["kind"],
        # Types that the form of a tool has made ready.
        "ybs.tools.calls.forms": ["self._whole", "self.kinds.get(name, Any)"],
        "ybs.tools.calls.arguments": ["kind", "kind", "kind"],
    }
    found: dict[str, list[str]] = {}
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        if re.search(r"\b(convert|Decoder|decode)\(", source):
            calls = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Call)]
            if kinds := [kind for call in calls for kind in unready_types(call)]:
                found[name_of(path)] = sorted(kinds)
    assert found == known


@pytest.mark.integration
def test_no_two_public_classes_have_the_same_name() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for name in re.findall(
            r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            places.setdefault(name, []).append(name_of(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_core_does_no_input_or_output() -> None:
    io_modules = {
        "os",
        "io",
        "socket",
        "subprocess",
        "pathlib",
        "shutil",
        "ssl",
        "urllib",
        "http",
        "sys",
        "tempfile",
    }
    wrong = [
        f"{name_of(path)} imports {name}"
        for path in (SOURCE / "core").glob("*.py")
        for name in facts_of(path).imports
        if name.split(".")[0] in io_modules
    ]
    assert wrong == []


def test_the_loop_stays_under_100_lines() -> None:
    assert lines_of(SOURCE / "core" / "agent.py") < 100


@pytest.mark.filterwarnings("default:.*is it still one story")
def test_long_files_are_pointed_out() -> None:
    for path in MODULES:
        if (count := lines_of(path)) > MANY_FILE_LINES:
            warnings.warn(f"{name_of(path)}: {count} lines; is it still one story?", stacklevel=1)


@pytest.mark.integration
def test_only_known_functions_are_longer_than_50_lines() -> None:
    lengths = (item for path in MODULES for item in facts_of(path).functions)
    long = {name for name, lines in lengths if lines > MAX_FUNCTION_LINES}
    assert long == LONG_FUNCTIONS, "split the new ones; take those that shrank off the list"


@pytest.mark.integration
def test_every_module_opens_with_one_sentence() -> None:
    openings = {
        name_of(path): facts_of(path).docstring.split("\n\n")[0].replace("\n", " ")
        for path in MODULES
    }
    assert openings
    wrong = [item for item in openings.items() if not re.fullmatch(r".{8,}[.:]", item[1])]
    assert wrong == []


@pytest.mark.integration
def test_no_private_module_is_imported_across_packages() -> None:
    wrong = []
    for path in MODULES:
        package = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]
        for name in facts_of(path).imports:
            parts = name.split(".")
            for place, part in enumerate(parts):
                is_private = part.startswith("_") and not part.startswith("__")
                if is_private and parts[0] == "ybs" and ".".join(parts[:place]) != package:
                    wrong.append(f"{name_of(path)} imports {name}")
    assert wrong == []


@pytest.mark.integration
def test_only_frontends_print() -> None:
    wrong = [
        place
        for path in MODULES
        if path.relative_to(SOURCE).parts[0].removesuffix(".py") not in PRINTING_PACKAGES
        for place in facts_of(path).prints
    ]
    assert wrong == []


@pytest.mark.integration
def test_packages_import_only_downward() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=10,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def _circles() -> list[tuple[str, ...]]:
    """Return the modules of each circle of imports; those inside functions and for the type checker alone count too."""
    graph = grimp.build_graph("ybs", exclude_type_checking_imports=False, cache_dir=None)
    below = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    left = dict.fromkeys(sorted(below))
    while leaves := [name for name in left if not any(each in left for each in below[name])]:
        for name in leaves:
            del left[name]
    # What is left lies in circles or above them; above goes in the same way.
    above = {name: [each for each in left if name in below[each]] for name in left}
    while tops := [name for name in left if not any(each in left for each in above[name])]:
        for name in tops:
            del left[name]
    return sorted({tuple(sorted(left))} - {()})


@pytest.mark.integration
def test_imports_go_in_no_circle() -> None:
    assert _circles() == []


#: How many imports of its own package stand inside functions of a package. Each keeps a module out of a start that does not
#: need it ("Start-up" in docs/architecture.md). The numbers may only go down.
LATE_IMPORTS = {
    "agent": 2,
    "cli": 8,
    "commands": 8,
    "conductor": 4,
    "compaction": 2,
    "frontends": 21,
    "providers": 7,
    "security": 29,
    "session": 7,
    "tools": 37,
    "transcripts": 1,
    "trust": 1,
}


def _late_imports() -> Iterator[tuple[str, int, str]]:
    """Yield module, line and imported module of each import of the same package that stands inside a function."""
    modules = {name_of(path) for path in MODULES}
    for path in MODULES:
        name, package = name_of(path), path.relative_to(SOURCE).parts[0]
        found = {
            (line, each if each in modules else each.rpartition(".")[0])
            for line, each in facts_of(path).late
            if each.startswith(f"ybs.{package}.")
        }
        yield from ((name, line, each) for line, each in sorted(found))


@pytest.mark.integration
def test_packages_import_their_own_modules_at_the_top() -> None:
    places = {each[:2] for each in _late_imports()}
    late = Counter(name.split(".")[1] for name, _ in places)
    assert dict(late) == LATE_IMPORTS, (
        "a new one belongs at the top; take those that went off the numbers"
    )


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_an_import_inside_a_function_keeps_a_module_out_of_the_first_request(project: Path) -> None:
    code = """
import sys
def note(event, arguments):
    if event == "socket.connect" and not loaded:
        loaded.extend(sys.modules)
loaded = []
sys.addaudithook(note)
from ybs.cli import main
code = main(sys.argv[1:])
print(code, *loaded)
"""
    with serving(["ok"]) as server:
        words = ["--endpoint", server.url, "-m", "scripted", "--print", "go"]
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
    loaded = set(done.stdout.splitlines()[-1].split()[1:])
    assert "ybs.session.session" in loaded
    # Those of the command line keep modules out of `ybs --version` (below).
    later = [each for each in _late_imports() if not each[0].startswith("ybs.cli")]
    needless = [each for each in later if loaded >= {each[0], each[2]}]
    assert needless == [], "the start loads these anyway: import them at the top"


def test_the_contract_knows_every_room() -> None:
    (contract,) = PYPROJECT["tool"]["importlinter"]["contracts"]
    known = set(re.findall(r"\w+", " ".join(contract["layers"])))
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}
    assert known == rooms | modules, "add a new room to the contract in pyproject.toml"


@pytest.mark.integration
def test_importing_the_command_loads_no_heavy_library() -> None:
    assert loaded_after("import ybs.cli").isdisjoint(HEAVY)


@pytest.mark.integration
def test_who_does_not_route_loads_no_router() -> None:
    loaded = loaded_after("import ybs.commands.table, ybs.session.session")
    assert not [name for name in loaded if name.startswith("ybs.router") or name == "sqlite3"]


@pytest.mark.integration
def test_a_policy_loads_the_shells_grammar_with_the_first_command_only() -> None:
    start = """
from ybs.config.schema import SafetySettings
from ybs.core.messages import ToolCall
from ybs.core.ports import Preview
from ybs.security.policy.case import Subject
from ybs.security.policy.policy import Policy
policy = Policy(SafetySettings(allow=("run_shell(ls *)",), ask=("read_file(.env)",)))
def judge(name, effect, **subject):
    policy.decide(ToolCall(id="1", name=name), effect, Preview(title="x"), Subject(**subject))
judge("read_file", "read", paths=("a",))
judge("write_file", "write", paths=("a",))
"""
    grammar = {
        "tree_sitter",
        "tree_sitter_bash",
        "ybs.security.commands.syntax",
        "ybs.security.commands.options",
    }
    assert loaded_after(start).isdisjoint(grammar)
    assert grammar <= loaded_after(start + "judge('run_shell', 'execute', command='ls; pwd')")


@pytest.mark.integration
def test_version_loads_next_to_nothing() -> None:
    code = "import sys; sys.argv = ['ybs', '--version']; from ybs.cli import main; sys.exit(main())"
    assert loaded_after(code).isdisjoint([*HEAVY, "asyncio", "msgspec", "argparse"])


@pytest.mark.integration
def test_the_python_door_costs_nothing_until_it_is_used() -> None:
    loaded = loaded_after("import ybs")
    assert {name for name in loaded if name.startswith("ybs")} == {"ybs"}


def test_entry_points_name_the_providers_that_the_registry_knows() -> None:
    entry_points = PYPROJECT["project"]["entry-points"]["ybs.providers"]
    assert set(entry_points) == set(provider_names()) - set(PRESETS)
    for name, place in entry_points.items():
        module, _, attribute = place.partition(":")
        assert getattr(import_module(module), attribute) is find_provider(name, Config())


def test_the_command_is_the_one_that_was_installed() -> None:
    assert PYPROJECT["project"]["scripts"] == {"ybs": "ybs.cli:main"}


#: Names with an underscore that are public all the same, or that nothing public stands for.
UNDERSCORED = {
    "_asdict": "public: of named tuples",
    "_backends": "anyio: a module that httpx2 imports late",
    "_exit": "public: os",
    "_on_resize": "prompt_toolkit: what it calls when the window has another size",
    "_paused": "asyncio: that a pipe is full is told in no other way",
    "_replace": "public: of named tuples",
    "_run_exitfuncs": "atexit: there is no public name",
}


#: The private names that a module makes, and those that it takes from elsewhere. A syntax tree would say it too, in ten times the time.
MADE = re.compile(
    r"^ *(?:async )?(?:def|class) (_\w+)|\b(?:self|cls)\.(_\w+)|^ *(_\w+)(?::| =)", re.MULTILINE
)
TAKEN = re.compile(
    r"""(?:(?!\b(?:self|cls)\b)\b\w+|[\])])\.(_\w+)"""
    r"""|(?:setattr|delattr|setitem)\([^()]*?["'](?:[\w.]+\.)?(_\w+)["']"""
)
IMPORTED = re.compile(r"^ *from [\w.]+ import (\([^)]*\)|[^(\n]+)", re.MULTILINE)


def _is_private(name: str) -> bool:
    return name.strip("_") != "" and not name.startswith("__") and name not in UNDERSCORED


@cache
def _private_names(path: Path) -> tuple[set[str], tuple[tuple[int, str], ...]]:
    """Return the private names that a module makes, and with their lines those that it takes from elsewhere."""
    source = path.read_text(encoding="utf-8")
    made = {found[found.lastindex or 0] for found in MADE.finditer(source)}
    taken = [
        (number, found[found.lastindex or 0])
        for number, line in enumerate(source.splitlines(), 1)
        if "_" in line and not line.lstrip().startswith(("from ", "import "))
        for found in TAKEN.finditer(line)
    ]
    for block in IMPORTED.finditer(source):
        taken += [
            (source.count("\n", 0, block.start()) + 1, n) for n in re.findall(r"\b_\w+", block[1])
        ]
    return made, tuple(each for each in taken if _is_private(each[1]) and each[1] not in made)


@pytest.mark.integration
def test_no_module_reaches_into_the_private_names_of_another_one():
    reached = [
        f"{name_of(path)}:{line} {name}"
        for path in MODULES
        for line, name in _private_names(path)[1]
    ]
    assert reached == [], reached


@pytest.mark.integration
def test_no_test_reaches_into_the_private_names_of_another_package_than_its_own():
    """Tests of `ybs.tools` stand in `tests/tools` and may look into it; what all tests share may look into nothing."""
    made: dict[str, set[str]] = {}
    for path in MODULES:
        for name in _private_names(path)[0]:
            made.setdefault(name, set()).add(path.relative_to(SOURCE).parts[0])
    tests = ROOT / "tests"
    reached = [
        f"{path.relative_to(tests)}:{line} {name}"
        for path in sorted(tests.rglob("*.py"))
        for line, name in _private_names(path)[1]
        if path.relative_to(tests).parts[0] not in made.get(name, set())
    ]
    assert reached == [], reached


#: Those that draw events or fold them to a conversation: a new kind of event fails the type check in each.
TAKES_EVERY_EVENT = (
    "frontends/headless/output.py step_line",
    "frontends/terminal/drawing/render.py draw",
    "frontends/terminal/plain/sentences.py _sentence",
    "frontends/terminal/sub_agents.py _note",
    "transcripts/replay.py _say",
)


@pytest.mark.integration
def test_who_draws_or_folds_events_says_what_becomes_of_every_kind():
    for each in TAKES_EVERY_EVENT:
        path, _, name = each.partition(" ")
        tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
        functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        bodies = [ast.unparse(node) for node in functions if node.name == name]
        assert any("case _:\n            assert_never(event)" in body for body in bodies), each


def _is_below(line: str, other: str) -> bool:
    """Return whether another line is blank or stands deeper."""
    return not other.strip() or len(other) - len(other.lstrip()) > len(line) - len(line.lstrip())


@pytest.mark.integration
def test_a_broad_except_raises_again_or_says_why_not():
    broad = re.compile(
        r"except(?: \(?(?:Base)?Exception\b.*)?:$|except .*\b(?:Base)?Exception\b.*:$"
    )
    wrong: list[str] = []
    for path in MODULES:
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if not broad.match(line.strip()):  # with a reason beside it, it does not end in a colon
                continue
            body = takewhile(partial(_is_below, line), lines[number + 1 :])
            if not any(each.strip().startswith("raise") for each in body):
                wrong.append(f"{name_of(path)}:{number + 1}")
    assert wrong == []


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python 3.11.0 to 3.11.4 (Debian 12 has 3.11.2) miss where such a group ends: `(?>(?:ab)*)` is right everywhere, `(?:ab)*+` not (gh-106052)."""
    possessive = re.compile(r"\)(?:[*+?]|\{+[0-9,]+\}+)\+")
    assert [name_of(path) for path in MODULES if possessive.search(path.read_text())] == []
    assert re.fullmatch(r"(?>(?:-(?=x)|y)*)-z", "y-z")


def test_time_limits_are_the_ones_that_hold_in_a_task_that_is_being_cancelled() -> None:
    found = [name_of(path) for path in MODULES if "asyncio.timeout" in path.read_text()]
    assert found == ["ybs.core.time_limits"]


#: Who connects to a server by more than a request of `providers/http`, and why no other may: there the proxy, the login, the certificates and
#: the server behind `localhost` are picked by ybs.
CONNECTING = {
    "config/http_client.py": "the clients of httpx2, for MCP, WhatsApp and models",
    "providers/http/plain_http.py": "HTTP without TLS and proxies",
    "providers/reachable.py": "looks whether anybody listens, and says nothing",
    "providers/local/server.py": "a socket in a folder of ybs",
    "frontends/serve/client.py": "likewise",
    "frontends/acp/command.py": "two ends of one pair of sockets",
    "frontends/gateway/slack.py": "what the platform's library asks for",
    "frontends/gateway/matrix.py": "likewise",
    "security/sandbox/shared_network.py": "the other end of a command's network",
    "tools/web.py": "connects to the address that it judged",
}


def test_connections_are_made_in_few_places() -> None:
    makers = "AsyncClient|ClientSession|(?:Async)?HTTPTransport|HTTPS?Connection|urlopen|build_opener|open_connection|open_unix_connection"
    makers += "|create_connection|create_unix_connection|Async(?:ConnectionPool|HTTPProxy)"
    making = re.compile(
        rf"\b(?:{makers})\(|\b(?:httpx2?\.(?:Client|get|post|put|patch|delete|head|request|stream)|aiohttp\.request)\("
        r"|\((?:\w+\.)?(?:AsyncHTTPTransport|HTTPConnection|AsyncClient)\)|\bimport (?:requests|urllib3)\b"
    )
    found = {str(p.relative_to(SOURCE)) for p in MODULES if making.search(p.read_text())}
    assert found == CONNECTING.keys(), "send it by ybs.providers.http.client, or say here why not"


#: Who makes files and folders by the umask or by their names, and why not by `config/private_file.py`: they are no files of ybs.
MAKING = {
    "commands/learn.py": "units of systemd",
    "frontends/subcommands/editors.py": "an editor's settings",
    "context/focus.py": "a folder of the project",
    "conductor/contents.py": "a project's folders, and copies of them",
    "security/paths/opening.py": "likewise",
    "frontends/terminal/clipboard.py": "in a temporary folder of its own",
    "frontends/terminal/prompt/input.py": "likewise",
    "git/three_way.py": "likewise",
    "plugins/cloning.py": "likewise",
    "plugins/content.py": "in a folder that was just made, with rights of its own",
    "tools/external/program.py": "likewise",
    "security/sandbox/bubblewrap.py": "in a sandbox",
    "security/sandbox/copied_homes.py": "likewise",
}


def test_files_of_ybs_are_made_in_one_place() -> None:
    making = re.compile(
        r"\.(?:mkdir|makedirs)\((?!.*0o700|.*_MODE|.*_RIGHTS)|\.(?:write_bytes|touch)\((?!self)|(?<!_pipe)\.write_text\("
        r"|\.open\(\"[wax]|\bopen\((?!handle|descriptor|writing|number)[^()]*, \"[wax]|\bFileHandler\("
    )
    texts = ((path, path.read_text()) for path in MODULES)
    found = {str(path.relative_to(SOURCE)) for path, text in texts if making.search(text)}
    assert found - {"checkpoints/keeping.py", "session/undoing.py"} == MAKING.keys()


#: Objects of other libraries whose attribute happens to be called as one of ybs's own.
SET_BY_OTHERS_RULES = {
    "frontends/terminal/prompt/input.py self.app.before_render": "prompt_toolkit: likewise",
    "frontends/terminal/prompt/input.py self.app.style": "prompt_toolkit: made before the style is known",
    "frontends/terminal/terminal.py app.after_render": "prompt_toolkit: how one hears of a drawing",
    "cli/parser.py parser.usage": "argparse: known once the options are",
    "providers/local/serve.py parameters.model.path": "xllamacpp: its settings take no arguments",
    "tools/searching/child.py child.stdin": "subprocess: how its `communicate` learns that another writes",
    "security/own_python.py sys.prefix": "Python: what its own site, which is not run, would set",
    "cli/subcommands.py arguments.command": "argparse: a bag of what was read",
}


def _assigned(node: ast.stmt) -> Iterator[ast.Attribute]:
    """Yield the attributes that a statement assigns."""
    targets = list[ast.expr | None](getattr(node, "targets", []))
    if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For | ast.AsyncFor):
        targets.append(node.target)
    if isinstance(node, ast.With | ast.AsyncWith):
        targets += [item.optional_vars for item in node.items]
    for target in targets:
        if isinstance(target, ast.expr) and not isinstance(node, ast.Delete):
            yield from (
                each
                for each in ast.walk(target)
                if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
            )


def _is_own(target: ast.Attribute) -> bool:
    return isinstance(target.value, ast.Name) and target.value.id in ("self", "cls")


def _is_record(node: ast.ClassDef) -> bool:
    """Return whether the class is data whose fields anybody may change."""
    bases = (*map(ast.unparse, node.bases), *map(ast.unparse, node.decorator_list))
    return any(re.search(r"\bStruct\b|\bdataclass\b", each) for each in bases)


class Attributes:
    """Which classes of ybs have an attribute, and where one is assigned from outside of its object."""

    def __init__(self) -> None:
        #: By name: the module and the class, and whether that is a record.
        self.owners: dict[str, dict[tuple[Path, str], bool]] = {}
        self.setters = set[str]()
        self.assigned = list[tuple[Path, ast.Attribute]]()
        for path in MODULES:
            for node in _statements(ast.parse(path.read_text(encoding="utf-8"))):
                self.assigned += [(path, each) for each in _assigned(node) if not _is_own(each)]
                if isinstance(node, ast.ClassDef):
                    self._read(path, node)

    def _read(self, path: Path, made: ast.ClassDef) -> None:
        for node in _statements(made):
            names = [each.attr for each in _assigned(node) if _is_own(each)]
            if node in made.body and isinstance(node, ast.AnnAssign):
                names.append(ast.unparse(node.target))
            for name in names:
                self.owners.setdefault(name, {})[path, made.name] = _is_record(made)
            if isinstance(node, ast.FunctionDef):
                marks = map(ast.unparse, node.decorator_list)
                self.setters |= {node.name} & {each.removesuffix(".setter") for each in marks}

    def may_be_set(self, path: Path, name: str) -> bool:
        """Return whether a module may set it: it made the class, that is a record, or no class of ybs is meant."""
        if name.startswith("_"):
            return False
        made = self.owners.get(name, {})
        words = set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        named = [is_record for (_, each), is_record in made.items() if each in words]
        is_here = any(place == path for place, _ in made)
        return name in self.setters or is_here or all(named or made.values())


@pytest.mark.integration
def test_nothing_is_assigned_onto_an_object_that_another_module_made() -> None:
    """What is no record is told by a method, or when it is made; a private name is set by nobody but its own object."""
    attributes = Attributes()
    found = {
        f"{path.relative_to(SOURCE)} {ast.unparse(target)}"
        for path, target in attributes.assigned
        if not attributes.may_be_set(path, target.attr)
    }
    assert found == set(SET_BY_OTHERS_RULES), found ^ set(SET_BY_OTHERS_RULES)


@pytest.mark.integration
def test_nothing_is_copied_to_be_patched() -> None:
    copying = [name_of(path) for path in MODULES if "copy.copy" in facts_of(path).imports]
    patched = [
        name_of(path)
        for path in MODULES
        if re.search(r"\bvars\(\w+\)\.update\(|object\.__setattr__\(", path.read_text("utf-8"))
    ]
    assert copying + patched == []


#: Who makes what tools stand on, and toolboxes: all of them have `ToolEnvironment.checks` around their calls.
MAKES_CALLS = {
    "ToolEnvironment.of(": {"conductor/workplaces.py", "session/settings.py"},
    "LocalToolbox(\n": {"agent/toolbox.py", "conductor/acp/requests.py"},
    "UserHooks(": {"agent/user_hooks/hooks.py"},
}


def test_no_frontend_makes_a_toolbox_without_the_checks_around_its_calls():
    texts = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in MODULES}
    for made, makers in MAKES_CALLS.items():
        assert {name for name, text in texts.items() if made in text} == makers, made
    boxes = (texts[name] for name in MAKES_CALLS["LocalToolbox(\n"])
    assert all("hooks=environment.around(" in text for text in boxes)
