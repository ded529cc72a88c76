"""Identity: lines that the model adds about itself."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from ybs.config.private_file import PrivateLog
from ybs.context.documents import read_documents
from ybs.context.identity import LONGEST_LINE, MOST_BYTES, Identity
from ybs.core.errors import Refused, ToolError


def identity(**options: Any) -> Identity:
    given: dict[str, Any] = {"mask": str, "may_write": True, "today": lambda: date(2026, 11, 22)}
    return Identity(this_host().config_folder, **{**given, **options})


def refusal(text: str, **options: Any) -> str:
    """What `append` and `draft` say; nothing may have been written."""
    one = identity(**options)
    before = one.path.read_bytes() if one.path.is_file() else None
    with pytest.raises(ToolError) as raised:
        one.append(text)
    with pytest.raises(ToolError):
        one.draft(text)
    assert (one.path.read_bytes() if one.path.is_file() else None) == before
    return str(raised.value)


def test_each_line_is_dated_legible_and_private(project: Path):
    one = identity()
    assert one.draft("I like\n short\t answers.\u202e\x1b[31m") == "I like short answers."
    assert not one.path.exists()
    assert one.append("I like\n short\t answers.\u202e\x1b[31m") == "I like short answers."
    one.append("I test first.")
    assert (
        one.path.read_text() == "- 2026-11-22: I like short answers.\n- 2026-11-22: I test first.\n"
    )
    assert one.path.stat().st_mode & 0o777 == 0o600
    (section,) = read_documents(this_host(), project)
    assert section.name == "IDENTITY.md"
    assert "I test first." in section.text


def test_a_line_of_the_persons_without_an_end_stays_one_line():
    one = identity()
    one.path.parent.mkdir(parents=True)
    one.path.write_text("# Me\nNamed by the person")
    one.append("I test first.")
    assert one.path.read_text() == "# Me\nNamed by the person\n- 2026-11-22: I test first.\n"


def test_what_is_there_already_is_not_added_twice():
    identity().append("I test first.")
    later = {"today": lambda: date(2027, 1, 1)}
    assert "says that already" in refusal("i  TEST first.", **later)
    path = identity().path
    path.write_text("Named: by the person\n")
    assert "says that already" in refusal("named: by the person")


def test_secrets_are_masked_before_anything_is_written():
    def mask(text: str) -> str:
        return text.replace("sk-1234", "[ybs:secret:KEY#1]")

    one = identity(mask=mask)
    assert one.draft("my key is sk-1234") == "my key is [ybs:secret:KEY#1]"
    one.append("my key is sk-1234")
    assert "sk-1234" not in one.path.read_text()


def test_nothing_is_written_in_incognito():
    with pytest.raises(Refused, match="an incognito session saves nothing"):
        identity(may_write=False).append("I test first.")
    assert not identity().path.parent.exists()


def test_what_is_empty_too_long_or_has_no_room_is_refused_in_words_that_help():
    assert "empty" in refusal(" \n\u200b")
    assert "one sentence" in refusal("x" * (LONGEST_LINE + 1))
    path = identity().path
    path.parent.mkdir(parents=True)
    path.write_text("y" * (MOST_BYTES - 20))
    said = refusal("I test first.")
    assert "is full" in said
    assert f"delete lines of {path}" in said


def test_a_file_that_is_not_the_persons_alone_is_left_as_it_is(tmp_path: Path):
    path = identity().path
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "target")
    assert "is a symbolic link" in refusal("I test first.")
    assert not (tmp_path / "target").exists()
    path.unlink()
    path.write_text("x\n")
    path.chmod(0o666)
    assert "can be written by others" in refusal("I test first.")
    path.chmod(0o600)
    with PrivateLog(path), pytest.raises(ToolError, match="in use by another ybs"):
        identity().append("I test first.")
    assert path.read_text() == "x\n"
