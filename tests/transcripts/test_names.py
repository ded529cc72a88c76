"""What people call a session, and that no name leads out of the folder."""

from functools import partial
from pathlib import Path

import pytest

from rows import every_row
from saving import files_in, save
from ybs.commands.advice import told
from ybs.core.errors import YbsError
from ybs.transcripts.store import SessionStore


@every_row(
    "word, name",
    [
        ("session-20260118-143022", "session-20260118-143022"),
        (" session-20260118-143022.jsonl ", "session-20260118-143022"),
        ("20260118-143022", "session-20260118-143022"),
        ("20260118-14", "session-20260118-143022"),
        ("important", "important-bugfix"),
        ("Fix the LOGIN", "session-20260119-000000"),
        ("fix the login of", "important-bugfix"),
        ("1", "important-bugfix"),
        ("3", "session-20260118-143022"),
    ],
)
def test_a_session_is_found_by_what_people_call_it(tmp_path: Path, word: str, name: str):
    store = SessionStore(tmp_path / "found")
    if not store.folder.exists():
        save(store, "session-20260118-143022", age_days=3)
        save(store, "session-20260119-000000", title="Fix the login", age_days=2)
        save(store, "important-bugfix", title="Fix the login of the shop", age_days=1)
    assert store.find(word).name == name


@every_row(
    "word, message",
    [
        ("4", "there is no session number 4; the list has 3"),
        ("0", "there is no session number 0; the list has 3"),
        ("loginn", r"similar names: login"),
        ("zzz", "no session 'zzz'\nList them: /sessions"),
        ("", "no session ''"),
        ("2026", "there is no session number 2026"),
        ("202601", "2 sessions match '202601': session-20260119-0, session-20260118-0"),
        ("../login", "no session"),
        ("/etc/passwd", "no session"),
    ],
)
def test_what_is_not_found_is_said_with_the_nearest(tmp_path: Path, word: str, message: str):
    store = SessionStore(tmp_path / "lost")
    if not store.folder.exists():
        for number, name in enumerate(("login", "session-20260119-0", "session-20260118-0")):
            save(store, name, age_days=number)
    with pytest.raises(YbsError) as caught:
        store.find(word)
    assert message in told(caught.value)


@every_row(
    "name",
    ["../x", "a/b", "/etc/passwd", "..", ".", "", " ", ".hidden", "-rf", "a\0b", "a\nb", "a\x1b[2J",
     "a\u202eb", "x" * 201, "ä" * 101, "a\ud800", ".jsonl"],
)  # fmt: skip
def test_a_name_never_leads_out_of_the_folder(tmp_path: Path, name: str):
    store = SessionStore(tmp_path / "sessions")
    if not store.folder.exists():
        save(store, "real")
        (tmp_path / "x.jsonl").write_text("outside")
    copy = partial(store.copy, "real")
    for work in (store.read, store.open_log, store.delete, copy):
        with pytest.raises(YbsError, match="cannot be the name of a session"):
            work(name)
    assert (tmp_path / "x.jsonl").read_text() == "outside"
    assert files_in(store.folder) == ["real.jsonl"]
