"""The open questions of a session: each has an id, and whoever answers first answers it, once.

A frontend may be handed each question as it comes (`Session.confirm`), or list what is open and answer by id, or both:
several frontends of one session see the same questions.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.envelope import MAIN
from ybs.core.open_question import OpenQuestion
from ybs.core.ports import Answer, Confirm, Question
from ybs.security.unicode import unabridged
from ybs.tools.builtin.ask_user import AS_TEXT
from ybs.tools.builtin.run_shell import OUTSIDE, RUN


async def by_id(question: Question) -> Answer:
    """Leave a question to `Questions.answer`: the `confirm` of a session that no single frontend asks for."""
    del question
    return await asyncio.get_running_loop().create_future()


#: What the model reads after a plain no.
NO: Final = Answer(is_allowed=False, reason="the person said no")
#: To a question of who asks itself, where the person can answer by a message alone.
BY_MESSAGE: Final = Answer(is_allowed=False, is_unattended=True, reason=AS_TEXT)
_MEANS: Final = "it runs outside the sandbox: as in your own shell, with your keys, your logins and all your files"


#: Characters of a rule that repeats the command; a longer one would push the question off the screen.
_LONGEST_RULE: Final = 80


class Choice(Struct, frozen=True):
    """One way to answer, for a frontend that shows buttons: its label, and how long it holds."""

    label: str
    answer: Answer
    kind: Literal["once", "always", "no"] = "once"


def asker_of(question: Question | OpenQuestion) -> str:
    """Return who asks, in words that every frontend shows before any of the question: its text may say that somebody else does."""
    name = " ".join((question.server or question.agent).split())
    if question.server:
        return unabridged(f"The MCP server {name} asks")
    if question.choices is None:
        return "ybs asks"
    return "The model asks" if name in ("", MAIN) else unabridged(f"The sub-agent {name} asks")


def asked_in_words(question: OpenQuestion) -> str:
    """Return a question of who asks itself as text: several lines are marked, so that none passes for one of ybs's own."""
    lines = unabridged(question.preview).split("\n")
    if len(lines) == 1:
        return f"{asker_of(question)}: {lines[0]}"
    return "\n".join([f"{asker_of(question)}:", "", *(f"> {line}".rstrip() for line in lines)])


def grant_text(question: Question | OpenQuestion, *, with_network: bool = False) -> str:
    """Return the rule that "always" stores, in one line, and in words where its grammar is not plain or it is the whole command."""
    rule = unabridged(question.network_grant if with_network else question.grant)
    preview = question.preview
    command = unabridged(preview if isinstance(preview, str) else preview.body).strip()
    if command and f"({command})" in rule and (len(rule) > _LONGEST_RULE or "\n" in rule):
        return f"this very command{', with network' * rule.endswith(' with network')}"
    rule = rule.replace("\n", " ")
    return f"{rule}, the project's files" if rule.endswith("(**)") else rule


def choices_of(question: OpenQuestion) -> Iterator[Choice]:
    """Yield the ways to answer a question, those of the terminal, but for words of the person's own."""
    if question.choices is not None:
        for each in question.choices:
            yield Choice(each, Answer(is_allowed=True, reason=each))
        yield Choice("No answer", NO, "no")
        return
    plain = "Yes, in the sandbox" if question.outside == "needed" else "Yes"
    yield Choice(plain, Answer(is_allowed=True))
    if question.offers_network:
        yield Choice("Yes, with network", Answer(is_allowed=True, with_network=True))
    if question.outside:
        yield Choice("Yes, outside the sandbox, once", Answer(is_allowed=True, is_outside=True))
    if rule := grant_text(question):
        always = Answer(is_allowed=True, is_for_session=True)
        yield Choice(f"Always in this session: {rule}", always, "always")
        if question.can_be_kept:
            always = Answer(is_allowed=True, is_for_project=True)
            yield Choice(f"Always in this project: {rule}", always, "always")
    yield Choice("No", NO, "no")


def by_kind(question: OpenQuestion) -> tuple[OpenQuestion, list[Choice]]:
    """Return a question for clients that go by the kinds of the answers, whatever their labels say: there is one of each at most.

    A yes gives what the title says and no more: what the call asked for, and the way out of the sandbox where it cannot work inside.
    What would give more is asked about once a call asks for it. There are no answers where it is not about a call: a client may allow
    calls by itself, and would seem to say what the person did not.
    """
    if question.choices is not None:
        return question, []
    if question.outside == "needed":
        once = Answer(is_allowed=True, is_outside=True)
        if not question.title.startswith(RUN + OUTSIDE):
            # Before the name of a folder, which may be long.
            title = f"{RUN}{OUTSIDE}{question.title.removeprefix(RUN)}"
            question = replace(question, title=title, warnings=(_MEANS, *question.warnings))
        return question, [Choice("Yes, outside the sandbox, once", once), Choice("No", NO, "no")]
    # No answer that lasts is among the first two: one of them is what Enter takes.
    choices = [Choice("Yes", Answer(is_allowed=True)), Choice("No", NO, "no")]
    if rule := grant_text(question):
        always = Answer(is_allowed=True, is_for_session=True)
        choices.append(Choice(f"Always in this session: {rule}", always, "always"))
    return question, choices


class Questions:
    """The open questions of a session, oldest first. `changed` is called when there is one more or one less."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._open: dict[str, tuple[OpenQuestion, asyncio.Future[Answer]]] = {}
        self._names = set[str]()

    @property
    def open(self) -> tuple[OpenQuestion, ...]:
        """Those that nobody has answered."""
        return tuple(question for question, _ in self._open.values())

    def answer(self, question_id: str, answer: Answer) -> bool:
        """Answer a question; return False where none of this id is open (any more), and nothing was done."""
        _, answered = self._open.get(question_id, (None, None))
        if answered is None or answered.done():
            return False
        answered.set_result(answer)
        return True

    async def ask(self, question: Question, confirm: Confirm) -> Answer:
        """Ask by `confirm`, and return the first answer: what it gives, or what came by the id."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        name = self._name(question.call.id)
        self._open[name] = _shown(name, question), answered
        asking = asyncio.ensure_future(confirm(question))
        try:
            self._changed()
            await asyncio.wait((asking, answered), return_when=asyncio.FIRST_COMPLETED)
            return answered.result() if answered.done() else asking.result()
        finally:
            del self._open[name]
            asking.cancel()
            await asyncio.wait((asking,))  # it has left the screen
            self._changed()

    def _name(self, call_id: str) -> str:
        """Return the call's id, or one made of it where a question had that: a late answer to one is none to another."""
        name, count = call_id or "question", 1
        while name in self._names:
            count += 1
            name = f"{call_id or 'question'}/{count}"
        self._names.add(name)
        return name


def _shown(name: str, question: Question) -> OpenQuestion:
    return OpenQuestion(
        id=name,
        name=question.call.name,
        title=question.preview.title,
        preview=question.preview.body,
        warnings=question.warnings,
        reason=question.reason,
        grant=question.grant,
        can_be_kept=question.can_be_kept,
        offers_network=question.offers_network,
        outside=question.outside,
        choices=question.choices,
        server=question.server,
        agent=question.agent,
        effect=question.effect,
        withheld=question.withheld,
        network_grant=question.network_grant,
        takes_reason=question.takes_reason,
        needs_network=question.needs_network,
        offers_asking=question.offers_asking,
        paths=question.preview.paths,
        is_diff=question.preview.is_diff,
    )
