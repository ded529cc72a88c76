"""Files that come with a message: pictures to the model, others into the chat's folder, and nowhere else."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from chat_parts import OWNER, a_file
from hosts import this_host
from ybs.core.errors import ToolError
from ybs.frontends.gateway.channel import (
    ChannelError,
    ChatPlace,
    Incoming,
    IncomingFile,
    OutgoingFile,
)
from ybs.frontends.gateway.files import (
    MOST_BYTES,
    MOST_FILES,
    SendFile,
    prepared,
    safe_name,
    saved,
)
from ybs.security.paths.roots import Roots

pytestmark = pytest.mark.integration

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x02\x08\x02\x00\x00\x00\xfd\xd4\x9as"
    b"\x00\x00\x00\x00IEND\xaeB`\x82"
)


class Held:
    """A channel that has these files."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files, self.asked = files, list[int]()

    async def fetch(self, file: IncomingFile, most_bytes: int) -> bytes:
        """Return a file's content."""
        self.asked.append(most_bytes)
        data = self.files.get(file.ref)
        if data is None or len(data) > most_bytes:
            raise ChannelError("it is larger than\nis taken" if data else "it is gone")
        return data


def with_files(*names: str, text: str = "Look") -> Incoming:
    place = ChatPlace(channel="telegram", account="bot", kind="private", chat=OWNER)
    files = tuple(map(a_file, names))
    return Incoming(
        id="1",
        place=place,
        person=OWNER,
        name="Ada",
        at=0.0,
        text=text,
        files=files,
        message="77",
        is_own=True,
    )


async def test_a_picture_goes_to_the_model_and_not_to_the_disk(tmp_path: Path):
    words, images = await prepared(with_files("a.png"), Held({"a.png": PNG}), tmp_path)
    assert words == "Look"
    assert [(each.media_type, each.data) for each in images] == [("image/png", PNG)]
    assert not (tmp_path / "received").exists()


async def test_another_file_is_saved_and_named_in_the_words(tmp_path: Path):
    words, images = await prepared(with_files("notes.txt"), Held({"notes.txt": b"hello"}), tmp_path)
    assert (
        words
        == "Look\n\n[a file came with this message and is saved as received/77-notes.txt (5 bytes)]"
    )
    assert images == ()
    assert (tmp_path / "received" / "77-notes.txt").read_bytes() == b"hello"
    assert (tmp_path / "received" / "77-notes.txt").stat().st_mode & 0o777 == 0o600


async def test_a_turn_that_is_begun_again_saves_its_files_once(tmp_path: Path):
    for _ in range(2):
        words, _ = await prepared(with_files("a.txt", text=""), Held({"a.txt": b"x"}), tmp_path)
        assert "received/77-a.txt" in words
    assert len([*(tmp_path / "received").iterdir()]) == 1


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (PNG[:-8], ""),
        (b"\x89PNG\r\n\x1a\n" + b"x" * 100, ""),
        (PNG.replace(b"\0\0\0\x02" * 2, b"\0\1\0\0" * 2), ""),
    ],
)
async def test_a_picture_that_would_harm_is_a_file_like_any_other(
    tmp_path: Path, data: bytes, end: str
):
    """A damaged one, one that only begins so, and one of 65,536 pixels a side in 45 bytes."""
    words, images = await prepared(with_files("a.png"), Held({"a.png": data}), tmp_path)
    assert images == ()
    assert f"received/77-a.png{end}" in words


async def test_what_cannot_be_taken_is_named_and_the_rest_goes_on(tmp_path: Path):
    held = Held({"big": b"x" * (MOST_BYTES + 1), "small": b"y"})
    words, _ = await prepared(with_files("gone", "big", "small"), held, tmp_path)
    assert "a file gone could not be taken: it is gone" in words
    assert "a file big could not be taken: it is larger than is taken" in words
    assert "received/77-small (1 bytes)" in words


async def test_a_message_brings_so_many_files_and_bytes_and_no_more(tmp_path: Path):
    names = [f"{number}" for number in range(30)]
    held = Held(
        {name: bytes([int(name)]) * 19_000_000 for name in names[:4]}
        | dict.fromkeys(names[4:], b"x")
    )
    words, _ = await prepared(with_files(*names), held, tmp_path)
    assert len(held.asked) == MOST_FILES
    assert "20 more files were not taken: 10 at most" in words
    assert (
        "a file 2 could not be taken" in words
    )  # 19 and 19 of 50 million are gone, and 12 are left
    assert sum(each.stat().st_size for each in (tmp_path / "received").iterdir()) <= 50_000_000


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("../../.ssh/authorized_keys", "authorized_keys"),
        ("/etc/passwd", "passwd"),
        (".bashrc", "bashrc"),
        ("..", "file"),
        ("", "file"),
        ("a b\n]c\u202etxt.exe", "a-b-c-txt.exe"),
        ("x" * 300 + ".tar", "x" * 80 + ".tar"),
        ("a.b/", "file"),
        ("Übersicht 2.xlsx", "Übersicht-2.xlsx"),
        ("a\x00b", "a-b"),
    ],
)
def test_a_name_leads_nowhere_and_says_nothing_but_itself(name: str, safe: str):
    assert safe_name(name) == safe


def test_links_that_a_model_left_lead_no_file_elsewhere(tmp_path: Path):
    folder, outside = tmp_path / "chat", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "received").symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        saved(folder, "77-a.txt", b"x")
    (folder / "received").unlink()
    (folder / "received").mkdir()
    (folder / "received" / "77-a.txt").symlink_to(outside / "made")
    os.mkfifo(folder / "received" / "2-77-a.txt")
    assert saved(folder, "77-a.txt", b"x") == "received/3-77-a.txt"
    assert [*outside.iterdir()] == []


async def test_what_cannot_be_saved_is_said(tmp_path: Path):
    (tmp_path / "received").write_text("a file where the folder should be")
    words, _ = await prepared(with_files("a.txt"), Held({"a.txt": b"x"}), tmp_path)
    assert "a file a.txt could not be saved: Not a directory" in words


def test_names_that_are_all_taken_end_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ybs.frontends.gateway.files._MOST_OF_ONE_NAME", 3)
    assert [saved(tmp_path, "a", each) for each in (b"1", b"2")] == ["received/a", "received/2-a"]
    with pytest.raises(OSError, match="too many files called a"):
        saved(tmp_path, "a", b"3")


async def test_a_file_that_is_another_one_since_it_was_named_in_the_question_is_not_sent(
    project: Path,
):
    sent = list[OutgoingFile]()

    async def send(file: OutgoingFile, _digest: str) -> None:
        sent.append(file)

    for name in ("notes.txt", "plans.txt"):
        (project / name).write_text(name)
    (project / "link").symlink_to("notes.txt")
    tool = SendFile(lambda: Roots(this_host(), project), 1_000, send)
    for name in ("link", "notes.txt"):
        arguments = tool.arguments(path=name)
        tool.preview(arguments)
        if name == "link":
            (project / name).unlink()
            (project / name).symlink_to("plans.txt")
        else:
            (project / name).write_text("other words")
        with pytest.raises(ToolError, match="changed in the meantime; it was not sent"):
            await tool.run(arguments, print)
    assert sent == []
    tool.preview(arguments)
    await tool.run(arguments, print)
    assert [each.data for each in sent] == [b"other words"]
