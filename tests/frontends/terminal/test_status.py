"""The start line and the bottom line."""

from msgspec.structs import replace

from ybs.config.host import Host
from ybs.core.messages import Usage
from ybs.frontends.terminal.signs import ASCII, UNICODE, Paint
from ybs.frontends.terminal.status import MODE_STYLES, start_line, toolbar
from ybs.frontends.terminal.words import cells
from ybs.session.status import Status

STATE = Status(
    provider="ollama",
    model="qwen3:14b",
    mode="ask",
    sandbox="no sandbox",
    folder="/srv/shop",
    branch="main",
    window=100,
    context_tokens=3,
    usage=Usage(input_tokens=1000, output_tokens=200),
)
HOST = Host.of({"HOME": "/srv/ada"})
PLAIN = Paint(has_colour=False)


def bare(text: str) -> str:
    return text.replace("\x1b[1m", "").replace("\x1b[22m", "").replace("\x1b[2m", "")


def test_the_start_line_says_what_is_known() -> None:
    line = bare(start_line("0.1", STATE, HOST, 80, PLAIN, UNICODE))
    assert line.startswith("ybs 0.1  ollama qwen3:14b · ask · no sandbox ")
    assert line.endswith(" /srv/shop  main")
    assert cells(line) == 80


def test_the_start_line_shortens_the_home_folder_of_its_own_session() -> None:
    state = replace(STATE, folder="/srv/ada/shop")
    line = bare(start_line("0.1", state, HOST, 80, PLAIN, UNICODE))
    assert line.endswith(" ~/shop  main")


def test_the_start_line_takes_two_lines_where_one_is_too_short() -> None:
    lines = bare(start_line("0.1", STATE, HOST, 50, PLAIN, ASCII)).split("\n")
    assert lines == ["ybs 0.1  ollama qwen3:14b | ask | no sandbox", "/srv/shop  main"]


def bar(state: Status, width: int, hint: str = "") -> str:
    return "".join(text for _, text in toolbar(state, width, UNICODE, hint))


def style_of(word: str, state: Status) -> str:
    return next(style for style, text in toolbar(state, 80, UNICODE) if text == word)


def test_no_line_is_wider_than_the_terminal() -> None:
    for width in (4, 10, 20, 30, 40, 60, 80, 200):
        for line in start_line("0.1", STATE, HOST, width, PLAIN, UNICODE).split("\n"):
            assert cells(line) <= width
        for state in (STATE, replace(STATE, incognito=True, model="a-model-with-a-long-name:70b")):
            assert cells(bar(state, width)) <= width
        assert cells(bar(STATE, width, "a hint that is rather long for this")) <= width


def test_the_bottom_line_says_as_much_as_there_is_room_for() -> None:
    assert bar(STATE, 30) == " qwen3:14b  ask  ctx 3%"
    assert bar(STATE, 36) == " qwen3:14b  ask  no sandbox  ctx 3%"
    line = bar(STATE, 80)
    assert line.startswith(" ollama qwen3:14b  ask  no sandbox  ctx 3%  1.2k tok ")
    assert line.endswith(" main")
    assert cells(line) == 80


def test_cost_and_jobs_are_said_when_there_are_some() -> None:
    dear = Usage(input_tokens=1000, output_tokens=200, cost_usd=0.01234)
    busy = replace(STATE, usage=dear, jobs=2)
    line = bar(busy, 80)
    assert line.startswith(" ollama qwen3:14b  ask  no sandbox  ctx 3%  1.2k tok  $0.0123  2 jobs ")
    assert "  1 job  " in bar(replace(STATE, jobs=1), 80)
    assert "$" not in bar(replace(STATE, usage=Usage(cost_usd=0.0)), 80)


def test_a_missing_sandbox_outlives_what_matters_less_and_is_a_warning() -> None:
    dear = replace(STATE, usage=Usage(input_tokens=9, cost_usd=0.5), jobs=2)
    for width in range(36, 90):
        assert "no sandbox" in bar(dear, width)
    assert "yellow" in style_of("no sandbox", dear)
    assert style_of("sandbox", replace(STATE, sandbox="sandbox")) == ""


def test_a_long_name_of_a_model_is_cut_before_mode_and_context_go() -> None:
    state = replace(STATE, model="mistral-small-3.2-24b-instruct-2506", mode="accept-edits")
    assert bar(state, 39) == " mistral-small-3…  accept-edits  ctx 3%"
    assert "accept-edits  ctx 3%" in bar(state, 36)
    longest = replace(STATE, model="organisation/a-model-with-a-very-long-name-indeed-" * 3)
    for incognito in (False, True):
        for width in (40, 60, 80):
            line = bar(replace(longest, incognito=incognito), width - 1)
            assert cells(line) <= width - 1
            assert "…  ask  no sandbox  ctx 3%" in line or (width == 40 and incognito)
            assert "…  ask  " in line
            assert line.rstrip().endswith("ctx 3%") or line.endswith("main")
    few = replace(STATE, model="a-model-with-a-name-of-40-columns-exactly")
    assert bar(few, 79).startswith(
        " a-model-with-a-name-of-40-columns-exactly  ask  no sandbox  ctx 3%"
    )


def test_modes_are_told_apart_at_a_glance() -> None:
    styles = {mode: style_of(mode, replace(STATE, mode=mode)) for mode in (*MODE_STYLES, "ask")}
    assert styles["ask"] == ""
    assert len(set(styles.values())) == 4
    assert "yellow" in styles["bypass"]


def test_a_hint_takes_the_bottom_line() -> None:
    assert bar(STATE, 80, "press Ctrl-C again to leave ybs") == " press Ctrl-C again to leave ybs"


def test_incognito_stands_first_in_both_lines() -> None:
    state = replace(STATE, incognito=True)
    assert bar(state, 80).startswith(" incognito  ollama qwen3:14b  ask  no sandbox  ctx 3%")
    line = bare(start_line("0.1", state, HOST, 90, PLAIN, UNICODE))
    assert line.startswith("ybs 0.1  incognito · ollama qwen3:14b · ask · no sandbox ")


def test_incognito_is_the_last_that_a_narrow_bottom_line_gives_up() -> None:
    for width in (11, 20, 30):
        assert bar(replace(STATE, incognito=True), width).startswith(" incognito")
