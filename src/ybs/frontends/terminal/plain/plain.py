"""The terminal without cursor movements, colours or spinner: whole sentences, one line at a time.

For `--plain`, `TERM=dumb`, editors' shells and screen readers.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from msgspec.structs import replace

from ybs import __version__
from ybs.commands.advice import told
from ybs.commands.command import as_meant
from ybs.commands.figures import number_in
from ybs.commands.models import offer_plan
from ybs.core import events
from ybs.core.envelope import Envelope
from ybs.core.errors import YbsError
from ybs.core.events import Event
from ybs.core.ports import Answer, Question
from ybs.frontends.layout import lines_of
from ybs.frontends.terminal.output import BELL, LONG_SECONDS
from ybs.frontends.terminal.own_shell import run_own
from ybs.frontends.terminal.plain.line_input import InputLines, as_answer, is_answer
from ybs.frontends.terminal.plain.sentences import (
    WIDTH,
    Sentences,
    Stopwatch,
    failure_sentence,
    fold_line,
)
from ybs.frontends.terminal.programs import run_subcommand
from ybs.frontends.terminal.questions.confirm import (
    NETWORK_MEANS,
    OUTSIDE_MEANS,
    as_choice,
    marked_body,
    wish,
    withheld_text,
)
from ybs.frontends.terminal.session import TerminalSession
from ybs.frontends.terminal.signs import fit_encoding
from ybs.frontends.terminal.sub_agents import SubAgents, SubAgentView, end_words
from ybs.frontends.terminal.words import duration, fold_table, one_line
from ybs.security.gate import put
from ybs.security.unicode import printable
from ybs.session.inbox import InboxLine, Sender
from ybs.session.own_commands import OwnRun
from ybs.session.questions import buttons_of, grant_text
from ybs.session.reply import Menu, Outcome, Reply

TWICE_SECONDS = 2.0
SIGNALS = {signal.SIGTERM: 143, signal.SIGHUP: 129}
INTERRUPTED = 130
LEAVING = ("/quit", "/exit")
#: Before each line that the person types.
PROMPT = "You: "
#: Work that takes longer than this is told to go on; then after twice the time, and so on.
STILL_SECONDS = 10.0
TICK_SECONDS = 1.0
KEYS = """\
Ctrl-C interrupts what runs; pressed twice, it leaves ybs. Ctrl-D leaves ybs.
While a turn runs, commands such as /background or /status are answered at once;
every other line is sent when the turn has ended."""

#: What is drawn and not said.


#: What "yes" means by whether the command may, or has to, leave the sandbox.
_YES = {"offered": "yes", "needed": "yes (in the sandbox)"}


class PlainTerminal(Sender):
    """Holds a session and reads lines; `clock` counts seconds."""

    def __init__(self, session: TerminalSession, *, clock: Callable[[], float] = monotonic) -> None:
        self.session, self._clock = session, clock
        self.lines = InputLines(clock, self._tell_early, self._take_beside)
        self._watch = Stopwatch(clock)
        self._sentences = Sentences(session, self._watch)
        self._sub_agents = SubAgentSentences(
            clock, lambda name: Sentences(session, self._watch, name=name)
        )
        self._interrupted_at = -TWICE_SECONDS
        self._one_question = asyncio.Lock()
        #: What others did while a question stood there: it would part the question from its answer.
        self._held: list[str] = []
        self._code = 0
        self._main: asyncio.Task[int] | None = None

    async def run(self, prompt: str = "", command: str = "") -> int:
        """Talk until the person leaves; return the exit code."""
        has_terminal = os.isatty(sys.stdin.fileno()) and os.isatty(1)
        self.session.attach(self.ask, keys=KEYS, run_own=self._run_own if has_terminal else None)
        self.session.subscribe(self._on_event)
        self._main = asyncio.current_task()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self._leave, code)
        try:
            with self.lines:
                return await self._talk(prompt, command)
        except asyncio.CancelledError:
            return self._code

    async def ask(self, question: Question) -> Answer:
        """Ask the person for a word, one question after the other; earlier lines are not an answer."""
        async with self._one_question:
            self._tell_question(question)
            self._watch.pause()
            try:
                text = await self.lines.read_answer()
            finally:
                self._watch.resume()
                held, self._held = self._held, []
                for each in held:
                    self._tell(each)
        read = as_answer if question.choices is None else as_choice
        return read(text or "", question)

    async def _run_own(self, command: str, folder: Path) -> OwnRun:
        with self.lines.away():
            return await run_own(command, folder)

    async def _talk(self, prompt: str, command: str) -> int:
        before = self._greeting()
        if (resumed := self.session.resumed) is not None:
            self._write(before)
            before = ""
            await self._show_reply(resumed)
        if prompt:
            self._tell(f"{before}{PROMPT}{printable(prompt)}")
            before = ""
            await self._take(prompt, is_for_model=True)
        elif command:
            self._tell(f"{before}{PROMPT}{command}")
            before = ""
            await self._take(command)
        while True:
            # At once, so that what is typed on sight stands behind it.
            self._write(f"{before}\n{PROMPT}")
            before = ""
            line = await self.lines.read()
            if line is None:
                self._tell("")
                return 0
            if line.strip() and await self._take(as_meant(line.strip())):
                return 0

    async def _take(self, line: str, *, is_for_model: bool = False) -> bool:
        """Work off a line and what is chosen after it; return whether the person wants to leave."""
        done = await self._sent(line, is_for_model=is_for_model)
        while isinstance(done, Reply) or (done is not None and done.plan):
            reply = done if isinstance(done, Reply) else offer_plan()
            if reply.terminal.wants_quit:
                return True
            line = await self._show_reply(reply)
            done = await self._sent(line) if line else None
        if done is not None and done.finished.reason == "interrupted":
            for line in self.lines.take_back():
                self._tell(fold_line(f"Not sent, because you stopped: {printable(line)}"))
        return False

    def _take_beside(self, line: str) -> bool:
        """Answer a command at once beside the running turn, where it can be; to leave waits, as in a script."""
        line, commands = line.strip(), self.session.commands
        is_free = self.session.is_busy and not self._one_question.locked()
        runs_beside = commands is not None and commands.runs_beside(self.session, line)
        may_run = is_free and runs_beside and line.lower() not in LEAVING
        if may_run:
            self.session.inbox.submit(InboxLine(text=line, sender=self))
        return may_run

    async def done(self, line: InboxLine, result: Reply | Outcome | YbsError) -> None:
        """Print what came of a command that ran beside a turn."""
        if isinstance(result, YbsError):
            self._tell(failure_sentence(told(result)))
        elif isinstance(result, Reply):  # nobody is asked for a number now
            await self._show_reply(replace(result, is_listed=True))

    async def _sent(self, line: str, *, is_for_model: bool = False) -> Reply | Outcome | None:
        self._watch.start()
        telling = asyncio.create_task(self._tell_still())
        try:
            return await self.session.inbox.result_of(line, is_for_model=is_for_model)
        except YbsError as error:
            self._tell(failure_sentence(told(error)))
            return None
        finally:
            telling.cancel()

    async def _show_reply(self, reply: Reply) -> str:
        """Print a command's answer and return the line that the person chose, or nothing."""
        if reply.terminal.program == "doctor":
            return await self._run_doctor()
        if reply.terminal.program:  # it draws on a whole screen
            reply = reply.without_terminal(f"/{reply.terminal.program}")
        if rest := self._sentences.end_typed():
            self._tell(rest)
        for event in reply.events:
            self._tell_again(event)
        if (menu := _offered(reply)) is not None:
            return await self._choose(menu)
        if lines := lines_of(reply, WIDTH, has_bars=False):
            text = printable("\n".join(lines))
            text = f"Error: {text}" if reply.is_error else text
            self._tell("\n".join(fold_table(text, WIDTH)))
        await self._show_rest(reply)
        return ""

    async def _show_rest(self, reply: Reply) -> None:
        if reply.diff:
            self._tell(reply.diff.rstrip("\n"))
        if reply.terminal.clipboard:
            await self._copy(reply.terminal.clipboard)
        if reply.terminal.draft:
            self._tell(fold_line(f"Your words were: {printable(reply.terminal.draft)}"))

    async def _run_doctor(self) -> str:
        await run_subcommand("doctor", self.session, has_input=False)
        return ""

    async def _choose(self, menu: Menu) -> str:
        title = one_line(menu.title).rstrip(":.")
        self._tell(title if title.endswith("?") else f"{title}:")
        for number, item in enumerate(menu.items, 1):
            words = ", ".join(filter(None, (one_line(item.label), one_line(item.detail))))
            self._tell(fold_line(f"{number}. {words}{', current' if item.is_current else ''}"))
        self._write("Number (Enter for none): ")
        typed = (await self.lines.read_answer() or "").strip().rstrip(".")
        if 1 <= (number := number_in(typed)) <= len(menu.items):
            return menu.items[number - 1].line
        self._tell("Nothing was chosen.")
        return ""

    async def _copy(self, text: str) -> None:
        from ybs.frontends.terminal.clipboard import NO_PROGRAM, copy_by_program, said

        program = await copy_by_program(text)
        done = said(text, program, is_sent=False) if program else f"not copied: {NO_PROGRAM}"
        self._tell(fold_line(f"{done[:1].upper()}{done[1:]}."))

    async def _tell_still(self) -> None:
        """Say that the work goes on, less and less often."""
        due = STILL_SECONDS
        while True:
            await asyncio.sleep(TICK_SECONDS)
            seconds = self._watch.worked_seconds
            if seconds >= due and not self._watch.is_paused:
                self._tell(self._sentences.still(seconds))
                due = 2 * seconds

    def _greeting(self) -> str:
        status = self.session.status()
        mark = "incognito, " if status.incognito else ""
        lines = (
            f"ybs {__version__}: {status.shown_provider} {status.model}, mode {status.shown_mode},",
            f"{mark}{status.sandbox}, in {self.session.host.short(status.folder)}. /help for more.",
            *([fold_line(f"Documents: {', '.join(status.documents)}.")] * bool(status.documents)),
            *(fold_line(f"Warning: {warning}") for warning in self.session.warnings),
        )
        return "".join(f"{line}\n" for line in lines)

    def _tell_question(self, question: Question) -> None:
        status = self.session.status()
        self._call()
        asked = wish(question, status.folder, status.sandbox, self.session.host)
        self._tell(f"\nQuestion: {asked}:")
        self._tell(marked_body(question))
        if question.choices is not None:
            self._tell_choices(question)
        else:
            self._tell_ways(question)

    def _tell_choices(self, question: Question) -> None:
        for each in buttons_of(question, ""):
            self._tell(fold_line(f"{each.key}: {each.text}"))
        number = "with a number or " * bool(question.choices)
        self._write(f"Answer {number}in your own words, or press Enter for no answer: ")

    def _tell_ways(self, question: Question) -> None:
        if question.reason:
            self._tell(fold_line(f"Asked because {printable(question.reason)}."))
        for warning in question.warnings:
            self._tell(fold_line(f"Warning: {printable(warning)}"))
        self._tell_grants(question)
        if text := withheld_text(question):
            self._tell(fold_line(f"{text}."))
        words = "yes, no, always" if question.grant else "yes, no"
        words += ", project" if question.can_be_kept else ""
        if question.offers_network:
            self._tell(fold_line(f"with network: {NETWORK_MEANS}."))
            words = words.replace("yes", "yes, yes with network")
        if question.outside:
            self._tell(fold_line(f"outside: it runs outside the sandbox, once, {OUTSIDE_MEANS}."))
            words = words.replace("no", "outside, no", 1)
            words = words.replace("yes", _YES[question.outside], 1)
        self._write(f"Answer {words} or no because ...: ")

    def _tell_grants(self, question: Question) -> None:
        for with_network in (False, True):
            if rule := grant_text(question, with_network=with_network):
                how = " with network" * with_network
                self._tell(f'"always{how}" would allow, for this session: {rule}')
        if question.can_be_kept:
            self._tell('"project" would allow the same in this project, in later sessions too')

    def _on_event(self, envelope: Envelope) -> None:
        event, is_main = envelope.event, envelope.is_main
        if text := (
            self._sentences.of(event) if is_main else self._sub_agents.of(envelope.agent, event)
        ):
            self._held.append(text) if self._one_question.locked() else self._tell(text)
        if (
            is_main
            and isinstance(event, events.TurnFinished)
            and event.duration_seconds >= LONG_SECONDS
        ):
            self._call()

    def _tell_again(self, event: Event | Envelope) -> None:
        """Print what was said or done before this session went on."""
        if isinstance(event, Envelope):
            self._on_event(event)
        elif isinstance(event, events.UserSaid):
            self._tell(fold_line(f"{PROMPT}{event.content}"))
        elif text := self._sentences.of(event):
            self._tell(text)

    def _tell_early(self, line: str) -> None:
        what = (
            "Typed before the question, so not taken as its answer"
            if is_answer(line)
            else "Will be sent later"
        )
        self._tell(fold_line(f"{what}: {printable(line)}"))

    def _call(self) -> None:
        """Ring, where the person wants to be called at all: such a terminal knows no other way."""
        if self.session.config.ui.notify != "off":
            put("", sys.stdout, end=BELL)

    def _interrupt(self) -> None:
        now = self._clock()
        is_second = now - self._interrupted_at < TWICE_SECONDS
        self._interrupted_at = now
        if is_second:
            self._leave(INTERRUPTED if self.session.is_busy else 0)
        elif not self.session.cancel():
            self._write(f"\nPress Ctrl-C again to leave.\n{PROMPT}")

    def _leave(self, code: int) -> None:
        self._code = code
        if self._main is not None:
            self._main.cancel()

    def _tell(self, text: str) -> None:
        self._write(text + "\n")

    def _write(self, text: str) -> None:
        put(fit_encoding(printable(text), sys.stdout.encoding), sys.stdout, end="")


def _offered(reply: Reply) -> Menu | None:
    """Return the menu of a reply where the person is to choose from it."""
    menu = reply.menu
    is_offered = menu is not None and menu.items and not (reply.is_error or reply.is_listed)
    return menu if is_offered else None


class SubAgentSentences:
    """Makes sentences of the events of sub-agents: when each begins and ends, and of its calls.

    `sentences` makes what tells the calls of one agent, by its name.
    """

    def __init__(self, clock: Callable[[], float], sentences: Callable[[str], Sentences]) -> None:
        self._clock, self._make = clock, sentences
        self._sub_agents = SubAgents(clock)
        self._sentences: dict[str, Sentences] = {}

    def of(self, name: str, event: Event) -> str:
        """Return the sentence for an event of a sub-agent; "" where there is nothing to tell."""
        was_working = name in self._sub_agents.working
        agent = self._sub_agents.add(name, event)
        if agent is not None and not was_working:
            return fold_line(
                f"{name} begins{f': {agent.task}' * bool(agent.task)}".rstrip(".") + "."
            )
        if isinstance(event, events.TurnFinished):
            self._sentences.pop(name, None)
            return self._end(agent, event) if agent is not None else ""
        return self._made(name).of(event) if _is_told(event) else ""

    def _made(self, name: str) -> Sentences:
        if name not in self._sentences:
            self._sentences[name] = self._make(name)
        return self._sentences[name]

    def _end(self, agent: SubAgentView, event: events.TurnFinished) -> str:
        used = f"{agent.figures(', ')}, {duration(agent.took_seconds(event, self._clock()))}"
        if event.reason == "done":
            return fold_line(f"{agent.name} is done: {used}.")
        why = one_line(end_words(event)).rstrip(".")
        return fold_line(f"{agent.name} ended early, {why}: {used}.")


def _is_told(event: Event) -> bool:
    """Return whether the event is about a call, or worth a line of its own. The rest is the sub-agent's own matter."""
    match event:
        case events.ToolStarted() | events.ToolFinished():
            return True
        case (
            events.ConfirmationAsked()
            | events.ConfirmationAnswered()
            | events.Compacted()
            | events.RequestRetried()
        ):
            return True
        case events.Noticed():
            return event.level != "info"
        case _:
            return False
