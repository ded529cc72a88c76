import os
import sys
from pathlib import Path

import pytest

from rows import every_row
from ybs.repo_map import reading
from ybs.repo_map.reading import LARGEST_BYTES, Tree, is_plain, is_secret


@pytest.fixture
def tree(project: Path) -> Tree:
    return Tree(project)


def test_a_file_is_read_as_utf8(tree: Tree, project: Path) -> None:
    (project / "a.py").write_bytes("größe = 1".encode("utf-16"))
    (project / "b.py").write_bytes(b"\xef\xbb\xbfx = 1")
    assert tree.read("a.py").decode() == "größe = 1"
    assert tree.read("b.py") == b"x = 1"


def test_what_is_no_regular_file_of_the_project_is_not_opened(tree: Tree, project: Path) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("private")
    (project / "link.py").symlink_to(outside / "a.py")
    (project / "folder").symlink_to(outside)
    (project / "deep").mkdir()
    (project / "deep" / "loop").symlink_to(project)
    (project / "a.py").write_text("x = 1")
    os.mkfifo(project / "pipe.py")
    (project / "made.py").mkdir()
    (project / "zero.py").symlink_to("/dev/zero")
    asked = ("link.py", "folder/a.py", "deep/loop/a.py", "pipe.py", "made.py", "zero.py")
    opened = [path for path in (*asked, "gone.py", "a\0.py", "a" * 300 + ".py") if tree.read(path)]
    assert opened == []
    assert tree.read("a.py") == b"x = 1"


def test_a_folder_that_becomes_a_link_is_noticed_at_the_next_refresh(tree, project):
    (project / "src").mkdir()
    (project / "src" / "a.py").write_text("x")
    assert tree.read("src/a.py")
    (project / "src").rename(project / "old")
    (project / "src").symlink_to(project / "old")
    tree.forget()
    assert not tree.read("src/a.py")


def test_large_files_binaries_and_minified_ones_are_not_read(tree: Tree, project: Path) -> None:
    files = {
        "large.py": b"x = 1\n" * (LARGEST_BYTES // 6 + 1),
        "binary.py": b"\x7fELF\0\0\0",
        "minified.js": b"a=b;" * 20_000,
        "picture.png": b"words",
        "package-lock.json": b"{}",
        ".env": b"TOKEN=1",
    }
    for name, data in files.items():
        (project / name).write_bytes(data)
    assert [name for name in files if tree.read(name)] == []


def test_a_file_that_grows_while_it_is_read_is_read_to_its_end_but_not_for_ever(
    tree: Tree, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project / "log.py"
    path.write_bytes(b"x\n" * 10)
    read, more = os.read, [b"y\n" * 10, b""]

    def grow(handle: int, count: int) -> bytes:
        del count
        return read(handle, 20) or (more.pop(0) if more else b"")

    monkeypatch.setattr(reading.os, "read", grow)
    assert tree.read("log.py") == b"x\n" * 10 + b"y\n" * 10
    monkeypatch.setattr(reading.os, "read", lambda handle, count: b"x\n" * min(count, 20_000))
    assert tree.read("log.py") == b""


@every_row(
    "name",
    [
        *(".env", ".env.local", "prod.env", ".envrc", "id_rsa", "ID_RSA", "id_ed25519.pub"),
        *("a.pem", "server.key", "x.p12", ".netrc", ".npmrc", ".pypirc", ".htpasswd"),
        *("credentials.json", "terraform.tfstate", "prod.tfvars", "secrets.yml", "kubeconfig"),
        *("credentials.toml", "terraform.tfstate.backup", "a.auto.tfvars.json", "AuthKey.p8"),
        *(".vault-token", ".git-credentials", ".my.cnf", "service-account-prod.json"),
        *("client_secret_1.json", ".bash_history", ".psql_history"),
        *(".ssh/config", ".kube/config", ".docker/config.json", ".aws/deep/x"),
    ],
)
def test_files_that_hold_keys_are_known_by_their_names(name: str) -> None:
    assert is_secret(f"deploy/{name}")


@every_row("name", ["environment.py", "keys.py", "secrets.py", "env.ts", "credentials_test.rb"])
def test_source_that_is_about_keys_is_no_secret(name: str) -> None:
    assert not is_secret(f"src/{name}")


@every_row("path", ["", "/etc/passwd", "../a.py", "a/../../b.py", "a\0b", ".."])
def test_paths_that_lead_outside_are_refused(path: str) -> None:
    assert not is_plain(path)


@every_row("path", ["a.py", "a/b..c.py", "a\nb.py", "-rf", "a\udcff.py", "..."])
def test_strange_names_are_fine(path: str) -> None:
    assert is_plain(path)


def test_times_and_inodes_fit_into_a_store(tree: Tree, project: Path) -> None:
    (project / "a.py").write_text("x")
    os.utime(project / "a.py", ns=(0, -5_000_000_000))
    looks = tree.look("a.py")
    assert looks
    assert 0 <= looks.mtime_ns < 1 << 63
    assert tree.look("gone.py") is None
    assert tree.look("a\0.py") is None
    assert tree.look(".") is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells where an open file is")
def test_a_folder_that_becomes_a_link_before_its_file_is_opened_leads_nowhere(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (project / "src", tmp_path / "outside"):
        folder.mkdir()
        (folder / "a.py").write_text(folder.name)
    tree, opened = Tree(project), os.open
    assert tree.read("src/a.py") == b"src"

    def swap(path: str, flags: int) -> int:
        (project / "src").rename(project / "old")
        (project / "src").symlink_to(tmp_path / "outside")
        return opened(path, flags)

    monkeypatch.setattr(reading.os, "open", swap)
    assert tree.read("src/a.py") == b""
