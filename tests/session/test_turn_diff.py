"""The changes of a turn as a person reads them."""

import pytest

from ybs.checkpoints.states import ABSENT, Change, State, digest_of
from ybs.session import undoing
from ybs.session.undoing import diff_of_turn, line_of

KEPT: dict[str, bytes] = {}


def _file(content: bytes, mode: int = 0o644) -> State:
    KEPT[digest_of(content)] = content
    return State(kind="file", mode=mode, size=len(content), digest=digest_of(content))


def _link(target: str) -> State:
    return State(kind="link", target=target)


FOLDER = State(kind="folder", mode=0o755)
ROWS = (
    (ABSENT, _file(b"a\n"), "created p", "--- /dev/null\n+++ p\n@@ -0,0 +1 @@\n+a"),
    (_file(b"a\n"), ABSENT, "deleted p", "--- p\n+++ /dev/null\n@@ -1 +0,0 @@\n-a"),
    (_file(b"a\n"), _file(b"b\n"), "edited p", "--- p\n+++ p\n@@ -1 +1 @@\n-a\n+b"),
    (
        _file(b"a\n"),
        _file(b"b\n", 0o755),
        "edited p (644 to 755)",
        "edited p (644 to 755)\n--- p\n+++ p\n@@ -1 +1 @@\n-a\n+b",
    ),
    (ABSENT, _file(b""), "created p", "created p"),
    (_file(b"a"), _file(b"a", 0o600), "changed the mode of p (644 to 600)", ""),
    (_link("a"), _link("b\\x1b"), "edited p (a link to b\\x1b)", ""),
    (FOLDER, ABSENT, "deleted p/", ""),
    (_file(b"a"), _link("b"), "replaced p (a link to b)", ""),
    (_file(b"\0"), _file(b"\0\1"), "edited p", "Binary file p: 1 -> 2 bytes"),
    (
        _file(b"a"),
        State(kind="file", mode=0o644, size=9, mark="9"),
        "edited p",
        "edited p (not kept)",
    ),
    (_file(b"a" * 1_000_001), _file(b"b"), "edited p", "edited p (1,000,001 to 1 bytes)"),
    (
        _file(b"a"),
        State(kind="file", mode=0o644, size=1, digest="0"),
        "edited p",
        "edited p (its saved copy is missing)",
    ),
)


def test_each_change_has_its_line_and_its_lines():
    wrong: list[str] = []
    for before, after, line, lines in ROWS:
        change = Change(path="p", before=before, after=after)
        said, diff = line_of(change), diff_of_turn([change], KEPT.get)
        if said != line or not diff.startswith(lines or line):
            wrong.append(f"{said!r}, {diff!r}; wanted {line!r}, {lines!r}")
    assert not wrong


def test_what_is_too_long_to_be_read_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(undoing, "MOST_CHARS", 10)
    changes = [Change(path=name, after=_file(b"a\n")) for name in "pq"]
    assert diff_of_turn(changes, KEPT.get).endswith("+a\ncreated q")
