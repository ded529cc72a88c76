"""The tools of ybs as an MCP server: which there are, and what happens at a call."""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from hashlib import sha256
from itertools import count
from secrets import token_urlsafe
from typing import Any, Final, Self, TypeAlias

import anyio
import mcp_types as types
import msgspec
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from msgspec import Raw, Struct
from msgspec.structs import replace
from pydantic import ValidationError

from ybs.agent.environment import ToolEnvironment
from ybs.core.events import Emit, Event, ToolPrinted
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Confirm, Question, Request, Toolbox, ToolSpec
from ybs.core.version import VERSION
from ybs.frontends.headless.advice import advised, refusal
from ybs.security.firewall.structs import masked
from ybs.security.marks import marked
from ybs.security.unicode import shown_whole
from ybs.security.visible_text import visible_request
from ybs.session.questions import NO, asker_of, buttons_of, grant_text, in_words
from ybs.tools.registry import NAMES

#: The words of the form, and the keys of the answers that they are.
_WORDS: Final = {"yes": "yi", "always": "a", "yes, with network": "w", "no": "n"}
_ANSWER: Final = "answer"
_INSIDE: Final = "A yes runs it in the sandbox. Outside, with your keys, runs only what safety.outside_sandbox of your settings names."
_PROGRAM: Final = "ybs mcp serve"
#: Masks the secrets in a question.
Mask: TypeAlias = Callable[[Question], Question]
#: So many questions may wait for a second call; the oldest is forgotten first.
_MOST_OPEN: Final = 100


def can_ask(session: ServerSession) -> bool:
    """Return whether the client shows forms to the person."""
    capabilities = session.client_capabilities
    asks = capabilities.elicitation if capabilities is not None else None
    return asks is not None and (asks.form is not None or asks.url is None)


def form_of(question: Question, mask: Mask) -> types.ElicitRequestFormParams:
    """Return the form that the person is shown."""
    question = mask(question)
    body = shown_whole(question.preview.body)
    # Each line has a mark, so that none passes for one of ybs's own.
    shown = "\n".join(f"> {line}".rstrip() for line in body.split("\n")) if body else ""
    title = "" if question.choices is not None else " ".join(question.preview.title.split())
    lines = [f"{asker_of(question)}: {title}".rstrip(), shown]
    lines += [f"Asked because {question.reason}."] if question.reason else []
    lines += [f"Warning: {each}" for each in question.warnings]
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if question.choices is None:
        field |= {"title": "May ybs do this?", "enum": [*_offered(question)]}
        if question.outside == "needed":
            lines.append(_INSIDE)
        if question.grant:
            lines.append(f'"always" also allows {grant_text(question)} until this server ends.')
    elif question.choices:
        field["enum"] = list(question.choices)
    text = "\n\n".join(filter(None, lines))
    return types.ElicitRequestFormParams(
        message=marked(text)[0],
        requested_schema={"type": "object", "properties": {_ANSWER: field}, "required": [_ANSWER]},
    )


def _offered(question: Question) -> dict[str, Answer]:
    return {w: each.answer for w, keys in _WORDS.items() for each in buttons_of(question, keys)}


def answer_of(result: types.ElicitResult, question: Question) -> Answer:
    """Return the person's answer. Only one of the offered words allows a call."""
    if result.action != "accept":  # some clients do so by themselves, where nobody is there
        done = {"decline": "declined", "cancel": "closed"}[result.action]
        return refusal(
            question, f"the question was {done}, by the person or by the client", _PROGRAM
        )
    said = (result.content or {}).get(_ANSWER)
    if question.choices is not None:
        return in_words(question, said if isinstance(said, str) else "")
    return _offered(question).get(str(said), NO)


async def refuse(question: Question) -> Answer:
    """Refuse, since the client cannot ask the person, and say what would allow just this call."""
    return refusal(
        question, "the client cannot ask the person (it has no MCP elicitation)", _PROGRAM
    )


def asking_now(session: ServerSession, request: types.RequestId | None, mask: Mask) -> Confirm:
    """Return what asks while the call runs."""

    async def ask(question: Question) -> Answer:
        form = form_of(question, mask)
        try:
            result = await session.elicit_form(form.message, form.requested_schema, request)
        except (MCPError, ValidationError):
            reason = "the client did not ask the person, though it says that it can"
            return Answer(is_allowed=False, reason=reason, is_unattended=True)
        return answer_of(result, question)

    return ask


class _PendingQuestion(Struct, frozen=True):
    """What is known of a call that ended with a question."""

    call: ToolCall
    answers: Mapping[str, Answer]
    question: Question


class PendingAnswers:
    """The questions that calls ended with, until the client makes these again with the answers."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._open: dict[str, _PendingQuestion] = {}

    def asking(self, call: ToolCall, params: types.CallToolRequestParams) -> "DeferredQuestion":
        """Return what asks about a call, and knows the answers that it comes with."""
        known = self._open.get(params.request_state or "")
        if known is None or not call.is_same_call(known.call):
            return DeferredQuestion(call, {})
        given = (params.input_responses or {}).get(_ANSWER)
        if not isinstance(given, types.ElicitResult):
            return DeferredQuestion(call, known.answers)
        del self._open[params.request_state or ""]  # an answer counts once
        answer = answer_of(given, known.question)
        return DeferredQuestion(call, {**known.answers, _key(known.question): answer})

    def required(self, asking: "DeferredQuestion", question: Question) -> types.InputRequiredResult:
        """Return what a call ends with in place of its result."""
        state = token_urlsafe(16)
        self._open[state] = _PendingQuestion(asking.call, asking.answers, question)
        while len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]
        request = types.ElicitRequest(params=form_of(question, self._mask))
        return types.InputRequiredResult(input_requests={_ANSWER: request}, request_state=state)


class DeferredQuestion:
    """Asks about one call by ending it. `question` is the one that is open then."""

    def __init__(self, call: ToolCall, answers: Mapping[str, Answer]) -> None:
        self.call, self.answers = call, answers
        self.question: Question | None = None

    async def __call__(self, question: Question) -> Answer:
        """Return the answer that is known, or refuse for now. What is asked anew in other words is another question."""
        if (answer := self.answers.get(_key(question))) is not None:
            return answer
        self.question = self.question or question
        return Answer(is_allowed=False, reason="the person is asked first", is_unattended=True)


def _key(question: Question) -> str:
    same = replace(question, call=replace(question.call, id=""))
    return sha256(msgspec.json.encode(same)).hexdigest()


Context: TypeAlias = ServerRequestContext[Any, Any]
#: What asks the person about the call that runs in this context.
_asking: ContextVar[Confirm] = ContextVar("asking", default=refuse)

_INSTRUCTIONS: Final = {
    "": "The tools of ybs, a coding agent, for the folder {folder}. Relative paths begin there; paths outside of it are refused.",
    "edit_file": "edit_file finds the text to replace also where white space or quotes differ a little; prefer it to rewriting a file.",
    "repo_map": "repo_map lists the files and definitions that a query is about: a good first call in a project that you do not know.",
    "run_shell": "run_shell runs in a sandbox: it may write in the folder, and has no network unless the person allows it.",
    "ask": "The person's rules decide what runs. Where they are to be asked, that is done through this client, or the call is refused with what "
    "would allow it: do not try other ways, tell the person.",
    "secrets": "Secrets in results are replaced by [ybs:secret:…]; leave such words as they are, also in edits.",
}
_WITHOUT_TOOL: Final = ("", "ask", "secrets")


class ToolServer:
    """Serves the tools of one environment to one client.

    `toolbox` has the tools, behind the firewall. The environment asks by `confirm` of this module. `emit` takes notices for the person.
    """

    def __init__(self, environment: ToolEnvironment, toolbox: Toolbox, emit: Emit) -> None:
        self._environment, self._toolbox, self._emit = environment, toolbox, emit
        self._numbers = count(1)
        self._pending = PendingAnswers(environment.mask_question)
        #: Held by a call that may change something: those come one after the other.
        self._changing = asyncio.Lock()

    @cached_property
    def server(self) -> Server[Any]:
        """The server as the SDK runs it."""
        return Server(
            "ybs",
            version=VERSION,
            title="ybs",
            instructions=self._instructions(),
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    @cached_property
    def _specs(self) -> Sequence[ToolSpec]:
        firewall = self._environment.secrets.firewall
        specs = visible_request(Request("", (), self._toolbox.specs())).tools
        return [masked(firewall, each, f"the description of {each.name}") for each in specs]

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(each.name for each in self._toolbox.specs())

    def _instructions(self) -> str:
        known = {*_WITHOUT_TOOL, *self._names}
        folder = str(self._environment.folder)
        lines = (text.format(folder=folder) for key, text in _INSTRUCTIONS.items() if key in known)
        return self._environment.mask(" ".join(lines), "the instructions")

    async def _list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(tools=[tool_of(each) for each in self._specs])

    async def _call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        call = self._call_of(params)
        asking = self._asks(context, call, params)
        _asking.set(asking)
        async with _Progress(context.session, self._emit) as emit:
            result = await to_its_end(self._run(call, emit))
        if isinstance(asking, DeferredQuestion) and asking.question is not None:
            return self._pending.required(asking, asking.question)
        return result_of(result)

    def _call_of(self, params: types.CallToolRequestParams) -> ToolCall:
        if params.name not in self._names:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        arguments = msgspec.json.encode(params.arguments or {})
        return ToolCall(id=f"mcp-{next(self._numbers)}", name=params.name, arguments=Raw(arguments))

    def _asks(
        self, context: Context, call: ToolCall, params: types.CallToolRequestParams
    ) -> Confirm:
        session = context.session
        if not can_ask(session):
            return refuse
        if session.can_send_request:
            return asking_now(session, context.request_id, self._environment.mask_question)
        return self._pending.asking(call, params)

    async def _run(self, call: ToolCall, emit: Emit) -> ToolResult:
        if self._toolbox.is_read_only(call):
            return await self._run_alone(call, emit)
        async with self._changing:
            return await self._run_alone(call, emit)

    async def _run_alone(self, call: ToolCall, emit: Emit) -> ToolResult:
        if (hooks := self._environment.user_hooks) is not None:
            await hooks.before_turn(emit)  # one that ended a turn has ended a call here
        return await self._toolbox.run(call, emit)


async def confirm(question: Question) -> Answer:
    """Ask the client whose call runs here."""
    return await _asking.get()(question)


async def to_its_end(work: Coroutine[Any, Any, ToolResult]) -> ToolResult:
    """Await the work. Cancelled, it is told once and waited for: a program that it runs has its time to end."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):  # the SDK's scope would cancel again, and again
            await asyncio.wait((task,))
        raise
    return task.result()


def tool_of(spec: ToolSpec) -> types.Tool:
    """Return a tool as clients are told of it."""
    is_read = spec.effect == "read"
    is_closed = spec.name in NAMES and spec.effect != "execute"
    return types.Tool(
        name=spec.name,
        title=spec.name.replace("_", " ").capitalize(),
        description=spec.description,
        input_schema=msgspec.json.decode(spec.parameters),
        annotations=types.ToolAnnotations(
            read_only_hint=is_read, destructive_hint=not is_read, open_world_hint=not is_closed
        ),
    )


def result_of(result: ToolResult) -> types.CallToolResult:
    """Return the result of a call as clients read it; of a refused one with what would allow it."""
    text = advised(result.output, result.remedies, separator=" ")
    images = (
        types.ImageContent(
            type="image", data=b64encode(each.data).decode(), mime_type=each.media_type
        )
        for each in result.images
    )
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text), *images]
    return types.CallToolResult(content=content, is_error=result.is_error)


#: A notification has at most so many characters, the last ones; between two there is at least this time.
MOST_CHARS: Final = 2_000
BETWEEN_SECONDS: Final = 0.25


class _Progress:
    """An `Emit` that sends what is printed, as long as it is entered, and hands on everything else.

    The number of a notification is that of the characters printed so far.
    """

    def __init__(self, session: ServerSession, emit: Emit) -> None:
        self._session, self._emit = session, emit
        self._text, self._printed = "", 0
        self._has_news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __call__(self, event: Event) -> None:
        """Take an event of the call."""
        if not isinstance(event, ToolPrinted):
            self._emit(event)
            return
        self._printed += len(event.text)
        self._text = (self._text + event.text)[-MOST_CHARS:]
        self._has_news.set()
        if self._task is None:
            self._task = asyncio.create_task(self._send())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _send(self) -> None:
        """Send what is new; the session sends nothing where the client did not ask for it."""
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            text, self._text = self._text, ""
            await self._session.report_progress(self._printed, message=marked(text)[0])
            await asyncio.sleep(BETWEEN_SECONDS)
