"""Where an undo may write, whatever a checkpoint that somebody edited names."""

from pathlib import Path

from hosts import this_host
from rows import every_row
from ybs.checkpoints.planning import is_ours
from ybs.security.paths.roots import Roots


@every_row(
    "path, expected",
    [
        ("a.txt", True),
        ("gone/below/a.txt", True),
        ("link/a.txt", True),  # the link may be gone when it is done, which looks again
        ("", False),
        ("../a.txt", False),
        ("src/../a.txt", False),
        ("link/../a.txt", False),
        (".git/hooks/pre-commit", False),
        ("link/.git/hooks/pre-commit", False),
        ("link/GIT~1/config", False),
    ],
)
def test_an_undo_writes_in_the_project_and_in_no_repository(
    project: Path, path: str, expected: bool
) -> None:
    (project / "src").mkdir(exist_ok=True)
    if not (project / "link").is_symlink():
        (project / "link").symlink_to(project.parent)
    assert is_ours(Roots(this_host(), project), f"{project}/{path}".rstrip("/")) is expected
