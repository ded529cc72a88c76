"""A question to the person: what is shown, and which keys count as an answer.

Keys that were typed before the question could be read are not consent: a key counts only when the question has
been on the screen for a moment, no other key came in that moment, and none came in the same burst.
"""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.config.host import Host
from ybs.core.envelope import MAIN
from ybs.core.ports import Answer, Question
from ybs.frontends.terminal.drawing.diffs import diff_lines, short_diff
from ybs.frontends.terminal.drawing.page import Canvas
from ybs.frontends.terminal.drawing.steps import UNFOLD_KEY, hidden_text
from ybs.frontends.terminal.signs import Paint, Signs
from ybs.frontends.terminal.words import cells, fold, one_line, shorten, wrap_marked, wrap_words
from ybs.security.unicode import shown_whole, unabridged
from ybs.session.questions import NO, Choice, asker_of, choices_of, grant_text, in_words
from ybs.session.status import Status

if TYPE_CHECKING:
    from ybs.frontends.terminal.prompt.draft import PromptDraft

#: How long the question must have been visible, and the keyboard silent.
GUARD_SECONDS = 0.3
#: So long a key is held before it counts: what another follows sooner is part of a burst.
HOLD_SECONDS = 0.03
#: What the network means for a command.
NETWORK_MEANS = "the command could send away any file that it can read"
#: What the other shell means for it.
OUTSIDE_MEANS = "as in your own shell, with your keys and all your files"
#: What stands below a question with nothing to pick.
TYPE_ANSWER = "type your answer; Enter alone gives none; Esc stops the turn"
#: Rows of the screen that are neither its words nor its keys, and lines of a change that are shown at least.
_OTHER_ROWS, _FEWEST_LINES = 7, 8
#: Of a body with more lines than this the number is said below it, where the keys are.
_MANY_LINES = 20
#: Who asks where no tool does.
_OWN = "ybs"


class Silence:
    """The moment of silence after something has come up, in which keys mean something else. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._is_shown = False
        self._counts_from = 0.0
        self._held: asyncio.TimerHandle | None = None

    def show(self) -> None:
        """Note that it is on the screen now."""
        if not self._is_shown:
            self._is_shown = True
            self.begin()

    def hide(self) -> None:
        """Note that something else is on the screen: nothing counts until a moment after the next drawing."""
        self._is_shown = False
        self.let_go()

    def begin(self) -> None:
        """Begin the moment anew."""
        self._counts_from = self._clock() + GUARD_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether it has been on the screen for a moment."""
        return self._is_shown and self._clock() >= self._counts_from

    def is_too_early(self) -> bool:
        """Return whether a key pressed now was meant for something else; the silence then starts anew."""
        if self.is_over:
            return False
        self.begin()
        return True

    @property
    def is_holding(self) -> bool:
        """Whether a key waits whether another follows it at once."""
        return self._held is not None

    def hold(self, act: Callable[[], None]) -> None:
        """Do what a key stands for, if no other key comes that lets go of it."""

        def end() -> None:
            self._held = None
            act()

        self.let_go()
        self._held = asyncio.get_running_loop().call_later(HOLD_SECONDS, end)

    def let_go(self) -> None:
        """Forget the key that is held."""
        if self._held is not None:
            self._held.cancel()
            self._held = None


class PendingQuestion(Silence):
    """One question that waits for its answer."""

    def __init__(self, question: Question, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(clock)
        self.question = question
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.wants_reason = False
        #: Whether a yes gives the command the network; a key changes it.
        self.with_network = question.needs_network
        #: The answer that the arrows have marked, which Enter gives; none is marked at first.
        self.place: int | None = None

    @property
    def keys(self) -> list[str]:
        """The keys that answer, in the order in which they are drawn."""
        return [] if self.wants_words else [*self._choices]

    @property
    def _choices(self) -> dict[str, Choice]:
        return choices_of(self.question, with_network=self.with_network)

    @property
    def wants_words(self) -> bool:
        """Whether there is nothing to pick, so that what is typed is the answer."""
        return self.question.choices == ()

    def move(self, by: int) -> None:
        """Mark another answer; the first arrow marks the first or the last."""
        if (last := len(self.keys) - 1) < 0:
            return
        start = self.place if self.place is not None else (-1 if by > 0 else last + 1)
        self.place = max(0, min(last, start + by))

    def press(self, key: str) -> bool:
        """Take a letter, the number of an answer, or Enter on a marked one. Return whether it means anything here."""
        keys = self.keys
        if self.wants_words and key in ("\r", "\n"):
            self.refuse()
            return True
        if key in ("\r", "\n") and self.place is not None:
            key = keys[self.place]
        key = _at(key, keys).lower()
        if key not in keys:
            return False
        if key == "w":
            self.with_network = not self.with_network
        elif (choice := self._choices[key]).wants_words:
            self.ask_why()
        else:
            self.settle(choice.answer)
        return True

    def refuse(self) -> None:
        """Answer no, for what asked is stopped."""
        self.settle(NO)

    def ask_why(self) -> None:
        """Ask for the reason, in words."""
        self.wants_reason = True

    def ask_again(self) -> None:
        """Go back from the reason to the question."""
        self.wants_reason = False
        self.hide()

    def give_reason(self, text: str) -> None:
        """Say no, with the words that the model reads, or answer the model's own question."""
        self.settle(in_words(self.question, text))

    def settle(self, answer: Answer) -> None:
        """Give the answer, once."""
        if not self.answer.done():
            self.answer.set_result(answer)


def question_text(question: Question, state: Status, host: Host, canvas: Canvas) -> str:
    """Draw the question: who wants what where, and what to beware of.

    All is shown whole, but of the change of a file as much as the screen has rows for, and which key shows the rest.
    """
    width, height, paint, signs = canvas.width() - 1, canvas.height(), canvas.paint, canvas.signs
    who = f"{signs.question} {wish(question, state.folder, state.sandbox, host)}"
    end = ":" if _has_more(question) else "?"
    above, below = _title(f"{who}{end}", width, paint), list[str]()
    if question.reason:
        below += [paint.dim(f"  {line}") for line in fold(unabridged(question.reason), width - 4)]
    for warning in question.warnings:
        first, *rest = fold(unabridged(warning), width - 6)
        below.append(f"  {paint.warn('!')} {paint.bold(first)}")
        below += [f"    {paint.bold(line)}" for line in rest]
    keys = choice_lines(question, width, paint, signs)
    taken = len([*above, *below, *keys]) + _OTHER_ROWS
    most = max(_FEWEST_LINES, height - taken) if height else 0
    body = _body(question, width, canvas, most)
    lines = [*above, "", *body] if body else above
    if len(body) > (most + 1 if most else _MANY_LINES):  # its beginning has scrolled away
        lines += ["", *_title(f"{who} ({len(body):,} lines above)", width, paint)]
    return "\n".join([*lines, "", *below] if below else lines).rstrip("\n")


def wish(question: Question, folder: str, sandbox: str, host: Host) -> str:
    """Return in words which tool, of which sub-agent, wants to do what, where, and with what around it."""
    preview, name = question.preview, question.call.name
    if question.choices is not None:
        asker = asker_of(question)
        return asker[:1].lower() + asker[1:]
    if question.agent != MAIN:
        name = f"{name} of the sub-agent {one_line(question.agent)}"
    if _is_command(question):
        is_closed = question.offers_network and not question.needs_network
        sandbox = f"{sandbox}, no network" if is_closed else sandbox
        said = preview.title.removeprefix("Run a shell command")  # a folder's name may stand behind
        sandbox = "outside the sandbox" if said.startswith(" outside the sandbox") else sandbox
        place = next(iter(preview.paths), folder)
        how = " in the background" if said.startswith(" in the background") else ""
        return unabridged(f"{name} wants to run{how}, in {host.short(place)}, {sandbox}")
    what = preview.title[:1].lower() + preview.title[1:]
    # What is ybs's own says its place itself.
    where = f", in {host.short(folder)}" if preview.paths else ""
    return unabridged(f"{name} wants to {what}{where}")


def whole_body(question: Question) -> str:
    """Return all that is asked about, with long gaps in it counted instead of shown."""
    text = shown_whole(question.preview.body or question.preview.title)
    lines = text.count("\n") + 1
    return f"{text}\n<{lines} lines in all>" if lines > _MANY_LINES else text


def marked_body(question: Question) -> str:
    """Return all that is asked about; of several lines each has a mark, so that none passes for one of ybs's own."""
    text = whole_body(question)
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n")) if "\n" in text else text


def kept_words(draft: "PromptDraft", width: int, canvas: Canvas) -> list[str]:
    """Show what stands in the prompt, whose place a question or a menu has taken."""
    if not draft.text.strip():
        return []
    words = f"  still in your prompt: {one_line(draft.pastes.label(draft.text))}"
    return [canvas.paint.dim(shorten(words, width, canvas.signs.more))]


def as_choice(text: str, question: Question) -> Answer:
    """Read an answer to the model's own question: a number picks, an empty text means no answer, all else stands as it is."""
    return in_words(question, _at(text.strip(), question.choices or ()))


def _at(key: str, items: Sequence[str]) -> str:
    """Return the item with this number; where there is none, the key itself."""
    return items[int(key) - 1] if key.isdecimal() and 0 < int(key) <= len(items) else key


def choice_lines(
    question: Question,
    width: int,
    paint: Paint,
    signs: Signs,
    *,
    with_network: bool = False,
    place: int | None = None,
) -> list[str]:
    """Draw the keys that answer, and below them why "always" is not among them."""
    if question.choices == ():
        return [paint.dim(shorten(f"  {TYPE_ANSWER}", width, signs.more))]
    words = [
        f"[{key}] {each.text}{signs.more * each.wants_words}"
        for key, each in choices_of(question, with_network=with_network).items()
    ]
    if place is None:
        lines = _keys(question, words, width, paint)
    else:  # the arrows are used: one below the other, with a mark
        lines = _below(words, width, paint, marked=words[place], sign=signs.prompt)
        taken = shorten("Enter takes the marked answer", width - 4, signs.more)
        lines.append(paint.dim(f"  {taken}"))
    if text := withheld_text(question):
        lines += [paint.dim(f"  {line}") for line in wrap_words(text, width - 4)]
    if with_network:
        first, *rest = fold(f"With the network, {NETWORK_MEANS}.", width - 6)
        warning = [f"  {paint.warn('!')} {paint.bold(first)}"]
        lines = [*warning, *(f"    {paint.bold(line)}" for line in rest), *lines]
    return lines


def _keys(question: Question, words: list[str], width: int, paint: Paint) -> list[str]:
    """Draw the keys, with the rule that "always" would store, and what ends more than the call."""
    if question.choices is not None:
        return _below(words, width, paint)
    hint = "   esc stops the turn"
    if question.outside == "needed":
        rest = replace(question, outside="offered")
        return [*_below(words[:1], width, paint), *_keys(rest, words[1:], width, paint)]
    short = words[: 2 + question.takes_reason + question.offers_network]
    for end in (hint, ""):
        for row in (words, short):  # all in one line, or all but the rule
            if cells("   ".join(row) + end) + 2 <= width:
                first = "  " + "   ".join(_key(word, paint) for word in row)
                first += paint.dim(end) if end else ""
                return [first, *_below(words[len(row) :], width, paint)]
    return [*_in_rows(short, width, paint), *_below(words[len(short) :], width, paint)]


def _in_rows(words: Sequence[str], width: int, paint: Paint) -> list[str]:
    """Put as many keys beside each other as there is room for: each row that is saved shows a row of the question."""
    rows: list[list[str]] = []
    for word in words:
        if rows and cells("   ".join([*rows[-1], word])) + 2 <= width:
            rows[-1].append(word)
        else:
            rows.append([word])
    drawn = (
        _below(row, width, paint)
        if len(row) == 1
        else ["  " + "   ".join(_key(word, paint) for word in row)]
        for row in rows
    )
    return [line for lines in drawn for line in lines]


def withheld_text(question: Question) -> str:
    """Return why "always" is not offered; empty where it is."""
    return f'"Always" is not offered: {unabridged(question.withheld)}' if question.withheld else ""


def answer_text(answer: Answer, question: Question) -> str:
    """Return the answer as text, for the record on the screen."""
    if question.choices is not None:
        return unabridged(f"answer: {answer.reason}") if answer.is_allowed else "[n] no answer"
    offered = choices_of(question, with_network=answer.with_network)
    key = next((key for key, each in offered.items() if each.answer == answer), "r")
    grant = grant_text(question, with_network=answer.with_network)
    words = {
        "r": f"no, because: {unabridged(answer.reason)}",
        "o": "outside the sandbox, once",
        "p": f"always in this project: {grant}",
    }
    return f"[{key}] {words.get(key) or offered[key].text}"


def _title(text: str, width: int, paint: Paint) -> list[str]:
    first, *rest = fold(text, width - 2)
    return [
        paint.warn(first[:1]) + paint.bold(first[1:]),
        *(f"  {paint.bold(line)}" for line in rest),
    ]


def _body(question: Question, width: int, canvas: Canvas, most: int) -> list[str]:
    body, paint, signs = question.preview.body, canvas.paint, canvas.signs
    if question.preview.is_diff:  # nothing else is shortened
        lines = diff_lines(body, width, paint, signs) if body else []
        above, hidden, below = short_diff(lines, body, most) if most else (lines, 0, [])
        left_out = f"    {hidden_text(hidden, signs)}   {UNFOLD_KEY} shows all"
        return [*above, *[paint.dim(left_out)] * bool(hidden), *below]
    if not _has_more(question):
        return []
    if question.call.name == _OWN or question.choices is not None:  # prose
        return [f"    {line}".rstrip() for line in fold(whole_body(question), width - 4)]
    return wrap_marked(whole_body(question), width, "    ", f"  {signs.folded} ")


def _has_more(question: Question) -> bool:
    """Return whether there is more to show than the title says."""
    return question.preview.body != "" or _is_command(question) or question.choices is not None


def _is_command(question: Question) -> bool:
    """Return whether the sandbox of the session, in its folder, is what runs it: a server or another's tool has its own."""
    return question.effect == "execute" and question.call.name == "run_shell"


def _below(
    words: Sequence[str], width: int, paint: Paint, *, marked: str = "", sign: str = ""
) -> list[str]:
    return [
        f"      {line}" if index else f"{sign if word == marked else ' '} {_key(line, paint)}"
        for word in words
        for index, line in enumerate(wrap_words(word, width - 6))
    ]


def _key(word: str, paint: Paint) -> str:
    return paint.accent(word[:3]) + word[3:]
