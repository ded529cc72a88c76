"""What a sandboxed program may not change although it lies in the project."""

import os
from pathlib import Path
from socket import AF_UNIX, socket
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest

from hosts import this_host
from rows import every_row
from ybs.security.paths.folder_index import FolderIndex
from ybs.security.sandbox import protected as protected_module
from ybs.security.sandbox.places import host_secrets
from ybs.security.sandbox.protected import NAMES, protected


def test_names_that_exist_are_protected_and_missing_ones_are_left_alone(project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".ybs.json").write_text("{}")
    (project / ".envrc").symlink_to("gone")
    before = sorted(project.iterdir())
    assert protected(this_host(), str(project)) == [
        f"{project}/{n}" for n in (".envrc", ".ybs.json", ".git")
    ]
    assert sorted(project.iterdir()) == before


def test_nested_repositories_are_found_wherever_they_are(project: Path) -> None:
    places = ("a", "b/c", "node_modules/x", ".venv/y", "target/z", "vendor/v", "1/2/3/4/5/6")
    for place in places:
        (project / place / ".git").mkdir(parents=True)
    (project / "way").symlink_to(project / "a")
    assert protected(this_host(), str(project)) == sorted(
        f"{project}/{place}/.git" for place in places
    )


def test_names_with_a_slash_are_held_at_the_top_alone(project: Path) -> None:
    for place in (".cargo/config.toml", "sub/.cargo/config.toml", "sub/.envrc", ".config/mise/a"):
        (project / place).parent.mkdir(parents=True, exist_ok=True)
        (project / place).write_text("x")
    assert protected(this_host(), str(project)) == [
        f"{project}/.cargo/config.toml",
        f"{project}/.config/mise",
    ]


def test_what_programs_rewrite_in_ordinary_work_and_documents_are_not_held(project: Path) -> None:
    for place in (".github/workflows/ci.yml", "AGENTS.md", ".prettierrc", ".circleci/config.yml"):
        (project / place).parent.mkdir(parents=True, exist_ok=True)
        (project / place).write_text("x")
    assert protected(this_host(), str(project)) == []


def test_for_very_many_the_folder_around_them_stands(project, monkeypatch):
    monkeypatch.setattr(protected_module, "MOST_HELD", 3)
    for place in ("few/a", "few/b", "many/a", "many/b", "many/c", "many/in/d"):
        (project / place / ".git").mkdir(parents=True)
    found = protected(this_host(), str(project))
    assert found == [f"{project}/few/a/.git", f"{project}/few/b/.git", f"{project}/many"]


def test_of_a_project_that_is_too_large_what_was_not_looked_at_is_held(project, monkeypatch):
    (project / "src").mkdir()
    index = FolderIndex(str(project), look_seconds=0)
    monkeypatch.setattr(protected_module, "index_of", lambda _: index)
    assert protected(this_host(), str(project)) == [str(project)]


@every_row(
    ("most", "paths", "expected"),
    [
        (3, "a/b/1 a/b/2 a/b/3 a/c x", "a/b a/c x"),
        (1, "a/b/1 a/b/2 a/b/3 a/c x", ""),
        (5, "a/b/1 a/b/2 a/b/3 a/c x", "a/b/1 a/b/2 a/b/3 a/c x"),
        (3, "a/b/1 a/b/2 a/c/1 a/c/2 x", "a x"),  # one folder rather than two
        (3, "a/1 a/2 a/3 b/1 b/2 b/3", "a b"),  # only the root would do alone
        (5, "a/1 a/2 a/3 b/1 b/2 b/3 c/d/1 c/d/2 c/d/3", "a b/1 b/2 b/3 c/d"),
        (3, "a/1 a/2 a/3 b/1 b/2 b/3 c/d/1 c/d/2 c/d/3", "a b c/d"),
        (3, "a/1 b/1 c/d/1 c/d/2 e", ""),
        (2, "1 2 3", ""),
        (9, "a a/b a/b/c ab", "a ab"),  # what lies in one of them is held with it
    ],
)
def test_the_deepest_folder_that_suffices_stands_for_what_is_in_it(most, paths, expected):
    found = protected_module._folded([f"/r/{path}" for path in paths.split()], "/r", most)
    assert found == ([f"/r/{path}" for path in expected.split()] or ["/r"])


@pytest.mark.integration
def test_very_many_are_folded_at_once() -> None:
    paths = [f"/r/{number}/{name}/.git" for number in range(10_000) for name in "ab"]
    assert protected_module._folded(paths, "/r", 500) == ["/r"]


@every_row(("count", "is_folded"), [(500, False), (501, True)])
def test_five_hundred_are_held_one_by_one(project, monkeypatch, count, is_folded):
    paths = [f"{project}/{number:03}/.git" for number in range(count)]
    found = SimpleNamespace(held=[], repositories=paths, unseen=[])
    monkeypatch.setattr(protected_module, "index_of", lambda _: SimpleNamespace(look=lambda: found))
    assert protected(this_host(), str(project)) == ([str(project)] if is_folded else paths)


def test_a_link_is_held_with_each_link_on_its_way_and_its_end(
    project: Path, tmp_path: Path
) -> None:
    (project / "conf/real").mkdir(parents=True)
    (project / "conf/real/envrc").write_text("x")
    (project / "conf/way").symlink_to("real")
    (project / ".envrc").symlink_to("conf/way/envrc")
    (project / ".npmrc").symlink_to(tmp_path / "npmrc")
    (project / ".codex").symlink_to(".")
    (project / ".git").symlink_to("gone")
    names = (".codex", ".envrc", ".npmrc", "conf/real/envrc", "conf/way", ".git")
    assert protected(this_host(), str(project)) == [f"{project}/{name}" for name in names]


def test_a_folder_that_cannot_be_listed_is_passed_over(tmp_path: Path) -> None:
    assert protected(this_host(), str(tmp_path / "gone")) == []


def test_secrets_of_the_system_are_those_this_person_could_read(monkeypatch):
    monkeypatch.setattr(os, "listdir", lambda _: ["ssh_host_rsa_key", "ssh_host_rsa_key.pub", "x"])
    monkeypatch.setattr(os, "access", lambda path, _: "ssh" in path or path == "/etc/shadow")
    assert host_secrets() == ["/etc/shadow", "/etc/ssh/ssh_host_rsa_key"]


def test_a_system_without_ssh_has_no_keys_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> list[str]:
        raise PermissionError

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(os, "access", lambda *_: True)
    assert not any("ssh_host" in path for path in host_secrets())


def test_the_names_are_those_of_the_table() -> None:
    assert {".git", ".hg", ".envrc", ".cargo/config.toml", ".husky"} <= {*NAMES}
    assert not {".github/workflows", "agents.md", ".prettierrc"} & {*NAMES}


def test_where_the_system_lists_no_sockets_none_is_known(project, monkeypatch):
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(project)
        server.bind("listening")
        assert protected_module.outer_sockets(str(project)) == [f"{project}/listening"]

        def refused(*_: object, **__: object) -> str:
            raise OSError

        monkeypatch.setattr(Path, "read_text", refused)
        assert protected_module.outer_sockets(str(project)) == [
            f"{project}/listening"
        ]  # by its number
        monkeypatch.setattr(socket, "AF_NETLINK", -1)
        assert protected_module.outer_sockets(str(project)) == []
        assert protected_module.machine_sockets([str(project)]) == []


def test_a_socket_whose_file_has_gone_is_none_to_hide() -> None:
    with TemporaryDirectory(prefix="ybs-") as name, socket(AF_UNIX) as server:
        path = os.path.realpath(name) + "/s"
        server.bind(path)
        assert protected_module.machine_sockets([name]) == [path]
        Path(path).unlink()
        assert protected_module.machine_sockets([name]) == []
