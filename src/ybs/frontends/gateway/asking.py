"""The questions of a session, asked in its chat: with buttons, and with words for who has none.

What a call needs is approved by the owner alone. In a group the question stands where it arose; of a guest's private chat the owner is
asked in theirs. A question of the model's own (`ask_user`) is for the person whose chat it is.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from ybs.core.envelope import MAIN, Envelope
from ybs.core.errors import YbsError
from ybs.core.events import StateChanged
from ybs.core.open_question import OpenQuestion
from ybs.core.ports import Answer
from ybs.frontends.gateway.channel import Button, ChatPlace, Incoming, OutgoingFile
from ybs.frontends.gateway.formatting import literal
from ybs.frontends.gateway.outbox import Outbox, of_ledger
from ybs.frontends.gateway.people import ALPHABET, People
from ybs.frontends.layout import clipped
from ybs.frontends.markdown import fenced
from ybs.security.unicode import shown_whole, unabridged
from ybs.session.questions import Choice, asked_in_words, buttons_of, grant_text, in_words
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.frontends.gateway.fleet import Fleet

#: A longer command or diff goes along as a file, and its beginning stands in the message.
LONGEST_SHOWN: Final = 3_000
_BEGINNING: Final = 1_000
_ID_LENGTH: Final = 4
NO_LONGER: Final = "This is no longer open: nothing was done."
OWNER_ONLY: Final = "Only the owner of this assistant can answer this: nothing was done."
NOBODY: Final = Answer(
    is_allowed=False, reason="no owner of this chat can be asked", is_unattended=True
)
_USAGE: Final = "Usage: `/approve ID yes`, `no` or `always`. The ID stands in the question."
#: The words behind `/approve ID`, and the keys of the answers that they mean.
_WORDS: Final = {"yes": "yi", "no": "n", "always": "a", "network": "w"}
#: So many are kept, the newest.
_MOST_BUTTONS: Final = 5_000
_LONGEST_LABEL: Final = 60
_log = logging.getLogger(__name__)


def plain(text: str) -> str:
    """Return Markdown that shows a text as it is, in one line: names and titles are chosen by others."""
    return literal(unabridged(text))


async def nothing() -> None:
    """Keep nothing: the files of one machine are enough."""


class _Chat:
    """A chat whose session is followed."""

    def __init__(
        self, place: ChatPlace, person: str, session: Session, keep: Callable[[], Awaitable[None]]
    ) -> None:
        self.keep = keep
        self.place, self.person, self.session = place, person, session
        self.asked = dict[str, _Asked]()


class _Asked:
    """A question that was posted: `id` is how people name it, `posts` are its messages: their ids, chats and texts."""

    def __init__(self, chat: _Chat, question: OpenQuestion) -> None:
        self.chat, self.question = chat, question
        self.id = "".join(secrets.choice(ALPHABET) for _ in range(_ID_LENGTH))
        #: None of them holds for the project or leads outside the sandbox.
        self.choices = buttons_of(question, "yiwan")
        self.is_own = question.name == "ask_user" and question.choices is not None
        self.posts = list[tuple[str, ChatPlace, str]]()
        self.posting: asyncio.Task[None] | None = None
        self.outcome = "This is no longer asked."

    @property
    def title(self) -> str:
        """What is asked, in one line of Markdown."""
        return plain(self.question.preview if self.is_own else self.question.title)[:300]

    def is_of(self, incoming: Incoming) -> bool:
        """Return whether it is the model's own question, to the person who sends this."""
        is_here = self.is_own and _is_same(incoming.place, self.chat.place)
        return is_here and incoming.person == self.chat.person

    def answer(self, answer: Answer, said: str, by: Incoming) -> bool:
        """Answer it, and return whether it was open."""
        if not self.chat.session.questions.answer(self.question.id, answer):
            return False
        self.outcome = f"**{plain(said)}** ({plain(by.name)})"
        return True


class Buttons:
    """The buttons that may still be pressed: a token stands for a choice, in one chat, once. They live as long as the process.

    What a button is for does not outlive the process either: a question is asked anew when its turn is taken up, with new buttons.
    """

    def __init__(self, worker: int = 0) -> None:
        """`worker` is the number of the gateway among those that share a database; each token begins with it."""
        self._worker, self._shown = worker, dict[str, tuple[ChatPlace, Any, int]]()

    def show(
        self, of: object, place: ChatPlace, labels: Sequence[str]
    ) -> tuple[tuple[Button], ...]:
        """Return buttons for a chat, each in a row of its own, by which one of the labels is chosen. `of` is what `pressed` gives back."""
        rows = list[tuple[Button]]()
        for number, label in enumerate(labels):
            token = f"{self._worker}.{secrets.token_urlsafe(16)}"
            self._shown[token] = place, of, number
            rows.append((Button(clipped(unabridged(label), _LONGEST_LABEL), token),))
        for token in list(self._shown)[: max(0, len(self._shown) - _MOST_BUTTONS)]:
            del self._shown[token]
        return tuple(rows)

    def pressed(self, incoming: Incoming) -> tuple[Any, int] | None:
        """Return what a button is of, and its place among the labels; None where no such button can be pressed in this chat."""
        place, of, number = self._shown.get(incoming.button, (None, None, 0))
        return (of, number) if place is not None and _is_same(place, incoming.place) else None

    def withdraw(self, of: object) -> None:
        """Have no button of this pressed any more."""
        self._shown = {token: each for token, each in self._shown.items() if each[1] is not of}


class ChatQuestions:
    """Posts the questions of sessions and takes the answers."""

    def __init__(self, outbox: Outbox, people: People, fleet: "Fleet | None" = None) -> None:
        self.outbox, self.people, self.fleet = outbox, people, fleet
        self.buttons = Buttons(fleet.number if fleet else 0)
        self._chats = set[_Chat]()
        self._tasks = set[asyncio.Task[None]]()

    def follow(
        self,
        key: str,
        place: ChatPlace,
        session: Session,
        keep: Callable[[], Awaitable[None]] = nothing,
    ) -> Callable[[], None]:
        """Ask in its chat whatever the session asks, until the returned function is called.

        `keep` has the transcript kept first: who takes the turn up asks again then, and does not take the call for one that had begun.
        """
        person = unquote(key.rpartition(":")[2])
        chat = _Chat(place, person, session, keep)
        self._chats.add(chat)

        def hear(envelope: Envelope) -> None:
            if isinstance(envelope.event, StateChanged):
                self._look(chat, envelope.event.questions)

        leave = session.subscribe(hear, follows=True)

        def left() -> None:
            leave()
            self._look(chat, ())
            self._chats.discard(chat)

        return left

    def _look(self, chat: _Chat, questions: Sequence[OpenQuestion]) -> None:
        """Post what is asked now, and put what came of it in the place of what is not any more."""
        for question_id in chat.asked.keys() - {each.id for each in questions}:
            self._do(self._close(chat.asked.pop(question_id)))
        for question in questions:
            if question.id not in chat.asked:
                asked = chat.asked[question.id] = _Asked(chat, question)
                asked.posting = self._do(self._ask(asked))

    def _do(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settled(self) -> None:
        """Wait until all that is to be posted now is in the ledger."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    # What is posted

    async def _ask(self, asked: _Asked) -> None:
        await asked.chat.keep()
        try:
            for place in await self._places(asked):
                await self._post(asked, place)
        except YbsError as error:
            _log.warning("a question could not be posted: %s", type(error).__name__)
        if not asked.posts:
            asked.chat.session.questions.answer(asked.question.id, NOBODY)

    async def _places(self, asked: _Asked) -> list[ChatPlace]:
        """Return where a question is posted: in the chat, or to the owners where it is a guest's private one."""
        here = asked.chat.place
        if asked.is_own or here.kind == "group":
            return [here]
        places = await self.people.places_of_owners(here.channel, here.account)
        if here in places:
            return [here]
        if places:
            waits = f"{asked.title}\n\nThis needs the owner's approval; they were asked."
            await self.outbox.post(here, waits, id=f"ask:{asked.id}:waits")
        return places

    async def _post(self, asked: _Asked, place: ChatPlace) -> None:
        if not asked.is_own and len(asked.question.preview) > LONGEST_SHOWN:
            await self._post_file(asked, place)
        buttons = self.buttons.show(asked, place, [each.label for each in asked.choices])
        post_id = f"ask:{asked.id}:{len(asked.posts)}"
        text = _text_of(asked, is_elsewhere=place != asked.chat.place)
        whole = f"{text}\n\n{_how_of(asked)}"
        await self.outbox.post(place, whole, id=post_id, buttons=buttons)
        if self.fleet is not None:
            await self.fleet.note_question(asked.id, place, asked.title)
        asked.posts.append((post_id, place, text))

    async def _post_file(self, asked: _Asked, place: ChatPlace) -> None:
        ending = "diff" if asked.question.is_diff else "txt"
        name = f"question-{asked.id}.{ending}"
        data = shown_whole(asked.question.preview).encode()
        file = OutgoingFile(name=name, data=data, media_type="text/plain")
        text, post_id = f"Question `{asked.id}` in full:", f"ask:{asked.id}:file{len(asked.posts)}"
        await self.outbox.post(place, text, id=post_id, file=file)

    async def _close(self, asked: _Asked) -> None:
        if asked.posting is not None:
            await asyncio.wait((asked.posting,))
        self.buttons.withdraw(asked)
        if self.fleet is not None:
            await self.fleet.forget_question(asked.id)
        for post_id, place, text in asked.posts:
            try:
                done = f"{text}\n\n{asked.outcome}"
                await self.outbox.post(place, done, id=f"{post_id}:done", edits=of_ledger(post_id))
            except YbsError as error:
                _log.warning("a question could not be closed: %s", type(error).__name__)

    # What is answered

    async def worker_of(self, incoming: Incoming, words: str) -> int:
        """Return the number of the gateway that shows a button, or asks the question which words behind `/approve` name; 0: that of the chat."""
        if incoming.button:
            number = incoming.button.partition(".")[0]
            return int(number) if number.isascii() and number.isdecimal() else 0
        id = words.partition(" ")[0].upper()
        known = await self.fleet.questions_in(incoming.place) if self.fleet and id else ()
        return next((each.worker for each in known if each.id == id), 0)

    def is_question(self, of: object) -> bool:
        """Return whether a button is of a question."""
        return isinstance(of, _Asked)

    async def choose(self, asked: Any, number: int, incoming: Incoming) -> str:
        """Take the press of a button; return what is to be said about it, nothing where the message itself changes."""
        if not await self._may_answer(asked, incoming):
            return OWNER_ONLY
        choice = asked.choices[number]
        return "" if asked.answer(choice.answer, choice.label, incoming) else NO_LONGER

    async def say(self, incoming: Incoming, words: str) -> bool:
        """Answer the model's oldest own question in this chat in words; return whether there was one for this person."""
        for asked in self._open_in(incoming.place):
            if asked.is_of(incoming):
                return asked.answer(Answer(is_allowed=True, reason=words), words[:200], incoming)
        return False

    async def approve(self, incoming: Incoming, argument: str) -> str:
        """Carry out `/approve ID yes|no|always`; return what is to be said about it, nothing where the message itself changes."""
        asked_here = self._open_in(incoming.place)
        name, _, words = argument.partition(" ")
        word, _, reason = words.strip().partition(" ")
        asked = next((each for each in asked_here if each.id == name.upper()), None)
        if asked is None:
            known = await self.fleet.questions_in(incoming.place) if self.fleet else asked_here
            lines = [f"- `{each.id}` {each.title}" for each in known]
            first = "No question of this ID is open here." if name else ""
            return "\n".join(filter(None, (first, *(lines or ["Nothing is asked here."]))))
        if not await self._may_answer(asked, incoming):
            return OWNER_ONLY
        chosen = _chosen(asked, word.lower(), reason.strip(), words.strip())
        if chosen is None:
            return _USAGE
        return "" if asked.answer(chosen.answer, chosen.label, incoming) else NO_LONGER

    def _open_in(self, place: ChatPlace) -> list[_Asked]:
        """Return the questions that were posted in a chat and are open."""
        return [
            asked
            for chat in self._chats
            for asked in chat.asked.values()
            if any(_is_same(place, posted) for _, posted, _ in asked.posts)
        ]

    async def _may_answer(self, asked: _Asked, incoming: Incoming) -> bool:
        if asked.is_of(incoming):
            return True
        return await self.people.is_owner(incoming)


def _is_same(one: ChatPlace, other: ChatPlace) -> bool:
    return (one.channel, one.account, one.chat) == (other.channel, other.account, other.chat)


def _chosen(asked: _Asked, word: str, reason: str, words: str) -> Choice | None:
    """Return the answer that words mean; None where they mean none that is offered."""
    if asked.question.choices is not None:
        by_number = {str(number): each for number, each in enumerate(asked.choices, 1)}
        own = Choice("r", "", words[:200], in_words(asked.question, words)) if words else None
        return by_number.get(words, own)
    if reason:
        return Choice("r", "", "No", in_words(asked.question, reason)) if word == "no" else None
    return _meant(asked, word)


def _meant(asked: _Asked, word: str) -> Choice | None:
    keys = _WORDS.get(word, "")
    return next((each for each in asked.choices if each.key in keys), None)


def _text_of(asked: _Asked, *, is_elsewhere: bool) -> str:
    """Return what is asked: the whole command or change, and why."""
    question = asked.question
    who = "" if question.agent in ("", MAIN) else f"{plain(question.agent)}: "
    if asked.is_own:
        return asked_in_words(question)
    lines = [f"**{who}{plain(question.title)}?**"]
    if is_elsewhere:
        lines.append(f"A guest's session asks ({plain(asked.chat.person)}).")
    if shown := shown_whole(question.preview):
        if len(question.preview) > LONGEST_SHOWN:
            shown = f"{shown[:_BEGINNING]}\n… (the whole of it is in the file question-{asked.id})"
        lines.append(fenced(shown, "diff" if question.is_diff else ""))
    lines += [f"Asked because {plain(question.reason)}\\."] if question.reason else []
    lines += [f"**Warning: {plain(each)}**" for each in question.warnings]
    if any(each.key == "a" for each in asked.choices):  # a button may show only its beginning
        lines.append(f"Always would allow {plain(grant_text(question))} in this session\\.")
    return "\n\n".join(lines)


def _how_of(asked: _Asked) -> str:
    """Return how a question is answered."""
    if asked.is_own:
        return "Choose, or answer in your own words." if asked.choices[1:] else "Answer in words."
    words = [word for word in _WORDS if _meant(asked, word)]
    return f"Without buttons: `/approve {asked.id} {'|'.join(words)}`"
