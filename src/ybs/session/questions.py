"""The open questions of a session: each has an id, and whoever answers first answers it, once.

A frontend may be handed each question as it comes (`Session.confirm`), or list what is open and answer by id, or both:
several frontends of one session see the same questions.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.envelope import MAIN
from ybs.core.open_question import OpenQuestion
from ybs.core.ports import Answer, Confirm, Question
from ybs.security.policy.case import without_identity
from ybs.security.unicode import unabridged
from ybs.tools.builtin.ask_user import AS_TEXT
from ybs.tools.builtin.run_shell import OUTSIDE, RUN


async def by_id(question: Question) -> Answer:
    """Leave a question to `Questions.answer`: the `confirm` of a session that no single frontend asks for."""
    del question
    return await asyncio.get_running_loop().create_future()


#: What the model reads after a plain no.
NO_REASON: Final = "the person said no"
NO: Final = Answer(is_allowed=False, reason=NO_REASON)
#: To a question of who asks itself, where the person can answer by a message alone.
BY_MESSAGE: Final = Answer(is_allowed=False, is_unattended=True, reason=AS_TEXT)
_MEANS: Final = "it runs outside the sandbox: as in your own shell, with your keys, your logins and all your files"


#: Characters of a rule that repeats the command; a longer one would push the question off the screen.
_LONGEST_RULE: Final = 80


class Choice(Struct, frozen=True):
    """One way to answer: its key and its words in a terminal and on the page, its label as a button, and the answer."""

    key: str
    text: str
    label: str
    answer: Answer

    @property
    def wants_words(self) -> bool:
        """Whether the person says it `in_words`."""
        return self.key == "r"


#: The ways to answer a question about a call, by their keys: the words, the label of a button, the answer.
_WAYS: Final = {
    "y": ("yes{how}", "Yes", Answer(is_allowed=True)),
    "i": ("in the sandbox{how}", "Yes, in the sandbox", Answer(is_allowed=True)),
    "n": ("no", "No", NO),
    "r": ("no, because", "", Answer(is_allowed=False)),
    "w": ("{other} network", "Yes, with network", Answer(is_allowed=True, with_network=True)),
    "o": (
        "outside the sandbox, once: as in your own shell, with your keys",
        "Yes, outside the sandbox, once",
        Answer(is_allowed=True, is_outside=True),
    ),
    "a": (
        "always this session: {rule}",
        "Always in this session: {rule}",
        Answer(is_allowed=True, is_for_session=True),
    ),
    "p": ("always in this project", "", Answer(is_allowed=True, is_for_project=True)),
    "e": ("yes, and ask before each edit", "", Answer(is_allowed=True, asks_edits=True)),
}


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
    grant = question.network_grant if with_network else question.grant
    rule = unabridged(without_identity(grant))
    preview = question.preview
    command = unabridged(preview if isinstance(preview, str) else preview.body).strip()
    if command and f"({command})" in rule and (len(rule) > _LONGEST_RULE or "\n" in rule):
        return f"this very command{', with network' * rule.endswith(' with network')}"
    rule = rule.replace("\n", " ")
    return f"{rule}, the project's files" if rule.endswith("(**)") else rule


def choices_of(
    question: Question | OpenQuestion, *, with_network: bool = False
) -> dict[str, Choice]:
    """Return the ways to answer a question by their keys, in the order of the terminal; each frontend draws those that it has.

    `with_network`: a yes gives the network too. "w" changes that; as a button it is a yes with it.
    """
    if question.choices is not None:
        from ybs.tools.calls.describing import one_line  # few have any

        picks = [
            Choice(str(number), one_line(each), each, Answer(is_allowed=True, reason=each))
            for number, each in enumerate(question.choices, 1)
        ]
        words = Choice("r", "something else" if picks else "answer", "", Answer(is_allowed=True))
        found = [*picks, words, Choice("n", "no answer", "No answer", NO)]
        return {each.key: each for each in found}
    return dict(_about_call(question, with_network=with_network))


def _about_call(
    question: Question | OpenQuestion, *, with_network: bool
) -> Iterator[tuple[str, Choice]]:
    rule = grant_text(question, with_network=with_network)
    how = ", with network" if with_network else ", without network" * question.needs_network
    said = {"rule": rule, "how": how, "other": "without" if with_network else "with"}
    # Where it is needed there is no yes out of habit: it would only fail, or mean too much.
    first, last = ("o", "i") if question.outside == "needed" else ("y", "")
    keys = f"{first}n{'r' * question.takes_reason}{last}{'w' * question.offers_network}"
    keys += "o" * (question.outside == "offered") + "a" * bool(rule)
    keys += "p" * (bool(rule) and question.can_be_kept) + "e" * question.offers_asking
    for key in keys:
        text, label, answer = _WAYS[key]
        if with_network and answer.is_allowed and not answer.is_outside:
            answer = replace(answer, with_network=True)
        yield key, Choice(key, text.format(**said), label.format(**said), answer)


def buttons_of(question: OpenQuestion | Question, keys: str) -> list[Choice]:
    """Return the ways to answer for a frontend that has those of `keys` alone, and what may be picked, in this order."""
    offered = choices_of(question)
    picks = [each for key, each in offered.items() if key.isdecimal()]
    return [*picks, *(offered[key] for key in keys if key in offered)]


def in_words(question: Question | OpenQuestion, text: str) -> Answer:
    """Return the answer that is given in words: why not, or what the model wants to know; a plain no where there are none."""
    words = text.strip()
    return Answer(is_allowed=question.choices is not None, reason=words) if words else NO


def by_kind(question: OpenQuestion) -> tuple[OpenQuestion, list[Choice]]:
    """Return a question for clients that go by the kinds of the answers, whatever their labels say: there is one of each at most.

    A yes gives what the title says and no more: what the call asked for, and the way out of the sandbox where it cannot work inside.
    What would give more is asked about once a call asks for it. There are no answers where it is not about a call: a client may allow
    calls by itself, and would seem to say what the person did not.
    """
    if question.choices is not None:
        return question, []
    if question.outside != "needed":
        # No answer that lasts is among the first two: one of them is what Enter takes.
        return question, buttons_of(question, "yna")
    if not question.title.startswith(RUN + OUTSIDE):
        # Before the name of a folder, which may be long.
        title = f"{RUN}{OUTSIDE}{question.title.removeprefix(RUN)}"
        question = replace(question, title=title, warnings=(_MEANS, *question.warnings))
    return question, buttons_of(question, "on")


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
    preview = question.preview
    same = {*OpenQuestion.__struct_fields__} & {*Question.__struct_fields__} - {"preview"}
    return OpenQuestion(
        id=name,
        name=question.call.name,
        title=preview.title,
        preview=preview.body,
        paths=preview.paths,
        is_diff=preview.is_diff,
        **{each: getattr(question, each) for each in same},
    )
