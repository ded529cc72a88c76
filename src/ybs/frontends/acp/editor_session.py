"""One session of an editor: its prompts go into the inbox, its events come out as updates, its questions are asked there."""

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

from acp import RequestError, helpers, schema
from acp.utils import serialize_params
from pydantic import ValidationError

from ybs.commands.advice import told
from ybs.core.envelope import MAIN, Envelope
from ybs.core.errors import YbsError
from ybs.core.events import Noticed, StateChanged, TurnFinished, UserSaid
from ybs.core.messages import Usage
from ybs.core.open_question import OpenQuestion
from ybs.core.ports import Answer
from ybs.core.time_limits import time_limit
from ybs.frontends.acp.command import plainly
from ybs.frontends.acp.config_options import ConfigChoices
from ybs.frontends.acp.handshake import EditorOffer
from ybs.frontends.acp.prompts import Prompted, prompted
from ybs.frontends.acp.updates import Update, Updates, chunk, note, plan_of
from ybs.frontends.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, Send
from ybs.frontends.layout import clipped
from ybs.frontends.markdown import fenced, markdown_of, spanned
from ybs.frontends.serve.sessions import HostedSession, Watcher
from ybs.security.unicode import shown_whole, unabridged
from ybs.session.feed import FellBehind
from ybs.session.inbox import InboxLine, order_of
from ybs.session.questions import BY_MESSAGE, NO, asked_in_words, by_kind, in_words
from ybs.session.reply import Outcome, Reply
from ybs.session.running_task import Stopped

#: What an editor raises that cannot do what it was asked, answers in another form, or has gone.
FAILURES: Final = (RequestError, ValidationError, ConnectionError)
_KINDS: Final[dict[str, schema.PermissionOptionKind]] = {
    "y": "allow_once",
    "o": "allow_once",
    "a": "allow_always",
    "n": "reject_once",
}
_NOBODY: Final = Answer(
    is_allowed=False, reason="the editor could not ask the person", is_unattended=True
)
#: Columns of a command in a title.
_LONGEST_COMMAND: Final = 200
_PICKED, _OWN = "answer", "own_words"


async def asked(client: Any, session_id: str, question: OpenQuestion, *, has_forms: bool) -> Answer:
    """Ask the person by the editor, and return the answer; an editor that cannot ask is nobody. Raises ConnectionError where it has gone."""
    try:
        if question.choices is not None and has_forms:
            return await _by_form(client, session_id, question, question.choices)
        return await _by_permission(client, session_id, question)
    except (RequestError, ValidationError):
        return _NOBODY


async def _by_permission(client: Any, session_id: str, question: OpenQuestion) -> Answer:
    question, offered = by_kind(question)
    if not offered:
        return BY_MESSAGE
    choices = {str(number): choice for number, choice in enumerate(offered)}
    options = [
        schema.PermissionOption(option_id=key, name=unabridged(each.label), kind=_KINDS[each.key])
        for key, each in choices.items()
    ]
    text = helpers.tool_content(helpers.text_block(_text_of(question)))
    call = helpers.update_tool_call(
        question.id.partition("/")[0], title=_title_of(question), content=[text]
    )
    outcome = (await client.request_permission(session_id, call, options)).outcome
    chosen = choices.get(getattr(outcome, "option_id", ""))
    return chosen.answer if chosen is not None else NO


def _title_of(question: OpenQuestion) -> str:
    """Return all that some editors show: who would do what, and the beginning of a command."""
    who = "" if question.agent in ("", MAIN) else f"{question.agent}: "
    title = unabridged(who + question.title)
    if question.name != "run_shell":
        return title
    return f"{title}: {spanned(clipped(unabridged(question.preview), _LONGEST_COMMAND))}"


def _text_of(question: OpenQuestion) -> str:
    """Return what the person reads before they answer."""
    language = "diff" if question.is_diff else ""
    lines = [fenced(shown_whole(question.preview), language)] if question.preview else []
    # Names in them are chosen by others, and an editor draws Markdown.
    lines += [fenced(f"Asked because {unabridged(question.reason)}.")] if question.reason else []
    lines += [f"**Warning**\n{fenced(unabridged(each))}" for each in question.warnings]
    return "\n\n".join(lines) or unabridged(question.title)


async def _by_form(
    client: Any, session_id: str, question: OpenQuestion, choices: tuple[str, ...]
) -> Answer:
    field = schema.ElicitationStringPropertySchema
    known = {str(number): choice for number, choice in enumerate(choices)}
    fields: dict[str, Any] = {}
    if known:
        picks = [
            schema.EnumOption(const=key, title=unabridged(each)) for key, each in known.items()
        ]
        fields[_PICKED] = field(type="string", title="Answer", one_of=picks)
    title = "Or in your own words" if known else "Answer"
    fields[_OWN] = field(type="string", title=title)
    form = schema.ElicitationSchema(properties=fields, required=[] if known else [_OWN])
    mode = schema.ElicitationFormSessionMode(session_id=session_id, requested_schema=form)
    reply = await client.create_elicitation(asked_in_words(question), mode)
    said: dict[str, Any] = (reply.content if reply.action == "accept" else None) or {}
    words = str(said.get(_OWN) or "").strip() or known.get(str(said.get(_PICKED)), "")
    return in_words(question, words)


StopReason: TypeAlias = Literal[
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"
]
AUTH_REQUIRED: Final = -32000
#: A stopped prompt is answered after so long, whatever is still being put away.
STOP_SECONDS: Final = 0.08
#: What running calls print is shown so often.
_LIVE_SECONDS: Final = 0.1
#: So long an editor has to give or take a file.
_FILE_SECONDS: Final = 2.0
_SETUP: Final = frozenset({"set_up", "set_key", "save_key", "choose_provider"})
_PLAN: Final = "`/plan go` carries the plan out with edits accepted, `/plan go ask` in ask, `/plan go auto` in auto; or say what to change."
_EXCHANGED: Final = (
    "Another frontend goes on with another conversation: what follows belongs to {}."
)
_ON_OTHERS: Final = "This is answered on another screen of the session."
_CUT_SHORT: Final = "ybs ended in the midst of the last turn; /retry goes on with it."
#: Commands that open another session: the editor does that, and what the person does instead.
NOT_HERE: Final = {
    **dict.fromkeys(
        ("new", "sessions", "resume", "fork"), "Choose or open a session in the editor."
    ),
    **dict.fromkeys(("incognito", "profile"), "Start `ybs acp` with that option."),
}
#: Commands that are not offered: they need a terminal, or change what one shows.
_OF_TERMINALS: Final = frozenset(("quit", "copy", "setup", "doctor", "stream", "verbose"))
_log = logging.getLogger(__name__)
_log.addFilter(plainly)
_T = TypeVar("_T")


class EditorFiles:
    """The editor as `Unsaved` sees it: asked for files as far as it has offered that."""

    def __init__(self, client: Any, offer: EditorOffer) -> None:
        self.client, self.offer, self.session_id = client, offer, ""
        self.reads = offer.reads

    def belong_to(self, session_id: str) -> None:
        """Ask for the files of this session."""
        self.session_id = session_id

    async def read(self, path: Path) -> str | None:
        """Return the text that it holds of a file; None where it does not say."""
        with suppress(*FAILURES, TimeoutError):
            async with time_limit(_FILE_SECONDS):
                return (await self.client.read_text_file(self.session_id, str(path))).content
        return None

    async def write(self, path: Path, text: str) -> None:
        """Have it hold a text of a file, saved."""
        if self.offer.writes:
            with suppress(*FAILURES, TimeoutError):
                async with time_limit(_FILE_SECONDS):
                    await self.client.write_text_file(self.session_id, str(path), text)


class EditorSession(Watcher):
    """An editor in a session, beside others or alone. `id` is the name that it is saved under, by which it can be loaded later."""

    is_subscribed = True

    def __init__(self, held: HostedSession, client: Any, send: Send, files: EditorFiles) -> None:
        self.held, self.session, self._feed = held, held.session, held.feed
        self._client, self._send, self._files = client, send, files
        self.id = self.session.journal.begin()
        files.belong_to(self.id)
        held.unsaved.join(files)
        held.watchers.append(self)
        self.session.inbox.hear(self)
        self.choices = ConfigChoices(self.session)
        self._updates, self._state = Updates(self.session.folder), StateChanged()
        self._notes = list[str]()
        #: Of each prompt that waits for what comes of it: set where it is stopped.
        self._prompts = set[asyncio.Event]()
        self._stops = 0
        self._asking = dict[str, asyncio.Task[None]]()
        self._tasks = set[asyncio.Task[Any]]()
        #: What waits for what comes of prompts: it goes on when the editor has gone.
        self._sent = set[asyncio.Task[Any]]()
        self._composing, self._moved = asyncio.Lock(), asyncio.Event()
        #: The number of the newest event, of the newest that the editor was told, and of the last before it came.
        self._newest = self._told = self._joined = self._feed.number
        #: The numbers of what others said, and of the ends of their turns; and the newest line of the editor's own that was said.
        self._of_others = set[int]()
        self._own_line: InboxLine | None = None
        self._live_timer: asyncio.TimerHandle | None = None
        self._leave = self.session.subscribe(self._count, follows=True)

    def start(self, *, is_new: bool) -> None:
        """Begin to tell the editor what happens; the first of it comes behind the answer that names the session."""
        if not self._tasks:
            self._do(self._pump())
        self._do(self._introduce(is_new=is_new))

    def note(self, text: str) -> None:
        """Say something once it is begun."""
        self._notes.append(text)

    async def leave(self) -> None:
        """Leave the session: the editor is told nothing more, and its prompts are answered as stopped. What they have begun goes on."""
        self._leave()
        self.held.unsaved.leave(self._files)
        self.held.watchers.remove(self)
        self.session.inbox.forget(self)
        self._end()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def closed(self, message: str) -> None:
        """Hear that the session is closed, and why."""
        self._do(self._tell(note(message)))
        self._end()

    def _end(self) -> None:
        self._told = self._newest
        self._moved.set()
        for stopped in self._prompts:
            stopped.set()

    async def _introduce(self, *, is_new: bool) -> None:
        from ybs.commands.registry import commands_of  # with the first session

        left_out = {*NOT_HERE, *_OF_TERMINALS}
        commands = [each for each in commands_of(self.session) if each.names[0] not in left_out]
        offered = [
            {"name": each.names[0], "description": each.summary, **_input(each.arguments)}
            for each in commands
        ]
        kind = "available_commands_update"
        await self._tell({"sessionUpdate": kind, "availableCommands": offered})
        for text in (*self._servers(), *self._notes, *self.session.warnings):
            await self._tell(note(text))
        if not is_new:
            await self._tell_usage()
        with suppress(YbsError):  # what the first prompt needs, and which models there are
            await self.session.prepare()
            await self.choices.look()
            await self._tell_choices()

    def _servers(self) -> Iterator[str]:
        """Say of each MCP server of the editor what it is and what it is given."""
        environment = self.session.environment
        if environment.has_mcp():
            from ybs.tools.mcp.settings import given

            for each in environment.mcp.connections.values():
                if each.server.is_editors:
                    needs = given(environment.mcp.needs_of(each.server))
                    yield f"The editor's MCP server {each.server.name} (`{each.server.shown}`) {needs}."

    async def replay(self) -> None:
        """Tell the editor what was said and done before: what was saved, and what has happened since."""
        updates = Updates(self.session.folder) if self._tasks else self._updates
        newest = self._newest if self._tasks else self._joined
        since = [each for each in self._feed.earlier() if each.number <= newest]
        for envelope in (*self.session.journal.earlier, *since):
            if not isinstance(envelope.event, Noticed):
                for update in updates.of(envelope, is_replayed=True):
                    await self._tell(update)
        for update in updates.running():
            await self._tell(update)
        if self.session.is_cut_short:
            await self._tell(note(_CUT_SHORT))

    # What the editor asks for

    async def prompt(self, blocks: Sequence[Any]) -> schema.PromptResponse:
        """Take a prompt, behind those that wait, and return how its turn ended. Raises RequestError."""
        try:
            said = prompted(blocks)
        except YbsError as error:
            raise RequestError(INVALID_PARAMS, str(error)) from error
        if not (said.text.strip() or said.images):
            return schema.PromptResponse(stop_reason="end_turn")
        may_run = not said.is_joined and said.text.startswith(said.typed)
        is_order = may_run and order_of(said.typed) != ""
        if is_order and (refusal := self._refusal_of(said.typed)):
            await self._tell(chunk("agent_message", refusal))
            return schema.PromptResponse(stop_reason="end_turn")
        text, stopped = said.typed if is_order else said.text, asyncio.Event()
        result = self._result_of(said, text, is_for_model=not is_order)
        working = self._do(result, self._sent)
        stopping = asyncio.create_task(stopped.wait())
        self._prompts.add(stopped)
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            # Once it is stopped nothing comes of it, whatever is still being put away.
            return await self._answer(text, None if stopped.is_set() else working.result())
        except Stopped:
            return await self._answer(text, None)
        except YbsError as error:
            await self._flushed()
            raise failure(error) from error
        finally:
            self._prompts.remove(stopped)
            stopping.cancel()

    async def _result_of(self, said: Prompted, text: str, *, is_for_model: bool) -> Reply | Outcome:
        """Take a line, and return what comes of it. Raises YbsError."""
        stops = self._stops
        async with self._composing:
            for path in said.paths:
                await self.held.unsaved.look(path)
        if stops != self._stops:
            raise Stopped("It was stopped before it was sent.")
        return await self.session.inbox.result_of(
            text,
            typed=said.typed,
            linked=said.linked,
            is_for_model=is_for_model,
            images=said.images,
            frontend=self,
        )

    def _refusal_of(self, typed: str) -> str:
        """Return why a line is not run in an editor; nothing where it is."""
        if typed.startswith("!"):
            return ""
        from ybs.commands.registry import command_at

        command = command_at(typed.split(maxsplit=1)[0], self.session)
        name = command.names[0] if command is not None else ""
        return f"/{name} is not available here. {NOT_HERE[name]}" if name in NOT_HERE else ""

    async def _answer(self, line: str, result: Reply | Outcome | None) -> schema.PromptResponse:
        await self._flushed()
        match result:
            case None:
                return schema.PromptResponse(stop_reason="cancelled")
            case Reply():
                if text := markdown_of(result.without_terminal(line)):
                    await self._tell(chunk("agent_message", text))
                return schema.PromptResponse(stop_reason="end_turn")
            case Outcome():
                await self._tell_usage()
                if result.plan:
                    await self._tell(note(_PLAN))
                used = usage_of(result.finished.usage + result.others)
                reason = await self._reason_of(result.finished)
                return schema.PromptResponse(stop_reason=reason, usage=used)

    async def _reason_of(self, finished: TurnFinished) -> StopReason:
        """Return why a turn ended, in the protocol's words. Raises RequestError where it failed."""
        error, last = (
            YbsError(finished.message, remedies=finished.remedies),
            self._updates.stop_reason,
        )
        match finished.reason:
            case "done" | "dry_run":
                return "max_tokens" if last == "length" else "end_turn"
            case "interrupted":
                return "cancelled"
            case "error" if last != "refusal":
                raise failure(error)
            case reason:
                await self._tell(note(told(error)))
                return "refusal" if reason == "error" else "max_turn_requests"

    def cancel(self) -> None:
        """Stop the running turn, and what waits behind it."""
        self._stops += 1
        self.session.inbox.stop()
        for stopped in self._prompts:
            asyncio.get_running_loop().call_later(STOP_SECONDS, stopped.set)

    # What the session tells

    def _count(self, envelope: Envelope) -> None:
        self._newest, event = envelope.number, envelope.event
        if not envelope.is_main or not isinstance(event, UserSaid | TurnFinished):
            return
        now = self.session.inbox.now
        is_own = now is not None and now.sender.frontend is self
        if is_own and isinstance(event, UserSaid):  # words behind the first steer the turn
            is_own, self._own_line = self._own_line is not now, now
        if not is_own:
            self._of_others.add(envelope.number)

    def hear_reply(self, line: InboxLine, reply: Reply) -> None:
        """Show what a command of another frontend answered."""
        self._do(self._show_reply(line.text, reply))

    async def _show_reply(self, line: str, reply: Reply) -> None:
        await self._flushed()
        await self._tell(chunk("user_message", line))
        await self._tell(chunk("agent_message", markdown_of(reply)))

    async def _flushed(self) -> None:
        """Wait until the editor was told all that has happened until now."""
        newest = self._newest
        while self._told < newest:
            self._moved.clear()
            await self._moved.wait()

    async def _pump(self) -> None:
        number = self._joined
        while True:
            try:
                async for envelope in self._feed.listen(number):
                    await self._show(envelope)
                    self._told = envelope.number
                    self._moved.set()
                return
            except FellBehind as error:  # the editor reads slowly: it gets what is whole
                number = error.number

    async def _show(self, envelope: Envelope) -> None:
        event, is_others = envelope.event, envelope.number in self._of_others
        if isinstance(event, StateChanged):
            await self._show_state(event)
            return
        is_said = is_others and isinstance(event, UserSaid)
        for update in self._updates.of(envelope, is_replayed=is_said):
            await self._tell(update)
        if is_others and isinstance(event, TurnFinished):
            self._of_others.clear()
            if event.message:
                await self._tell(note(told(YbsError(event.message, remedies=event.remedies))))
            await self._tell_usage()
        if self._updates.has_live and self._live_timer is None:
            loop = asyncio.get_running_loop()
            self._live_timer = loop.call_later(_LIVE_SECONDS, self._show_live)

    def _show_live(self) -> None:
        self._live_timer = None
        for update in self._updates.live():
            self._do(self._tell(update))

    async def _show_state(self, state: StateChanged) -> None:
        before, self._state = self._state, state
        if before.name and state.name != before.name:
            await self._tell(note(_EXCHANGED.format(state.name)))
        if state.title != before.title:
            now, kind = datetime.now(UTC).isoformat(), "session_info_update"
            await self._tell({"sessionUpdate": kind, "title": state.title, "updatedAt": now})
        if state.steps != before.steps:
            await self._tell(plan_of(state.steps))
        if before.mode and state.mode != before.mode:
            kind = "current_mode_update"
            await self._tell({"sessionUpdate": kind, "currentModeId": state.mode})
        chosen = [(each.mode, each.model, each.provider) for each in (before, state)]
        if before.mode and chosen[0] != chosen[1]:
            await self._tell_choices()
        self._ask_those(state.questions)

    def _ask_those(self, questions: Sequence[OpenQuestion]) -> None:
        """Ask what is open, and ask no longer what was answered elsewhere."""
        for number in self._asking.keys() - {each.id for each in questions}:
            self._asking.pop(number).cancel()
        for question in questions:
            if question.id not in self._asking:
                self._asking[question.id] = self._do(self._ask(question))

    async def _ask(self, question: OpenQuestion) -> None:
        has_forms = self._files.offer.forms
        answer = await asked(self._client, self.id, question, has_forms=has_forms)
        # What this editor cannot ask others may: a session that has them waits for these.
        if not answer.is_unattended or self.held.viewers == 1:
            self.session.questions.answer(question.id, answer)
        elif question.choices is not None:
            await self._tell(note(f"{asked_in_words(question)}\n{_ON_OTHERS}"))

    async def _tell_choices(self) -> None:
        kind = "config_option_update"
        options = [serialize_params(each) for each in self.choices.options]
        await self._tell({"sessionUpdate": kind, "configOptions": options})

    async def _tell_usage(self) -> None:
        status = self.session.status()
        used: Update = {"used": status.context_tokens, "size": status.window}
        if (usd := status.usage.cost_usd) is not None:
            used["cost"] = {"amount": usd, "currency": "USD"}
        await self._tell({"sessionUpdate": "usage_update", **used})

    async def _tell(self, update: Update) -> None:
        params = {"sessionId": self.id, "update": update}
        await self._send({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def _do(
        self, work: Coroutine[Any, Any, _T], among: "set[asyncio.Task[Any]] | None" = None
    ) -> "asyncio.Task[_T]":
        tasks, task = self._tasks if among is None else among, asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(_report)
        return task


def _report(task: "asyncio.Task[Any]") -> None:
    """Write down what broke a task, but for what the editor is told in the answer to its prompt, and that it has gone."""
    if not task.cancelled():
        error = task.exception()
        if error is not None and not isinstance(error, ConnectionError | YbsError):
            _log.error("a task of a session failed", exc_info=error)


def _input(arguments: str) -> Update:
    return {"input": {"hint": arguments}} if arguments else {}


def usage_of(used: Usage) -> schema.Usage:
    """Return the tokens of a turn in the protocol's terms."""
    return schema.Usage(
        total_tokens=used.input_tokens + used.output_tokens,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_read_tokens=used.cached_tokens,
        cached_write_tokens=used.cache_write_tokens,
    )


def failure(error: YbsError) -> RequestError:
    """Return an error as the protocol has it, with what the person can do about it."""
    kinds = [each.kind for each in error.remedies]
    code = AUTH_REQUIRED if _SETUP.intersection(kinds) else INTERNAL_ERROR
    return RequestError(code, told(error), {"remedies": kinds} if kinds else None)
