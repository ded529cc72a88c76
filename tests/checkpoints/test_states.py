"""What stands at a path, looked at while somebody writes there."""

from pathlib import Path

from hosts import this_host
from ybs.checkpoints.states import digest_of, state_at, state_of
from ybs.security.paths.roots import Roots


def test_a_file_that_grew_since_its_size_was_asked_for_is_read_whole(project: Path):
    file, roots = project / "a", Roots(this_host(), project)
    file.write_text("ab")
    with roots.held(file) as place:
        status = place.status()
        assert status is not None
        file.write_text("abcdefgh")
        assert state_of(place, status, digest_of) == state_at(roots, str(file))
