"""Golden screens: every state of the terminal, as a person sees it, line by line (docs/testing.md says how to renew them)."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from hostile_git import lay_out
from screen import Screen
from scripted import OpenAIServer
from scripted.faults import Interrupted
from serving import serving
from ybs.core.messages import Usage
from ybs.testing.script import ScriptedAnswer, answer, call

GOLDEN = Path(__file__).with_name("screens")
IS_UPDATE = bool(os.environ.get("UPDATE_SCREENS"))
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|38|4[0-7]|48|9[0-7]|10[0-7])(?:[;:]\d+)*m")
CLEAR, EMPTY, ESCAPE = "\x0c", "\x15", "\x1b"  # Ctrl-L, Ctrl-U, Esc
STORY = """\
## What is wrong

The second coupon is taken from the price *before* the first one: `apply()` reads
`self.subtotal`, not the running total.

1. read the total once
2. take each coupon from **it**

| coupon | now | should be |
|---|---:|---:|
| first | 90.00 | 90.00 |
| second | 80.00 | 81.00 |

```python
for coupon in coupons:
    total -= coupon.discount(total)
```

The last line is still being writ"""


def normal(text: str) -> str:
    """Put a fixed word for what moves: spinner, times, version and ports. Right-aligned times stay so."""
    text = re.sub(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏](?= )", "⠋", text)
    text = re.sub(r"(?m)^(⠋ .*?)( +\d[\d.]* m?s)?( +esc to stop)?$", r"\1", text)
    text = re.sub(r"  +\d+(?:\.\d+)? m?s\b", lambda found: "0 s".rjust(len(found[0])), text)
    text = re.sub(r"(?<= )\d+(?:\.\d+)? m?s\b", "0 s", text)
    text = re.sub(r"\bybs \d\S*", "ybs VERSION", text)
    text = re.sub(r"(?m)^(ybs VERSION.*?) {2,}(?=~)", r"\1  ", text)
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)


class Album:
    """Compares a screen with its golden texts; leaving the block says where they differ."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._differences: list[str] = []

    def __enter__(self) -> "Album":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._differences:
            raise AssertionError("\n\n".join(self._differences))

    def shows(self, name: str, pattern: str) -> None:
        """Wait until the window shows the pattern, and see that all of it is as in the golden text."""
        if not self._screen.looks(lambda picture: bool(re.search(pattern, picture)), 8):
            raise AssertionError(f"{name}: {pattern!r} never came:\n{self._screen.picture}")
        file = GOLDEN / f"{name}.txt"
        if IS_UPDATE:
            self._screen.stays(0.6)
            file.write_text(normal(self._screen.picture), encoding="utf-8")
        wanted = file.read_text(encoding="utf-8") if file.exists() else ""
        if not self._screen.looks(lambda picture: normal(picture) == wanted, 1.0):
            seen = normal(self._screen.picture)
            lines = (wanted.splitlines(), seen.splitlines())
            self._differences.append(
                "\n".join(unified_diff(*lines, f"{name}.txt", "seen", n=30, lineterm=""))
            )


@pytest.fixture
def shop(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a small project with a fixed place, `~/shop`, and stand in it."""
    folder = home / "shop"
    for name in ("src/cart.py", "src/coupon.py", "tests/test_cart.py", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("total = 0\nfor coupon in coupons:\n    total -= coupon\n")
    lay_out(folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Give the test a pile of what has to be closed after it."""
    with ExitStack() as stack:
        yield stack


def opened(stack: ExitStack, url: str, *words: str, **options: Any) -> Screen:
    """Start ybs on a terminal, in front of a server."""
    where = ("--endpoint", url, "-m", "scripted", "--no-sandbox")
    known = {"YBS_AGENT__RETRY_ATTEMPTS": "0", "YBS_CONTEXT__MAX_TOKENS": "32768"}
    environ = {**known, **options.pop("environ", {})}
    return stack.enter_context(Screen(*where, *words, environ=environ, **options))


class ThreeModels(OpenAIServer):
    """A server with something to pick from."""

    def __init__(self, script: Iterable[Any]) -> None:
        super().__init__(script, models=("large", "scripted", "small"))


BETTER = "total = 0\nfor coupon in coupons:\n    total -= coupon.discount(total)\n"
DANGER = "git -c core.pager=cat log --oneline -5 && rm -rf build/"
WRITE = call("write_file", path="src/cart.py", content=BETTER)
RUN = call("run_shell", command="echo begun; sleep 60")
ALLOWED = ("--allow", "run_shell(echo *)", "--allow", "run_shell(sleep *)")


def said(*parts: Any) -> ScriptedAnswer:
    """Say something, with the numbers of a real answer."""
    return answer(*parts, usage=Usage(input_tokens=2_431, output_tokens=187), chunk_size=20)


def cut(text: str, pieces: int) -> Interrupted:
    """Say the beginning of something and then nothing more."""
    return Interrupted(how="stall", answer=said(text), after_frames=pieces)


@pytest.mark.slow
def test_the_screens_of_a_session(shop: Path, stack: ExitStack) -> None:
    script = [
        cut(STORY, 28),
        said("I look first.", call("read_file", path="src/cart.py"), RUN),
        said(WRITE),
        said("As you like."),
        said(call("run_shell", command=DANGER)),
        said("As you like."),
    ]
    behind = stack.enter_context(ExitStack())
    server = behind.enter_context(serving(script, ThreeModels))
    screen = opened(stack, server.url, *ALLOWED, rows=30)
    with Album(screen) as album:
        album.shows("start", r"› *\n")
        screen.keys(CLEAR + "/mo")
        album.shows("command_menu", r"/model")
        screen.keys(EMPTY + CLEAR + "look at @car")
        album.shows("file_menu", r"src/cart\.py")
        screen.keys(EMPTY + CLEAR + "the total is wrong\r")
        album.shows("streaming", r"being writ")
        screen.keys(ESCAPE)
        album.shows("interrupted", r"interrupted(.|\n)*ctx 4%")
        screen.keys(CLEAR + "run it\r")
        album.shows("tool_running", r"\n +begun")
        screen.keys(ESCAPE)
        album.shows("tool_stopped", r"interrupted(.|\n)* out ")
        screen.keys(CLEAR + "mend it\r")
        album.shows("question_diff", r"\[y\] yes")
        screen.stays()  # keys that come at once were typed ahead
        screen.keys("n")
        album.shows("refused", r"As you like\.(.|\n)*out")
        screen.keys(CLEAR + "clean up\r")
        album.shows("question_shell", r"\[y\] yes")
        screen.stays()
        screen.keys("n")
        screen.sees(r"rm -rf(.|\n)*As you like\.(.|\n)*out")
        screen.keys(CLEAR + "/model\r")
        album.shows("picker", r"large(.|\n)*small")
        screen.keys(ESCAPE)
        screen.keys(CLEAR)
        behind.close()
        screen.keys("hello\r")
        album.shows("error", r"✗ ")
    screen.keys("\x04")
    assert screen.ends() == 0
    assert "Traceback" not in screen.raw


@pytest.mark.slow
def test_the_screens_of_a_narrow_terminal(shop: Path, stack: ExitStack) -> None:
    script = [
        said(call("read_file", path="src/cart.py"), WRITE),
        said("As **you** like:\n\n- the sum of the cart is as it was before\n"),
        said(call("run_shell", command=DANGER)),
        cut("Now I write an answer that", 3),
    ]
    server = stack.enter_context(serving(script))
    screen = opened(stack, server.url, columns=40, rows=12)
    with Album(screen) as album:
        album.shows("narrow_start", r"› *\n")
        screen.keys(CLEAR + "mend it\r")
        album.shows("narrow_question_diff", r"\[y\] yes")
        screen.stays()
        screen.keys("n")
        album.shows("narrow_answer", r"before(.|\n)* out ")
        screen.keys(CLEAR + "clean up\r")
        album.shows("narrow_question_shell", r"\[y\] yes")
        screen.stays()
        screen.keys("n")
        album.shows("narrow_streaming", r"answer that")


@pytest.mark.slow
def test_the_screens_without_colour_in_incognito(shop: Path, stack: ExitStack) -> None:
    script = [
        said("See `code`.\n\n```python\nimport os\n```\n", WRITE),
        said("As you like."),
    ]
    server = stack.enter_context(serving(script, ThreeModels))
    environ = {"NO_COLOR": "1"}
    screen = opened(stack, server.url, "--incognito", rows=30, environ=environ)
    with Album(screen) as album:
        album.shows("incognito", r"› *\n")
        screen.keys(CLEAR + "mend it\r")
        album.shows("no_colour", r"\[y\] yes")
        screen.stays()
        screen.keys("n")
        screen.sees(r"As you like\.(.|\n)* out ")
        screen.keys(CLEAR + "/model\r")
        screen.sees(r"large(.|\n)*small")
    assert not COLOUR.search(screen.raw)
    assert "\x1b[" in screen.raw


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "dumb"])
def test_the_screen_of_a_dialogue_in_whole_sentences(kind, shop, stack):
    script = [
        said("I look first.", call("read_file", path="src/cart.py")),
        said(WRITE),
        said("It is **done**:\n\n- one edit\n"),
    ]
    server = stack.enter_context(serving(script, ThreeModels))
    words, environ = (("--plain",), {}) if kind == "plain" else ((), {"TERM": "dumb"})
    screen = opened(stack, server.url, *words, rows=40, environ=environ)
    with Album(screen) as album:
        screen.sees("/help")
        screen.keys("mend it\n")
        screen.sees(r"no because")
        screen.stays()
        screen.keys("yes\n")
        screen.sees(r"one edit(.|\n)*You:$")
        screen.keys("/mode\n")
        album.shows("plain", r"/mode\n(.|\n)*bypass(.|\n)*:\n")
        screen.stays()
        screen.keys("\n")
        screen.sees(r"Nothing was chosen\.\n(.|\n)*You:$")
        screen.keys("/quit\n")
        assert screen.ends() == 0
    assert "\x1b" not in screen.raw
