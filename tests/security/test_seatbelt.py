"""The profile of macOS, by its text: it cannot be run here."""

import re
from pathlib import Path

import pytest

from rows import every_row
from ybs.config.host import Host
from ybs.core.errors import Refused
from ybs.security.sandbox import seatbelt
from ybs.security.sandbox.launch import Access, Launch, SandboxView
from ybs.security.sandbox.places import see
from ybs.security.sandbox.protected import NAMES
from ybs.security.sandbox.resident import KeptFolder
from ybs.security.sandbox.seatbelt import SandboxExec, find, git_profile, profile

OWN = ("/private/own",)


@pytest.fixture
def backend(project: Path, home: Path) -> SandboxExec:
    (project / "secret").mkdir()
    (home / ".pyenv").mkdir()
    return SandboxExec(see(Host.of({"HOME": str(home)}), project, blocked=["secret"]))


@pytest.fixture
def text(backend: SandboxExec) -> str:
    return profile(backend.places, OWN, shared="/private/shared", network=False)[0]


def test_everything_is_denied_that_is_not_allowed(text: str) -> None:
    assert text.startswith("(version 1)\n(deny default)\n")
    assert "(allow file-read*)" not in text
    assert "network" not in text
    for name in ("appleevents", "coreservicesd", "trustd", "no-sandbox", "lsopen"):
        assert name not in text


def test_parentheses_and_quotes_are_balanced(text: str) -> None:
    bare = re.sub(r'"[^"]*"', '""', text)
    assert bare.count("(") == bare.count(")")
    assert text.count('"') % 2 == 0


def test_no_path_of_the_person_stands_in_the_text(backend: SandboxExec, project: Path) -> None:
    text, parameters = profile(backend.places, OWN, shared="/private/shared", network=False)
    for path in (str(project), "/private/own", str(project / "secret"), backend.places.home):
        assert path not in text
    assert {str(project), "/private/own", str(project / "secret")} <= set(parameters.values())
    assert set(re.findall(r'param "(\w+)"', text)) == set(parameters)


@pytest.mark.integration
@every_row("name", [*NAMES, ".GIT", ".Ybs.json", ".VSCode"])
@every_row("below", ["", "/hooks/pre-commit"])
def test_protected_names_are_not_writable_in_any_spelling(text: str, name: str, below: str) -> None:
    assert any(re.fullmatch(p, f"/{name}{below}") for p in excepted(text))


@pytest.mark.integration
@pytest.mark.parametrize("path", ["/sub/.git", "/a/b/.GIT/config"])
def test_nested_repositories_are_not_writable(text: str, path: str) -> None:
    assert any(re.fullmatch(p, path) for p in excepted(text))


@pytest.mark.integration
@every_row("path", ["/.gitignore", "/src/app.py", "/git", "/.github/x", "/xgit", "/sub/.vscode/x", "/.ybsx"])  # fmt: skip
def test_everything_else_is_writable(text: str, path: str) -> None:
    assert not any(re.fullmatch(p, path) for p in excepted(text))


def excepted(text: str) -> list[str]:
    """Return the patterns of what may not be written, without the root before them."""
    found = re.findall(r'\(require-not \(regex \(string-append "\^" \(regex-quote \(param "ROOT_\d+"\)\) "(.*?)\$"\)\)\)', text)  # fmt: skip
    assert len(found) == 2
    return found


def test_letters_are_meant_in_both_cases_and_signs_once() -> None:
    assert seatbelt._any_case(".a-Z/1") == "[.][aA][-][ZZ][/][1]"


def test_the_root_itself_can_be_neither_moved_nor_removed(text: str) -> None:
    assert re.search(r'\(require-not \(literal \(param "ROOT_\d+"\)\)\)', text)


def test_what_is_hidden_is_denied_last(text: str) -> None:
    *_, last, read, written = text.rstrip().splitlines()
    assert last.startswith("(deny file-read* file-write* (subpath")
    # Behind it stand the session's own folders alone, which lie among the files of ybs.
    assert re.fullmatch(r'\(allow file-read\* \(subpath \(param "SHARED_\d+"\)\)\)', read)
    assert re.fullmatch(
        r'\(allow file-read\* file-write\* \(subpath \(param "OWN_\d+"\)\)\)', written
    )


def test_the_network_is_a_rule_of_its_own(backend: SandboxExec) -> None:
    text, _ = profile(backend.places, OWN, shared="/private/shared", network=True)
    assert "(allow network-outbound (remote ip))" in text


def test_a_launch_carries_profile_parameters_and_command(
    backend: SandboxExec, project: Path
) -> None:
    launch = backend.launch(("sh", "-c", "x"), project, {"OPENAI_API_KEY": "k"})
    assert launch.argv[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert launch.argv[-4:] == ("--", "sh", "-c", "x")
    assert launch.writable == backend.places.writable
    defined = [word for word in launch.argv if word.startswith("-D")]
    assert f"{project}" in [word.partition("=")[2] for word in defined]
    assert "OPENAI_API_KEY" not in launch.environ
    private = backend.private
    assert (launch.environ["HOME"], launch.environ["TMPDIR"]) == (private.home, private.temporary)
    for name in ("HOME", "TMPDIR"):
        assert Path(launch.environ[name]).stat().st_mode & 0o777 == 0o700
    assert launch.environ["PIP_RETRIES"] == "1"
    assert launch.scratch == private.path
    online = backend.launch(("x",), project, {}, Access(network=True))
    assert "PIP_RETRIES" not in online.environ
    assert "network-outbound" in online.argv[2]
    assert "network-outbound" not in launch.argv[2]


@every_row(
    ("given", "expected"),
    [
        ({}, []),
        ({"hidden": ("/w/key",)}, ["(deny file-read* HIDDEN)"]),
        ({"git_folders": ("/g",)}, ["(allow file-read* GIT)"]),
        ({"git_folders": ("/g",), "is_writing": True}, ["(allow file-read* file-write* GIT)"]),
        ({"is_writing": True}, []),
        ({"hidden": ("/w/key",), "git_folders": ("/g",)}, ["(deny file-read* HIDDEN)", "(allow file-read* GIT)"]),
    ],
)  # fmt: skip
def test_a_rule_without_a_path_would_be_one_for_all(given: dict[str, object], expected: list[str]):
    view = SandboxView(**{"folder": "/w", "git_folders": (), "shown": ("/w",), **given})
    text, _ = git_profile(view, ())
    plain = re.sub(r'\(subpath \(param "([A-Z]+)_\d+"\)\)', r"\1", text).splitlines()
    last = next(place for place, line in enumerate(plain) if line.startswith("(allow sysctl-read"))
    assert plain[last + 1 :] == expected


def test_a_command_outside_of_the_sandbox_is_refused(backend: SandboxExec, project: Path) -> None:
    with pytest.raises(Refused):
        backend.launch(("x",), project.parent, {})


def test_the_program_is_the_systems_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "sandbox-exec"
    monkeypatch.setattr(seatbelt, "PROGRAM", str(program))
    assert find() is None
    program.touch(mode=0o755)
    assert find() == str(program)


def test_read_only_leaves_no_rule_that_allows_writing_in_the_project(backend: SandboxExec) -> None:
    text, parameters = profile(
        backend.places, OWN, shared="/private/shared", network=False, read_only=True
    )
    assert "ROOT" not in " ".join(parameters)
    written = [line for line in text.splitlines() if "file-write* (subpath" in line]
    assert [re.findall(r'param "([A-Z]+)_', line)[0] for line in written] == ["HIDDEN", "OWN"]
    assert [parameters[name] for name in parameters if name.startswith("OWN")] == [*OWN]


def test_a_read_only_launch_has_a_place_of_its_own(backend: SandboxExec, project: Path) -> None:
    made = backend.launch(
        ("true",), project, {"PATH": f"{project}/bin:/usr/bin"}, Access(read_only=True)
    )
    assert made.environ["TMPDIR"] == made.environ["HOME"] == f"{made.scratch}/unshared"
    assert own_in(made) == [made.environ["HOME"]]


def test_a_program_that_is_alone_writes_in_folders_of_its_own_and_reads_what_commands_left(
    backend: SandboxExec, project: Path
) -> None:
    made = backend.launch(("true",), project, {}, Access(is_alone=True))
    again = backend.launch(("true",), project, {}, Access(is_alone=True, read_only=True))
    place = Path(made.environ["HOME"]).parent
    assert place.parent == Path(backend.private.path)
    assert own_in(made) == [made.environ["HOME"], made.environ["TMPDIR"]]
    assert not {*own_in(made)} & {*own_in(again), *own_in(backend.launch(("true",), project, {}))}
    assert made.scratch == backend.private.path
    assert f"={backend.private.temporary}" in next(
        word for word in made.argv if "SHARED" in word and word.startswith("-D")
    )


def test_the_home_that_stays_is_written_as_a_whole(project: Path, home: Path) -> None:
    kept = KeptFolder(home / "kept")
    made = SandboxExec(see(Host.of({"HOME": str(home)}), project), kept).launch(("x",), project, {})
    assert own_in(made) == [kept.path]


def own_in(launch: Launch) -> list[str]:
    """Return the folders that a launch may write in outside of the project."""
    return [word.partition("=")[2] for word in launch.argv if word.startswith("-DOWN_")]


def test_ybs_own_code_is_not_writable_and_no_folder_on_the_way_can_be_renamed(
    backend: SandboxExec, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"{project}/envs/one"
    monkeypatch.setattr(seatbelt, "code_in", lambda root: (code,) if root == str(project) else ())
    text, parameters = profile(backend.places, OWN, shared="/private/shared", network=False)
    names = {path: name for name, path in parameters.items()}
    denied = f'(deny file-write* (subpath (param "{names[code]}")))'
    assert text.index(denied) > text.index("(allow file-write* (require-all")
    unlink = next(line for line in text.splitlines() if line.startswith("(deny file-write-unlink"))
    assert names[f"{project}/envs"] in unlink


def test_what_the_persons_settings_name_is_not_writable(backend, project: Path, home: Path):
    (project / "hooks").mkdir()
    (home / ".gitconfig").write_text(f"[core]\nhooksPath = {project}/hooks\n")
    text, parameters = profile(backend.places, OWN, shared="/private/shared", network=False)
    names = {path: name for name, path in parameters.items()}
    denied = f'(deny file-write* (subpath (param "{names[f"{project}/hooks"]}")))'
    assert text.index(denied) > text.index("(allow file-write* (require-all")
