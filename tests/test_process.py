"""What belongs to the whole process is read and changed by the command line and the frontends, and nowhere else."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "ybs"
#: Who reads the environment of the process, and why a Host cannot say it.
READERS = {
    "providers/local/serve.py": "a process of its own: its variables are those of the host that started it",
    "tools/shell/losses.py": "`~name` is the home folder of another account: the process's HOME is not asked",
    "trust/reach.py": "likewise",
    "security/paths/git_settings.py": "likewise",
    "session/options.py": "the host of a program that names none: read once, when a session is opened",
    "providers/http/client.py": "httpx2 takes the proxies of the process, and this asks whether it would",
    "ready_tools/web_search.py": "a program of its own: its variables are those that the person lets it have",
    "ready_tools/git_status.py": "a program of its own: git gets its variables, and some more",
    "security/paths/own_code.py": "where the Python of this process was told to look for modules, which no host changes",
    "config/editables.py": "likewise, before anything else of ybs is loaded",
}
#: Who changes the process that it runs in, and why.
CHANGERS = {
    "security/incognito.py": "what the command line calls in an incognito run, and the local server's process",
    "providers/local/serve.py": "a process of its own: the local model's server",
    "tools/reading/pdf_text.py": "a process of its own: reads one PDF",
    "tools/searching/child.py": "between fork and exec: bounds the memory of rg",
}
READ = {"environ", "environb", "getenv", "getenvb", "expanduser", "expandvars"}
CHANGED = {
    "chdir", "fchdir", "umask", "putenv", "unsetenv", "setrlimit", "setitimer", "set_wakeup_fd", "siginterrupt",
    "setrecursionlimit", "setprofile", "settrace", "setlocale", "setdefaulttimeout", "simplefilter", "filterwarnings",
    "set_exception_handler", "set_event_loop_policy", "setswitchinterval", "nice",
}  # fmt: skip
HOOKS = {
    "excepthook",
    "unraisablehook",
    "displayhook",
    "breakpointhook",
    "stdin",
    "stdout",
    "stderr",
}


#: What a module says that could be found; parsing all of them takes seconds.
SIGNS = re.compile(
    rf"\b(?:os|path|posixpath)\.(?:{'|'.join(READ)})\b|\bPath\.home\b|\.(?:expanduser|expandvars|getenv)\b"
    r"|\bfrom (?:os|os\.path|posixpath) import\b|\bsignal\.signal\("
    rf"|\b(?:{'|'.join(CHANGED)})\(|\b(?:sys|threading)\.(?:{'|'.join(HOOKS)})\b"
)


@cache
def trees() -> list[tuple[str, ast.Module]]:
    """Return the modules below the frontends that have one of the signs, but for the public fakes."""
    names = (file.relative_to(SOURCE).as_posix() for file in sorted(SOURCE.rglob("*.py")))
    below = (n for n in names if not n.startswith(("cli/", "frontends/", "testing/")))
    texts = ((name, (SOURCE / name).read_text()) for name in below)
    return [(name, ast.parse(text)) for name, text in texts if SIGNS.search(text)]


def reads_environment(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="os" | "path" | "posixpath" | "Path"), attr=name):
            return name in READ or (name == "home" and node.value.id == "Path")
        case ast.Attribute(attr="expanduser" | "expandvars" | "getenv"):
            return True
        case ast.ImportFrom(module="os" | "os.path" | "posixpath"):
            return any(each.name in READ for each in node.names)
        case _:
            return False


def changes_process(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="signal"), attr="signal")):
            return True
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in CHANGED
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return any(is_of_process(each) for each in targets)
        case _:
            return False


def is_of_process(target: ast.expr) -> bool:
    match target:
        case ast.Attribute(value=ast.Name(id="sys" | "threading"), attr=name):
            return name in HOOKS
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id="os"), attr="environ")):
            return True
        case _:
            return False


@pytest.mark.integration
def test_the_environment_is_read_once_and_handed_on_as_a_host():
    found = {name for name, tree in trees() if any(map(reads_environment, ast.walk(tree)))}
    assert found == set(READERS)


@pytest.mark.integration
def test_nothing_below_the_frontends_changes_the_process():
    found = {name for name, tree in trees() if any(map(changes_process, ast.walk(tree)))}
    assert found == set(CHANGERS)


def test_these_looks_find_what_they_are_for():
    readers = (
        "os.environ", "os.environ.get('A')", "os.getenv('A')", "Path.home()", "Path('~').expanduser()",
        "os.path.expanduser('~')", "from os import environ", "from os.path import expanduser",
    )  # fmt: skip
    changers = (
        "signal.signal(1, f)", "os.chdir('/')", "chdir('/')", "sys.excepthook = f", "os.environ['A'] = 'b'",
        "resource.setrlimit(1, (2, 3))", "os.umask(0)", "threading.excepthook = f",
    )  # fmt: skip
    assert [text for text in (*readers, *changers) if not SIGNS.search(text)] == []
    for text in readers:
        assert any(map(reads_environment, ast.walk(ast.parse(text)))), text
    for text in changers:
        assert any(map(changes_process, ast.walk(ast.parse(text)))), text
    for text in ("host.environ.get('A')", "host.home", "variables['A'] = 'b'", "self.signal(1)"):
        nodes = list(ast.walk(ast.parse(text)))
        assert not any(reads_environment(each) or changes_process(each) for each in nodes), text
