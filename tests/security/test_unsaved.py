"""What an editor holds unsaved: it is read in the place of a file, and changes nothing of the file or of what may be read."""

import os
from pathlib import Path

import pytest

from hosts import host_at
from ybs.core.errors import Refused
from ybs.security.paths.roots import Roots
from ybs.tools.reading.files import open_regular, read_if_there, write_atomically


@pytest.fixture(params=[True, False])
def roots(
    request: pytest.FixtureRequest, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Roots:
    """Return roots of the project, on a system with files in memory and on one without."""
    if not request.param:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    return Roots(host_at(home), project)


def test_it_is_read_in_the_place_of_the_file_and_the_file_stays(roots: Roots):
    path = roots.folder / "a"
    path.write_text("saved")
    roots.unsaved[path] = b"typed" * 100_000
    with roots.held(path) as place:
        assert read_if_there(place, "a")[0] == b"typed" * 100_000
        with roots.held(roots.folder / "b") as other:
            assert read_if_there(other, "b") == (None, None)
    assert path.read_text() == "saved"


def test_a_file_that_is_not_there_yet_can_be_read(roots: Roots):
    path = roots.folder / "new"
    roots.unsaved[path] = b"typed"
    with roots.held(path) as place:
        data, status = read_if_there(place, "new")
    assert (data, status.st_size if status else 0) == (b"typed", 5)
    assert not path.exists()


def test_what_is_written_is_the_file(roots: Roots):
    path = roots.folder / "a"
    path.write_text("saved")
    path.chmod(0o640)
    roots.unsaved[path] = b"typed"
    del roots.unsaved[path]
    with roots.held(path) as place:
        write_atomically(place, b"written", "a")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("written", 0o640)


def test_what_may_not_be_read_is_not_read_that_way(roots: Roots, home: Path):
    secret = home / ".ssh" / "id_rsa"
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("key")
    roots.unsaved[secret] = b"typed"
    with pytest.raises(Refused):
        roots.resolve(str(secret))


def test_no_descriptor_stays_open(roots: Roots):
    path = roots.folder / "a"
    roots.unsaved[path] = b"typed"
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(5):
        with roots.held(path) as place:
            place.status()
            os.close(open_regular(place, "a")[0])
    assert len([*Path("/proc/self/fd").iterdir()]) == before
