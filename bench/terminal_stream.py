"""What a streamed answer costs in the terminal, beside printing its final Markdown once with rich (CPU time)."""

import asyncio
import random
import time
from collections.abc import Callable
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

from lab import Lab, Row, interleave, median
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import Console
from rich.markdown import Markdown

from ybs.config.schema import Config
from ybs.core.envelope import MAIN, Envelope
from ybs.core.events import AssistantSaid, RequestStarted, TextStreamed, TurnFinished
from ybs.core.messages import Usage
from ybs.frontends.host import this_host
from ybs.frontends.terminal.terminal import Terminal
from ybs.session.inbox import Inbox
from ybs.session.session import Outcome, Status, View

COLUMNS, ROWS = 100, 40
LIMIT = 1.5
#: Characters of a piece, of the answer, and of what comes in a few seconds at a fast model's pace.
PIECE, ANSWER, PACED = 20, 200_000, 30_000
PIECES_PER_SECOND = 500
#: Times that a paced stream is measured: it takes seconds, whatever it costs.
PACED_ROUNDS = 3
TEXT = (
    "the cart total is wrong because second coupon price taken from subtotal before first applied "
    "and every call reads running value again which means that tests must change when function "
    "returns different number of items"
)
WORDS = TEXT.split()


def measure(_lab: Lab, rounds: int) -> list[Row]:
    answer, short = answer_of(ANSWER), answer_of(PACED)
    print_once(answer)  # imports, caches
    fast = interleave(
        max(3, rounds // 2),
        once=lambda: print_once(answer),
        streamed=lambda: stream(answer, pace=0),
    )
    paced = interleave(
        min(rounds, PACED_ROUNDS),
        once=lambda: print_once(short),
        streamed=lambda: stream(short, pace=PIECES_PER_SECOND),
        waiting=lambda: stream(short, pace=PIECES_PER_SECOND, is_shown=False),
        rich=lambda: print_in_time(short),
    )
    once, once_short = median(fast["once"]), median(paced["once"])
    waiting = median(paced["waiting"])
    shown = median(paced["streamed"]) - waiting
    seconds = len(short) / PIECE / PIECES_PER_SECOND
    pace = f"{PIECES_PER_SECOND} pieces a second"
    return [
        Row(f"{ANSWER:,} characters printed once with rich", once * 1000, "ms"),
        Row("  streamed as fast as it can be drawn", ratio(fast["streamed"], once), "x", LIMIT),
        Row(f"{PACED:,} characters printed once", once_short * 1000, "ms"),
        # No limit here: work in small portions finds the processor's caches cold, so that rich alone needs more than
        # its share too, and the spinner and the open block are drawn however little text comes.
        Row(
            f"  its blocks printed with rich over {seconds:.0f} s",
            ratio(paced["rich"], once_short),
            "x",
        ),
        Row(
            f"  streamed at {pace}",
            shown / once_short,
            "x",
            note=f"without {waiting * 1000:.0f} ms of the pace itself",
        ),
        Row("    of one processor", 100 * shown / seconds, "%"),
    ]


def ratio(values: list[float], base: float) -> float:
    return median(values) / base


def print_once(text: str) -> float:
    """Print the Markdown and return the CPU seconds."""
    file = TextIOWrapper(BytesIO(), encoding="utf-8")
    began = time.process_time()
    console = Console(
        file=file, width=COLUMNS, height=ROWS, force_terminal=True, color_system="standard"
    )
    console.print(Markdown(text))
    return time.process_time() - began


def print_in_time(text: str) -> float:
    """Print each block by itself with rich, as slowly as they come, and return the CPU seconds."""
    console = Console(file=StringIO(), width=COLUMNS, force_terminal=True, color_system="standard")
    blocks = text.split("\n\n")
    pause = len(text) / PIECE / PIECES_PER_SECOND / len(blocks)
    began = time.process_time()
    for block in blocks:
        console.print(Markdown(block))
        time.sleep(pause)
    return time.process_time() - began


def stream(text: str, *, pace: float, is_shown: bool = True) -> float:
    """Stream the Markdown through a terminal and return the CPU seconds; `pace` in pieces a second, 0 for none."""
    return asyncio.run(_stream(text, pace, is_shown=is_shown))


async def _stream(text: str, pace: float, *, is_shown: bool) -> float:
    session = StandIn(text, pace)
    if not is_shown:
        began = time.process_time()
        await session.send("go")
        return time.process_time() - began
    with create_pipe_input() as pipe:
        file = TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True)
        output = Vt100_Output(
            file, lambda: Size(rows=ROWS, columns=COLUMNS), term="xterm", enable_cpr=False
        )
        session_as: Any = session
        terminal = Terminal(session_as, put_in=pipe, put_out=output)
        running = asyncio.create_task(terminal.run())
        while not (terminal.window.app.is_running or running.done()):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        if running.done():
            await running  # which says why it did not begin
        began = time.process_time()
        terminal.work.submit("go")
        await session.has_ended.wait()
        spent = time.process_time() - began
        terminal.leave()
        await running
    check(file, text)
    return spent


def check(file: TextIOWrapper, text: str) -> None:
    """Stop where the answer was not drawn: its time would mean nothing."""
    last = text.split()[-2].strip("*`|.")
    drawn = file.buffer.getvalue().decode()
    if last not in drawn or len(drawn) < len(text):
        raise SystemExit(f"the answer was not drawn: {len(drawn)} characters, {drawn[-300:]!r}")


class StandIn:
    """A session that streams one answer."""

    def __init__(self, text: str, pace: float) -> None:
        self.text, self.pace = text, pace
        self.config, self.warnings, self.mode = Config(), (), "ask"
        self.view, self.resumed, self.host = View(streams=True), None, this_host()
        self.has_ended = asyncio.Event()
        self.commands, self.is_busy, self.unread_count = None, False, 0
        self.inbox = Inbox(self, lambda: None)
        self._sinks: list[Callable[[Any], None]] = []

    def __getattr__(self, name: str) -> Any:
        """Take whatever else a frontend asks for: nothing waits, nothing is given back."""
        return lambda *_args, **_options: ()

    def subscribe(self, sink: Callable[[Any], None], **_options: Any) -> None:
        """Take a sink of events."""
        self._sinks.append(sink)

    def status(self) -> Any:
        """Give what the status line shows."""
        return Status(
            provider="bench", model="fake", mode="ask", sandbox="off", folder="/", branch="main",
            window=32_000, context_tokens=900, usage=Usage(),
        )  # fmt: skip

    async def handle(self, _line: str, *_images: Any, **_options: Any) -> Outcome:
        """Stream the answer."""
        return await self.send(_line)

    async def send(self, _line: str, *_images: Any, **_options: Any) -> Outcome:
        """Stream the answer."""
        self._emit(RequestStarted(model="fake", step=1))
        began = time.monotonic()
        for number, start in enumerate(range(0, len(self.text), PIECE)):
            self._emit(TextStreamed(text=self.text[start : start + PIECE]))
            due = began + number / self.pace if self.pace else 0
            await asyncio.sleep(max(0, due - time.monotonic()))
        self._emit(AssistantSaid(content=self.text))
        finished = TurnFinished(reason="done", steps=1)
        self._emit(finished)
        await asyncio.sleep(0.2)  # the last lines are drawn
        self.has_ended.set()
        return Outcome(finished=finished, text=self.text, refusals=0)

    def _emit(self, event: Any) -> None:
        for sink in self._sinks:
            sink(Envelope("bench", MAIN, event))


def answer_of(size: int, seed: int = 6) -> str:
    """Make an answer of about `size` characters: prose, lists, tables, quotes and code."""
    chance = random.Random(seed)
    blocks: list[str] = []
    while sum(map(len, blocks)) < size:
        kinds = (heading, prose, bullets, steps, table, quote, code)
        kind = chance.choices(kinds, weights=(10, 45, 13, 7, 7, 4, 14))[0]
        blocks.append(kind(chance))
    return "\n\n".join(blocks)


def heading(chance: random.Random) -> str:
    return "#" * chance.randint(1, 3) + " " + sentence(chance, 5)


def prose(chance: random.Random) -> str:
    return " ".join(sentence(chance, chance.randint(6, 20)) for _ in range(chance.randint(2, 6)))


def bullets(chance: random.Random) -> str:
    return "\n".join(f"- {sentence(chance, chance.randint(5, 20))}" for _ in range(6))


def steps(chance: random.Random) -> str:
    return "\n".join(f"{n + 1}. {sentence(chance, chance.randint(5, 20))}" for n in range(6))


def quote(chance: random.Random) -> str:
    return "> " + sentence(chance, 20)


def table(chance: random.Random) -> str:
    def row() -> str:
        return f"| {' | '.join(sentence(chance, chance.randint(1, 4)) for _ in range(3))} |"

    return "\n".join([row(), "|---|---|---|", *(row() for _ in range(chance.randint(3, 8)))])


def code(chance: random.Random) -> str:
    lines: list[str] = []
    for _ in range(chance.randint(1, 3)):
        name = f"{chance.choice(WORDS)}_{chance.randint(1, 99)}"
        lines += [f"def {name}(items: list[int], *, limit: int = 9) -> int:", "    total = 0"]
        lines += [
            chance.choice(
                (
                    f"    # {sentence(chance, 6)}",
                    "    for item in items:",
                    f"        total += item * {chance.randint(2, 9)}",
                    '        if total > limit:\n            raise ValueError(f"too much: {total}")',
                )
            )
            for _ in range(chance.randint(3, 9))
        ]
        lines += ["    return total", ""]
    return "\n".join(["```python", *lines[:-1], "```"])


def sentence(chance: random.Random, count: int) -> str:
    words = [marked(chance, chance.choice(WORDS)) for _ in range(count)]
    return " ".join(words).capitalize() + "."


def marked(chance: random.Random, word: str) -> str:
    roll = chance.random()
    if roll < 0.03:
        return f"**{word}**"
    if roll < 0.07:
        return f"`{word}_{chance.randint(1, 99)}()`"
    return f"[{word}](https://example.org/{chance.randint(1, 999)})" if roll < 0.075 else word
