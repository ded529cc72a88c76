"""What was drawn shortened is drawn whole on demand."""

from pathlib import Path

import pytest
from paper import Page, changed, ran, started

from rows import every_row
from ybs.core.events import AssistantSaid, ThinkingStreamed, ToolPrinted
from ybs.frontends.terminal.drawing.folds import MOST_CHARACTERS, MOST_FOLDS, Folds, KeptText

LINES = "\n".join(f"line {number}" for number in range(30))
OUTPUT = {"stdout": LINES, "stderr": "", "exit_code": 0}


def unfolded(page: Page) -> str:
    page.pieces.clear()
    assert page.renderer.unfold()
    return page.text


def test_nothing_shortened_is_nothing_to_show() -> None:
    page = Page()
    assert not page.renderer.unfold()
    page.draw(ThinkingStreamed(text="short"), AssistantSaid(content="x"))
    page.draw(started(command="ls"), ran(display={"stdout": "one\n", "exit_code": 0}))
    assert not page.renderer.unfold()
    assert page.text == "  thought: short\n\n  x\n\n• shell     ls\n    one\n"


def test_thinking_and_output_are_drawn_whole_the_newest_first() -> None:
    page = Page()
    page.draw(ThinkingStreamed(text="First this.\n\n" + "Then that. " * 20))
    page.draw(AssistantSaid(content="x"), started(command="seq"), ran(display=OUTPUT))
    assert unfolded(page) == "\n  shell seq\n    " + LINES.replace("\n", "\n    ") + "\n"
    thought = unfolded(page)
    assert thought.startswith("\n  thought\n  First this.\n\n  Then that. Then")
    assert thought.count("Then that.") == 20
    assert not page.renderer.unfold()


def test_something_new_starts_again_at_the_newest() -> None:
    page = Page()
    page.draw(started(command="a"), ran(display=OUTPUT), started(command="b"), ran(display=OUTPUT))
    assert unfolded(page).startswith("\n  shell b\n")
    page.draw(started(command="c"), ran(display=OUTPUT))
    assert [unfolded(page).split("\n")[1] for _ in range(3)] == [
        "  shell c",
        "  shell b",
        "  shell a",
    ]


def test_a_long_diff_is_drawn_without_its_middle_and_whole_afterwards() -> None:
    page = Page()
    change = changed("old\n", "".join(f"new {n}\n" for n in range(90)))
    page.draw(started("edit_file", path="a"), ran("edit_file", changes=(change,)))
    lines = page.text.split("\n")
    assert len(lines) == 1 + 40 + 2
    assert "    … 51 lines   ctrl-o shows all" in lines
    assert "    90 +new 89" in lines
    assert "ctrl-o" in page.text
    whole = unfolded(page)
    assert whole.startswith("\n  edit a\n     1 -old\n     1 +new 0\n")
    assert whole.count("+new") == 90


def test_a_long_message_of_a_tool_that_failed_is_drawn_whole() -> None:
    page = Page(width=80)
    failed = ran("read_file", success=False)
    failed = type(failed)(
        **{name: getattr(failed, name) for name in failed.__struct_fields__ if name != "output"},
        output="\n".join(f"reason {n}" for n in range(20)),
    )
    page.draw(started("read_file", path="a"), failed)
    assert page.text.count("reason") == 6
    assert unfolded(page).count("reason") == 20


def test_a_line_that_was_cut_is_drawn_whole_and_the_file_with_everything_is_named() -> None:
    page = Page()
    display = {"stdout": "x" * 200, "exit_code": 0, "output_file": "/missing/out.txt"}
    page.draw(started(command="cat a"), ran(display=display))
    whole = unfolded(page)
    assert whole.count("x") == 200 + len("txt") - 2
    assert "(all of it: /missing/out.txt)" in whole


def test_a_command_that_hands_over_nothing_is_drawn_as_far_as_it_was_seen() -> None:
    page = Page()
    page.draw(started(command="make"), ToolPrinted(id="1", text=LINES), ran())
    assert unfolded(page).count("line") == 30


def test_the_verbose_view_draws_everything_at_once() -> None:
    page = Page(is_verbose=True)
    page.draw(ThinkingStreamed(text="Then that. " * 20), AssistantSaid(content="x"))
    page.draw(started(command="seq"), ran(display=OUTPUT))
    assert page.text.count("Then that.") == 20
    assert page.text.count("line") == 30
    assert not page.renderer.unfold()


def test_the_verbose_view_draws_what_is_otherwise_not_drawn_at_all() -> None:
    page = Page(is_verbose=True)
    given = {"path": "a.py", "offset": 3}
    result = {"success": True}
    page.draw(started("read_file", **given), ran("read_file", output=LINES, display=result))
    page.draw(started("list_files", path="."), ran("list_files", output="a.py", display=result))
    page.draw(started("search_files", pattern="x"), ran("search_files", output="", display=result))
    first, second, third = page.text.split("• ")[1:]
    assert first.split("\n")[1] == '    {"path":"a.py","offset":3}'
    assert first.count("\n    line ") == 30
    assert second.split("\n")[1:] == ["    a.py", ""]  # its one argument stands in the line itself
    assert third.startswith("search")
    page.renderer.unfold()
    assert page.text.count("line 29") == 1
    shortened = Page()
    shortened.draw(started("read_file", **given), ran("read_file", output=LINES, display=result))
    assert "line 29" not in shortened.text


def test_the_verbose_view_shows_a_change_once() -> None:
    page = Page(is_verbose=True)
    given = {"path": "a", "old_text": "old", "new_text": "new"}
    page.draw(started("edit_file", **given), ran("edit_file", changes=(changed(),)))
    assert "old_text" not in page.text
    assert page.text.count("+new") == 1


def test_the_view_decides_about_streaming_at_the_beginning_of_an_answer() -> None:
    page = Page()
    page.view.streams = False
    page.draw(AssistantSaid(content="one"))
    assert page.text == "  one\n"


def test_hostile_output_is_drawn_safe() -> None:
    page = Page()
    page.draw(started(command="x"), ran(display={"stdout": "\x1b[2J\x07\n" * 30, "exit_code": 0}))
    assert "\x1b[2J" not in unfolded(page)


@every_row("size", [1, 7, 5_000, 1_000_000])
def test_what_is_kept_is_bounded_and_says_what_is_not(size: int) -> None:
    kept = KeptText(10_000)
    text = "".join(f"{number:07}" for number in range(5_000))
    for start in range(0, len(text), size):
        kept.add(text[start : start + size])
    assert kept.text.startswith(text[:5_000])
    assert kept.text.endswith(text[-5_000:])
    left_out = int(kept.text.partition("… ")[2].split()[0])
    assert len(kept.text) - len(f"\n… {left_out} characters are not kept …\n") == 35_000 - left_out
    assert len(kept.text) < 10_100


def test_the_oldest_folds_are_forgotten() -> None:
    folds = Folds()
    for number in range(MOST_FOLDS + 5):
        folds.add(str(number), "x" * (MOST_CHARACTERS * 2))
    titles: list[str] = []
    while fold := folds.next():
        titles.append(fold.title)
        assert len(fold.text) < MOST_CHARACTERS + 100
    assert len(titles) == MOST_FOLDS
    assert titles[0] == str(MOST_FOLDS + 4)


@every_row(("room", "rows"), [(53, 1), (54, 2)])
def test_a_line_drawn_whole_takes_all_columns_but_the_last(room: int, rows: int) -> None:
    page = Page(width=60)
    lines = "\n".join([*(["x"] * 20), "y" * room])
    page.draw(started(command="seq"), ran(display={"stdout": lines, "exit_code": 0}))
    drawn = [line for line in unfolded(page).split("\n") if "y" in line]
    assert len(drawn) == rows
    assert max(map(len, drawn)) == 57


def test_a_diff_that_is_drawn_whole_leaves_nothing_to_unfold() -> None:
    page = Page()
    page.draw(started("edit_file", path="a"), ran("edit_file", changes=(changed(),)))
    assert "+new" in page.text
    assert "ctrl-o" not in page.text
    assert not page.renderer.unfold()


def test_of_a_very_long_output_the_end_comes_first_and_all_of_it_at_the_next_press() -> None:
    page = Page()
    lines = "\n".join(f"line {number}" for number in range(2_000))
    page.draw(started("read_file", path="b"), ran("read_file", output=LINES))
    page.draw(started(command="seq"), ran(display={"stdout": lines, "stderr": "", "exit_code": 0}))
    end = unfolded(page)
    assert "  … 1500 lines before these   ctrl-o again shows all" in end
    assert "line 1499\n" not in end
    whole = unfolded(page)
    assert "    line 0\n" in whole
    assert whole.count("line ") == 2_000
    assert "line 29" in unfolded(page)  # then what was drawn before it


def test_what_has_come_since_is_shown_before_the_rest_of_an_older_output() -> None:
    page = Page()
    lines = "\n".join(f"line {number}" for number in range(2_000))
    page.draw(started(command="seq"), ran(display={"stdout": lines, "stderr": "", "exit_code": 0}))
    assert "again shows all" in unfolded(page)
    page.draw(started("read_file", path="b"), ran("read_file", output=LINES))
    newest = unfolded(page)
    assert "line 29" in newest
    assert "line 1999" not in newest


@pytest.mark.integration
def test_an_output_that_was_cut_for_the_model_is_drawn_from_its_file(tmp_path: Path) -> None:
    page, file = Page(), tmp_path / "out.txt"
    file.write_bytes(b"\x1b[2Jfirst \xff\n" + b"".join(b"line %d\n" % n for n in range(3000)))
    cut = {"stdout": "line 1\n[cut]\nline 2999", "exit_code": 0, "output_file": str(file)}
    page.draw(started(command="seq"), ran(display={**cut, "stdout": LINES}))
    newest = unfolded(page)
    assert "2501 lines before these   ctrl-o again shows all" in newest
    assert "line 2999" in newest
    assert "line 2000\n" not in newest
    everything = unfolded(page)
    assert everything.count("\n    line ") == 3000
    assert "first" in everything
    assert "\x1b[2J" not in "".join(page.pieces)
    page.draw(started(command="seq"), ran(display={**cut, "stdout": LINES}))
    file.unlink()
    assert f"(all of it: {file})" in "".join(line.strip() for line in unfolded(page).split("\n"))


def test_a_command_that_wrote_nothing_is_not_in_the_way_of_one_that_did() -> None:
    page = Page()
    silent = ran(
        display={"stdout": "", "stderr": "", "exit_code": 0}, output="[exit code 0, 0.0 s]"
    )
    page.draw(started(command="seq"), ran(display=OUTPUT), started(command="touch a"), silent)
    assert unfolded(page).startswith("\n  shell seq\n")


def test_how_a_server_is_reached_stands_whole_below_its_line() -> None:
    page = Page(width=80)
    hint = "port 8123 is reached from outside only after /ports 8123"
    shown = {"id": "job-1", "running": True, "exit_code": None, "stdout": "", "hint": hint}
    begun = ran(display=shown, summary=f"job-1 running for 0:01; {hint}")
    page.draw(started(command="python3 -m http.server 8123"), begun)
    assert page.text == (
        "• shell     python3 -m http.server 8123   job-1 running for 0:01\n"
        "    Port 8123 is reached from outside only after /ports 8123\n"
    )
