"""What incognito means for a room that would write, for a model elsewhere, and for a crash."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ybs
from rows import every_row
from ybs.config.schema import IncognitoSettings, NeverIncognito
from ybs.core.errors import ConfigError
from ybs.core.remedies import Remedy
from ybs.security import incognito
from ybs.security.gate import put_crash
from ybs.security.incognito import Incognito
from ybs.security.sandbox.launch import environment_of

DUMP = """
import resource, sys
sys.excepthook = print
{before}
from ybs.security.incognito import leave_no_dump
leave_no_dump()
print(resource.getrlimit(resource.RLIMIT_CORE)[0], sys.excepthook.__name__)
"""


def limit_after(before: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", DUMP.format(before=before)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_nothing_may_be_written_in_incognito_alone():
    assert Incognito().may_write
    assert not Incognito(is_on=True).may_write


def test_a_model_elsewhere_is_refused_where_only_local_ones_are_allowed():
    with pytest.raises(ConfigError, match=r"openai big .*incognito\.local_only") as caught:
        Incognito(is_on=True, only_here=True).check_model("openai", "big", is_here=False)
    assert caught.value.remedies == (Remedy("choose_local_model"),)


@every_row(
    ("is_on", "local_only", "is_here"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_every_other_model_is_taken(is_on: bool, local_only: bool, is_here: bool):
    settings = IncognitoSettings(enabled=is_on, local_only=local_only)
    Incognito.of(settings).check_model("p", "m", is_here=is_here)


def test_local_only_counts_by_itself_where_no_session_can_be_incognito():
    with pytest.raises(ConfigError, match=r"incognito\.local_only"):
        Incognito.of(NeverIncognito(local_only=True)).check_model("p", "m", is_here=False)
    Incognito.of(NeverIncognito()).check_model("p", "m", is_here=False)
    assert not Incognito.of(NeverIncognito(local_only=True)).allows_agents
    assert Incognito.of(NeverIncognito()).allows_agents


@pytest.mark.integration
def test_a_crash_dumps_no_memory_and_tells_no_reporter():
    limit, hook = limit_after("")
    assert int(limit) in (0, 1)  # no dump is so small
    assert hook == "put_crash"


@pytest.mark.integration
def test_a_limit_that_cannot_be_raised_is_left_as_it_is():
    lowest = "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"
    assert limit_after(lowest)[0] == "0"


@every_row(("system", "hard", "soft"), [("linux", 9, 1), ("darwin", 9, 0), ("linux", 0, None)])
def test_the_limit_is_the_one_that_the_system_honours(
    monkeypatch: pytest.MonkeyPatch, system: str, hard: int, soft: int | None
):
    import resource

    given: list[tuple[int, tuple[int, int]]] = []

    def limit(_kind: int) -> tuple[int, int]:
        return hard, hard

    def set_limit(kind: int, pair: tuple[int, int]) -> None:
        given.append((kind, pair))

    monkeypatch.setattr(incognito.sys, "platform", system)
    monkeypatch.setattr(resource, "getrlimit", limit)
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    monkeypatch.setattr(sys, "excepthook", print)
    incognito.leave_no_dump()
    assert given == ([] if soft is None else [(resource.RLIMIT_CORE, (soft, hard))])


def test_a_system_without_limits_is_no_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.setattr(sys, "excepthook", print)
    incognito.leave_no_dump()
    assert sys.excepthook is put_crash


def test_no_command_is_told_where_a_shell_keeps_its_history():
    names: tuple[str, ...] = (
        "HISTFILE",
        "ZDOTDIR",
        "FCEDIT",
        "LESSHISTFILE",
        "PYTHONSTARTUP",
        "NODE_REPL_HISTORY",
    )
    given: dict[str, str] = dict.fromkeys(names, "/home/me/.history")
    assert not set(names) & set(environment_of(given, home="/home/me"))


#: Modules that make temporary files, and why none of a session is left on a disk by an incognito one.
TEMPORARY = {
    "frontends/gateway/clones.py": "a session of the gateway is never incognito",
    "frontends/terminal/clipboard.py": "is refused in incognito",
    "frontends/terminal/prompt/input.py": "is refused in incognito",
    "plugins/cloning.py": "the person installs a plugin",
    "providers/cli/model.py": "an empty folder, and a file in a HeldFolder",
    "security/paths/opening.py": "without a name, where no memory can be had",
    "security/sandbox/copied_homes.py": "beside a home that is in memory itself then",
    "security/sandbox/scratch.py": "knows of incognito",
    "tools/external/program.py": "files of the project, and one without a name where no memory can be had",
    "tools/searching/child.py": "without a name, where no memory can be had",
}


@pytest.mark.integration
def test_temporary_files_are_made_by_modules_that_know_of_incognito():
    source = Path(ybs.__file__).parent
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"^\s*(?:from|import) tempfile\b", path.read_text(encoding="utf-8"), re.M)
    }
    assert found == TEMPORARY.keys()
