"""What a turn changed, told from two snapshots and from what tools name."""

from pathlib import Path

from hosts import this_host
from ybs.checkpoints.scan import Snapshot
from ybs.checkpoints.states import Change, State, digest_of
from ybs.checkpoints.turn import Segment
from ybs.security.paths.roots import Roots


def _file(text: str) -> State:
    return State(kind="file", mode=0o644, size=len(text), digest=digest_of(text.encode()))


def test_what_git_ignored_before_or_ignores_now_is_ignored_but_for_what_a_tool_named(
    project: Path,
):
    roots, top = Roots(this_host(), project), str(project)
    before, now = Snapshot(), Snapshot()
    for snapshot, text, ignored in ((before, "1", "ac"), (now, "2", "bc")):
        snapshot.folders.append(top)
        snapshot.known = {f"{top}/{name}": (None, _file(text)) for name in "abcd"}
        snapshot.ignored = {f"{top}/{name}" for name in ignored}
    (project / "c").write_text("2")
    segment = Segment(touched={f"{top}/c": _file("1")}, snapshot=before)
    assert segment.changes(roots, now, digest_of) == [
        Change(path=f"{top}/{name}", before=_file("1"), after=_file("2"), is_ignored=name in "ab")
        for name in "abcd"
    ]
    assert segment.changes(roots, None, digest_of) == [
        Change(path=f"{top}/c", before=_file("1"), after=_file("2"))
    ]
