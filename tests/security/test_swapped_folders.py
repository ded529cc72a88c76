"""Whatever of ybs reads or writes below a folder by itself: somebody exchanges folders with links meanwhile, without end."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

from hosts import host_at, this_host
from security.test_cases_path_races import swapped
from session.test_undoing import Play
from ybs.context.detect import detect
from ybs.context.documents import read_documents
from ybs.context.memory_file import read_memories
from ybs.core.errors import Refused, ToolError
from ybs.repo_map.reading import Tree
from ybs.security.paths.roots import Roots
from ybs.session.attachments import AttachmentFinder, picture
from ybs.session.mentions import named_in
from ybs.tools.searching import engine
from ybs.tools.searching.choice import GlobChoice
from ybs.tools.searching.walk import Deadline, Walk

pytestmark = pytest.mark.integration

SECRET = "TheSecretOfTheHome"
SECONDS = [0.1, pytest.param(1.5, marks=pytest.mark.slow)]
#: Names that the readers look for. All have the secret outside, and none has it in the project.
NAMES = ("AGENTS.md", "Makefile", "package.json", ".editorconfig", "code.py", "note.md")


@pytest.fixture
def folder(project: Path, tmp_path: Path) -> Path:
    """A folder of the project, beside a link to one that lies outside and has files of the same names."""
    inside, outside = project / "sub", tmp_path / "outside"
    for each, text in ((inside, "harmless"), (outside, SECRET)):
        each.mkdir()
        for name in NAMES:
            (each / name).write_text(f"{text}:\ntest: {text}\n[*]\nindent_style = {text}\n")
        (each / f"{text}.txt").write_text("")
    (project / "link").symlink_to(outside)
    return inside


def walked(folder: Path) -> Iterable[object]:
    yield Walk(Roots(this_host(), folder.parent), folder).paths()
    yield Walk(Roots(this_host(), folder.parent), folder.parent).paths()


def searched(folder: Path) -> Iterable[object]:
    roots = Roots(this_host(), folder.parent)
    scope = engine.Scope(start=folder.parent, choice=GlobChoice("**"), most=50)
    pattern = engine.options_of("TheSecret.*")
    found = engine.find(pattern, scope, roots, Deadline(5))
    # Where a line matches is content too: an answer for each question.
    yield SECRET if found.total or found.places else ""
    with suppress(ToolError):  # it is not there at this moment
        found = engine.find_in_file(pattern, folder / "note.md", 5, roots, Deadline(5))
        yield SECRET if found.total or found.places else ""


def documents(folder: Path) -> Iterable[object]:
    yield [section.text for section in read_documents(host_at(folder), folder, top=folder.parent)]


def memories(folder: Path) -> Iterable[object]:
    with suppress(OSError, Refused):
        yield list(read_memories(folder, ["note.md"], "project"))


def mapped(folder: Path) -> Iterable[object]:
    yield Tree(folder.parent).read("sub/code.py")


def detected(folder: Path) -> Iterable[object]:
    yield detect(folder.parent)


def attached(folder: Path) -> Iterable[object]:
    finder = AttachmentFinder(Roots(this_host(), folder.parent))
    for target in finder.targets(named_in("look at @sub/code.py and @sub")):
        if not target.is_folder:
            try:
                yield picture(Roots(this_host(), folder.parent), target.path)
            except ToolError as error:  # words for the person, which are looked at as well
                yield str(error)


READERS = {
    "walk": walked,
    "search": searched,
    "documents": documents,
    "memories": memories,
    "map": mapped,
    "detection": detected,
    "attachments": attached,
}


@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize("reader", READERS)
def test_no_reader_is_led_outside(folder: Path, reader: str, seconds: float) -> None:
    _race(folder, READERS[reader], seconds)


def _race(folder: Path, read: Callable[[Path], Iterable[object]], seconds: float) -> None:
    until, rounds = monotonic() + seconds, 0
    with swapped(folder, folder.parent / "link"):
        while monotonic() < until or not rounds:
            said = repr(list(read(folder)))
            assert SECRET not in said
            rounds += 1


@pytest.mark.parametrize("seconds", SECONDS)
async def test_undo_redo_and_what_is_kept_stay_inside(folder, tmp_path, seconds):
    outside = tmp_path / "outside"
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    play = Play(folder.parent)

    def change() -> None:
        (folder / "code.py").write_text("changed\n")
        (folder / "new").write_text("new\n")
        (folder / "Makefile").unlink()

    name = await play.name(change)
    until, done = monotonic() + seconds, 0
    with swapped(folder, folder.parent / "link"):
        while monotonic() < until or not done:
            done += (await play.checkpoints.undo([name])).is_done
            await play.checkpoints.redo([name], force=True)
            await play.turn(lambda: None)
            with suppress(ToolError):
                await play.turn(lambda: None, "sub/code.py")
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before
    kept = [path for path in this_host().state_folder.rglob("*") if path.is_file()]
    assert kept
    assert not any(SECRET.encode() in path.read_bytes() for path in kept)
