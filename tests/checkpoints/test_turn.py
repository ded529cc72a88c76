"""What a turn changed, told from two snapshots and from what tools name."""

from pathlib import Path

from hosts import this_host
from rows import every_row
from ybs.checkpoints.keeping import Segment, TurnSegments
from ybs.checkpoints.scan import Snapshot
from ybs.checkpoints.states import Change, State, digest_of
from ybs.security.paths.roots import Roots


def _file(text: str) -> State:
    return State(kind="file", mode=0o644, size=len(text), digest=digest_of(text.encode()))


def test_what_git_ignored_before_or_ignores_now_is_ignored_but_for_what_a_tool_named(project):
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


@every_row("is_given_up", [False, True])
def test_what_changes_after_the_turn_did_is_somebody_elses_unless_a_command_ran_unseen(
    project: Path, is_given_up: bool
):
    roots, top = Roots(this_host(), project), f"{project}/"
    closed = State(kind="other", mark="errno 13")
    for name in ("mine", "same", "settled", "read"):
        (project / name).write_text("2")
    (project / "mine").write_text("3")
    left = {"mine": _file("2"), "same": _file("2"), "settled": _file("9"), "read": closed}
    turn = TurnSegments(is_given_up=is_given_up)
    turn.changes = {
        top + name: Change(path=top + name, before=_file("1"), after=after)
        for name, after in left.items()
    }
    turn.compare(roots, digest_of, settled={f"{top}settled"})
    seen = {"mine": _file("3" if is_given_up else "2"), "read": _file("2")}
    assert turn.outcome == [
        Change(path=top + name, before=_file("1"), after=(left | seen)[name])
        for name in sorted(left)
    ]
    assert turn.shared == (set() if is_given_up else {f"{top}mine"})


@every_row(
    "earlier, later, is_fresh, expected, is_shared",
    [
        (None, ("1", "2"), False, ("1", "2", False), False),
        (None, ("1", "2"), True, ("1", "2", False), True),
        (("1", "2"), ("2", "3"), True, ("1", "3", False), False),
        (("1", "2"), ("9", "3"), False, ("1", "3", True), True),
        (("1", "1"), ("9", "3"), False, ("9", "3", False), True),  # nothing of the turn is in it
        (("1", "1"), ("1", "3"), False, ("1", "3", False), False),
    ],
)
def test_changes_of_a_path_are_joined_and_what_came_between_them_is_known(
    project: Path,
    earlier: tuple[str, str] | None,
    later: tuple[str, str],
    is_fresh: bool,
    expected: tuple[str, str, bool],
    is_shared: bool,
):
    roots, path = Roots(this_host(), project), f"{project}/a"
    turn = TurnSegments(fresh={path} if is_fresh else set())
    if earlier:
        one, two = map(_file, earlier)
        turn.changes[path] = Change(path=path, before=one, after=two)
    turn.segment = Segment(touched={path: _file(later[0])})
    (project / "a").write_text(later[1])
    assert turn.join(roots, None, digest_of) == {path}
    change = Change(
        path=path, before=_file(expected[0]), after=_file(expected[1]), is_broken=expected[2]
    )
    assert (turn.changes, turn.shared) == ({path: change}, {path} if is_shared else set())


def test_a_note_of_a_running_turn_has_what_tools_named_and_says_whether_there_is_more():
    one, two, three = map(_file, "123")
    turn = TurnSegments(named={"done", "again", "broken", "open", "new", "unchanged"})
    turn.changes = {
        name: Change(path=name, before=one, after=two)
        for name in ("done", "again", "broken", "by a command")
    }
    turn.segment = Segment(touched={"again": two, "broken": three, "open": one})
    expected = [
        Change(path="again", before=one, after=two),
        Change(path="broken", before=one, after=three, is_broken=True),
        Change(path="done", before=one, after=two),
        Change(path="open", before=one, after=one),
    ]
    assert (turn.noted(), turn.open, turn.has_more) == (expected, {"again", "broken", "open"}, True)
    del turn.changes["by a command"]
    assert not turn.has_more
    turn.changes["back"] = Change(path="back", before=one, after=one)
    assert not turn.has_more
    for more in (
        TurnSegments(is_given_up=True),
        TurnSegments(segment=Segment(snapshot=Snapshot())),
    ):
        assert more.has_more


NEVER = 2**63  # no file is as new


@every_row(
    "name, since_ns, is_shared",
    [("file", 0, True), ("link", 0, True), ("file", NEVER, False), ("link", NEVER, False)],
)
def test_what_somebody_saved_in_the_turn_before_a_tool_changed_it_is_shared(
    project: Path, name: str, since_ns: int, is_shared: bool
):
    roots, path = Roots(this_host(), project), project / name
    if name == "link":
        path.symlink_to("mine")
    else:
        path.write_text("mine")
    turn = TurnSegments(since_ns=since_ns)
    turn.touch(roots, str(path), digest_of)
    path.unlink()
    assert turn.join(roots, None, digest_of) == {str(path)}
    assert turn.shared == ({str(path)} if is_shared else set())


@every_row(
    "name, turn",
    [
        ("folder", TurnSegments(since_ns=0)),
        ("new/x", TurnSegments(since_ns=0)),
        ("file/x", TurnSegments(since_ns=0)),  # there is a new file where a folder would have to be
        ("file", TurnSegments(since_ns=0, is_given_up=True)),
        ("file", TurnSegments(since_ns=0, segment=Segment(snapshot=Snapshot()))),
    ],
)
def test_a_path_is_not_fresh_without_a_file_or_where_a_command_may_have_made_it(
    project: Path, name: str, turn: TurnSegments
):
    (project / "folder").mkdir(exist_ok=True)
    (project / "file").write_text("1")
    turn.touch(Roots(this_host(), project), f"{project}/{name}", digest_of)
    assert turn.fresh == set()
    assert f"{project}/{name}" in turn.named


@every_row("ignored", ["", "1", "2", "12"])
def test_what_a_turn_changed_twice_is_ignored_only_where_it_was_both_times(project, ignored):
    roots, path = Roots(this_host(), project), f"{project}/a"
    looks = [Snapshot() for _ in "1234"]
    for look, text in zip(looks, "1223", strict=True):
        look.folders.append(str(project))
        look.known = {path: (None, _file(text))}
    turn = TurnSegments()
    for number, before, now in (("1", *looks[:2]), ("2", *looks[2:])):
        before.ignored = {path} if number in ignored else set()
        turn.begin(before)
        turn.join(roots, now, digest_of)
    (change,) = turn.outcome
    assert (change.before, change.after) == (_file("1"), _file("3"))
    assert change.is_ignored == (ignored == "12")
