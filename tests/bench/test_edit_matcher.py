"""The bench of the edit tool: real changes are found, told wrong in ways with one meaning, and judged strictly."""

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from edit_matcher import main, missed
from edits.cases import SLIPS, Case, is_ambiguous, repaired
from edits.draft import Draft, draft_of
from edits.judging import Outcome, judge, total_of, verdict_of
from edits.language import masks
from edits.making import CLASSES, REFUSED, make_cases
from edits.mining import Edit, edit_of, mine
from edits.slips import indentation, tabs, trailing_space
from edits.subjects import Exact, Similar, Ybs
from edits.tellings import escapes, extra_newline, first_indentation, line_numbers
from edits.traps import TRAPS

from rows import every_row

BEFORE = """\
import os


def first(path):
    # Open the given file and read all of it.
    with open(path) as file:
        text = file.read()

        count = 1
        return text, count


def second(path):
    return os.stat(path).st_size
"""
AFTER = BEFORE.replace("count = 1", 'count = len(text)\n        print("read")')


def edit(before: str = BEFORE, after: str = AFTER, path: str = "a.py") -> Edit:
    found = edit_of("c0ffee", path, before.encode(), after.encode())
    assert found is not None
    return found


def draft(context: int = 1, *, is_ended: bool = True, **texts: str) -> Draft:
    found = draft_of(edit(**texts), FixedRandom(context), 1, context)
    assert found is not None
    found.has_final_newline = is_ended
    return found


class FixedRandom(Random):
    """Takes the first of everything, and one number wherever it fits."""

    def __init__(self, number: int = 1, share: float = 0.0) -> None:
        super().__init__(0)
        self.number, self.share = number, share

    def randint(self, a: int, b: int) -> int:
        return min(max(self.number, a), b)

    def random(self) -> float:
        return self.share

    def choice(self, seq: Any) -> Any:
        return seq[0]

    def sample(self, population: Any, k: int, **_: Any) -> Any:
        return list(population)[:k]


def commit(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "x"], check=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    commit(folder, a=BEFORE, b="short\n", c=BEFORE)
    commit(folder, a=AFTER, b="brief\n", c=BEFORE.replace("os", "sys"))
    return folder


@pytest.mark.integration
def test_the_miner_takes_changes_of_one_hunk_and_of_the_right_size(repository: Path):
    found = mine([repository], 10, 1)
    assert [(one.path, one.start, [(op.kind, op.text) for op in one.ops]) for one in found] == [
        (
            "a",
            8,
            [
                ("cut", "        count = 1"),
                ("add", "        count = len(text)"),
                ("add", '        print("read")'),
            ],
        )
    ]
    assert "\n".join(found[0].before) == BEFORE
    assert "\n".join(found[0].after) == AFTER


@every_row(
    ("before", "after"),
    [
        (BEFORE, BEFORE),
        (BEFORE, BEFORE + "last"),
        (BEFORE.replace("\n", "\r\n"), AFTER),
        (BEFORE.replace("\n", "\r\n", 1), AFTER.replace("\n", "\r\n", 1)),
        (BEFORE + "\0\n", AFTER + "\0\n"),
        (BEFORE, BEFORE + "more\n" * 41),
        (BEFORE + "x" * 2000 + "\n", AFTER + "x" * 2000 + "\n"),
    ],
)
def test_what_is_no_plain_hunk_is_left_out(before: str, after: str):
    assert edit_of("", "a", before.encode(), after.encode()) is None


def test_line_ends_and_mark_of_a_file_are_kept_apart_from_its_lines():
    found = edit("\ufeff" + BEFORE.replace("\n", "\r\n"), "\ufeff" + AFTER.replace("\n", "\r\n"))
    assert (found.line_end, found.mark, found.before[0]) == ("\r\n", "\ufeff", "import os")


def test_a_draft_takes_context_until_it_is_unique():
    text = BEFORE.replace("import os", "        count = 1")
    found = draft_of(
        edit(text, text.replace("1\n        return", "2\n        return")), FixedRandom(0)
    )
    assert found is not None
    assert found.old == "\n        count = 1\n        return text, count\n"


OLD = "\n        count = 1\n        return text, count\n"
NEW = '\n        count = len(text)\n        print("read")\n        return text, count\n'


@every_row(
    ("slip", "random", "old", "new"),
    [
        (trailing_space, FixedRandom(1), OLD.replace("= 1", "= 1 "), NEW),
        (
            indentation,
            FixedRandom(1),
            OLD.replace("        ", " " * 12),
            NEW.replace("        ", " " * 12),
        ),
        (tabs, FixedRandom(1), OLD.replace("    ", "\t"), NEW.replace("    ", "\t")),
        (
            line_numbers,
            FixedRandom(1, 0.9),
            "8\t\n9\t        count = 1\n10\t        return text, count\n",
            NEW,
        ),
        (
            line_numbers,
            FixedRandom(1, 0.1),
            "8\t\n9\t        count = 1\n10\t        return text, count\n",
            '8\t\n9\t        count = len(text)\n10\t        print("read")\n11\t        return text, count\n',
        ),
        (
            escapes,
            FixedRandom(1),
            OLD.replace("\n", "\\n"),
            NEW.replace("\n", "\\n").replace('"', '\\"'),
        ),
    ],
)
def test_a_slip_tells_both_texts_wrong_in_the_same_way(slip, random, old, new):
    told = draft(1)
    assert slip(told, random)
    assert (told.old, told.new) == (old, new)
    assert told.after == AFTER


def test_an_extra_newline_is_told_only_where_no_blank_line_is_near():
    told = draft(
        0, before=BEFORE, after=BEFORE.replace("        count = 1\n", "        count = 2\n")
    )
    assert extra_newline(told, FixedRandom(1, 0.9)) is False
    assert extra_newline(told, FixedRandom(1, 0.6))
    assert told.old == "        count = 1\n\n"
    assert told.new == "        count = 2\n"


def test_the_first_indentation_is_lost_in_both_texts():
    told = draft(0)
    assert first_indentation(told, FixedRandom(1, 0.9))
    assert told.old == "count = 1\n"
    assert told.new == 'count = len(text)\n        print("read")\n'


def test_an_edit_of_nothing_but_what_slips_change_is_ambiguous():
    assert is_ambiguous(draft(1, before=BEFORE, after=BEFORE.replace("count = 1", "count = 1 ")))
    assert is_ambiguous(
        draft(1, before=BEFORE, after=BEFORE.replace("\n\n        c", "\n        c"))
    )
    assert not is_ambiguous(draft(1))


def test_masks_tell_code_from_comments_and_strings():
    assert masks(["x = 'a'  # b", '"""', "doc", '"""', "y"], "a.py"[1:]) == [
        "cccc" + "sss" + "cc" + "###",
        "sss",
        "sss",
        "sss",
        "c",
    ]


@pytest.mark.integration
@every_row("name", [*SLIPS, "two at once"])
def test_a_repairable_case_is_not_there_exactly(name: str):
    text = BEFORE.replace(
        "return text, count",
        "# Return both this text and what was counted\n        return text, count",
    )
    one = edit(text, text.replace("count = 1", "count = len(text)"))
    cases = [case for seed in range(40) if (case := repaired(name, one, Random(seed)))]
    assert cases
    for case in cases:
        assert case.after is not None
        after = case.after.decode().removeprefix("\ufeff").replace("\r\n", "\n")
        assert after == "\n".join(one.after)
        is_there = case.old in case.before.decode()
        assert is_there == (name == "exact") or name in ("first indentation", "two at once")


@pytest.mark.integration
@every_row("name", TRAPS)
def test_a_trap_is_one(name: str):
    cases = [case for seed in range(40) if (case := TRAPS[name](edit(), Random(seed)))]
    assert cases
    for case in cases:
        count = case.before.decode().count(case.old)
        assert case.after is None
        assert case.name == name
        if name == "twice":
            assert count == 2
        elif name in ("placeholder", "changed since read"):
            assert count == 1
        elif name == "no change":
            assert count == (case.old == case.new and case.old in BEFORE)
        else:
            assert count == 0


class Careless:
    """An edit tool that claims success whatever it is asked."""

    name = "ybs"

    def __init__(self, file: bytes | None = None, *, is_error: bool = False) -> None:
        self.file, self.is_error = file, is_error

    def edit(self, case: Case) -> Outcome:
        return Outcome(self.is_error, "", self.file or case.before, 0.001)


CASE = Case("exact", "", "a", b"a\n", b"b\n", "a", "b")
TRAP = Case("twice", "", "a", b"a\na\n", None, "a", "b")


@every_row(
    ("case", "file", "is_error", "verdict"),
    [
        (CASE, b"b\n", False, "right"),
        (CASE, b"b\r\n", False, "wrong"),
        (CASE, b"a\n", False, "wrong"),
        (CASE, b"a\n", True, "refused"),
        (CASE, b"b\n", True, "wrong"),
        (TRAP, b"a\na\n", True, "refused"),
        (TRAP, b"a\na\n", False, "wrong"),
        (TRAP, b"b\na\n", False, "wrong"),
    ],
)
def test_the_judge_compares_every_byte(case: Case, file: bytes, is_error: bool, verdict: str):
    assert verdict_of(case, Outcome(is_error, "", file, 0.0)) == verdict


def test_a_careless_tool_misses_the_targets():
    total = total_of(judge(Careless(), [CASE, TRAP]))
    assert (total.right, total.wrong_traps, total.wrong) == (0, 1, 100)
    assert len(missed(total)) == 3
    total = total_of(judge(Careless(b"b\n"), [CASE]))
    assert (total.right, missed(total)) == (100, [])


def test_the_simple_matchers_do_what_their_names_say(tmp_path: Path):
    near = Case("trailing space", "", "a", b"one two\n", b"one 2\n", "one  two", "one 2")
    verdicts = [judge(one, [CASE, TRAP, near]) for one in (Exact(), Similar())]
    assert [[one.verdict for one in judged] for judged in verdicts] == [
        ["right", "refused", "refused"],
        ["right", "wrong", "right"],
    ]


@pytest.mark.integration
def test_ybs_is_judged_on_a_real_file(tmp_path: Path):
    changed = Case("changed since read", "", "a", b"a\n", None, "a", "b", disturbed=b"a\nc\n")
    judged = judge(Ybs(tmp_path), [CASE, TRAP, changed])
    assert [one.verdict for one in judged] == ["right", "refused", "refused"]
    assert "changed on disk" in judged[2].outcome.text
    assert all(one.outcome.seconds > 0 for one in judged)
    assert not list(tmp_path.iterdir())


@pytest.mark.integration
def test_cases_are_the_same_for_the_same_seed():
    edits = [edit()] * 3
    assert make_cases(edits, 60, 1) == make_cases(edits, 60, 1)
    assert make_cases(edits, 60, 1) != make_cases(edits, 60, 2)


@pytest.mark.integration
def test_the_command_reports_every_class_and_fails_when_a_target_is_missed(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("edit_matcher.Ybs", lambda folder: Careless())
    command = ["edit_matcher", str(repository), "--edits", "30", "--format", "json"]
    monkeypatch.setattr("sys.argv", command)
    assert main() == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ybs"]["right"] == 0
    assert found["exact"]["classes"]["exact"] == {"right": 1, "refused": 0, "wrong": 0}
    assert set(found["ybs"]["classes"]) <= set(CLASSES)
    assert set(found["ybs"]["classes"]) & set(REFUSED)
