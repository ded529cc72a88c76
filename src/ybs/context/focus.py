"""Focus: what the work in this project is about now, in `.ybs/FOCUS.md`. The file is the person's."""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ybs.context import document_text as texts
from ybs.context.document_places import read_in_project, top_of
from ybs.core.errors import YbsError

if TYPE_CHECKING:
    from ybs.security.paths.opening import OpenEntry

FOCUS_FILE = ".ybs/FOCUS.md"
LONGEST_FOCUS = 1_000  # characters
_RULES = "# Written with the focus, and removed with it\n/FOCUS.md\n/.gitignore\n"


def read_focus(folder: Path) -> str:
    """Return the project's focus as it can be shown; an empty text where there is none. It blocks."""
    folder = folder.resolve()
    beginning = read_in_project(folder / FOCUS_FILE, top_of(folder))
    return (
        texts.tidied(texts.without_hidden_characters(texts.decoded(beginning.data)))
        if beginning
        else ""
    )


def write_focus(folder: Path, text: str) -> None:
    """Put the text in the place of the focus before it, in one step. Raises YbsError. It blocks."""
    if len(text) > LONGEST_FOCUS:
        raise YbsError(
            f"That is {len(text):,} characters; a focus has at most {LONGEST_FOCUS:,}. "
            "Longer rules belong in AGENTS.md."
        )
    data = f"{text.strip()}\n".encode("utf-8", "replace")
    with _place(folder, makes=True) as place:
        _keep_untracked(folder.resolve() / FOCUS_FILE)
        with place.replaced_by(f".FOCUS.md.{os.urandom(6).hex()}") as fresh:
            handle = fresh.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with open(handle, "wb") as file:  # noqa: PTH123 - opened by descriptor
                file.write(data)


def clear_focus(folder: Path) -> bool:
    """Remove the focus; return whether there was one. Raises YbsError. It blocks."""
    try:
        with _place(folder, makes=False) as place:
            place.unlink()
    except FileNotFoundError:
        return False
    rules = (folder.resolve() / FOCUS_FILE).with_name(".gitignore")
    with suppress(OSError):  # whatever else is in the folder stays
        if rules.read_text(encoding="utf-8") == _RULES:
            rules.unlink()
        rules.parent.rmdir()
    return True


def _keep_untracked(file: Path) -> None:
    """Have git pass over the focus, which is one person's; rules that are there are somebody's own."""
    with suppress(OSError), file.with_name(".gitignore").open("x", encoding="utf-8") as rules:
        rules.write(_RULES)  # "x" follows no link


@contextmanager
def _place(folder: Path, *, makes: bool) -> "Generator[OpenEntry]":
    """Hold `.ybs` open; a link in its place is not followed. Raises YbsError, FileNotFoundError where it may be missing."""
    from ybs.security.paths.opening import held  # rarely needed

    file = folder.resolve() / FOCUS_FILE
    if file.parent.is_symlink():
        raise YbsError(
            f"{file.parent.name} is a link, and {FOCUS_FILE} is not written through one."
        )
    try:
        with held(file, make_folders=makes) as place:
            status = place.status()
            if status is not None and not stat.S_ISREG(status.st_mode):
                raise YbsError(
                    f"{FOCUS_FILE} is a link or not a regular file; nothing was changed. Move it away."
                )
            yield place
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not makes:
            raise
        raise YbsError(f"{FOCUS_FILE} cannot be written: {error.strerror or error}.") from error
