"""The client's side of the Agent Client Protocol, on its official SDK: one turn of another agent. Loading the SDK takes a second.

https://agentclientprotocol.com/protocol/overview. Terminals are not offered: an agent has its own in the sandbox that stands around all of it, and
in ybs's shell a command would have neither its files nor its network.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, Final, TypeVar

import msgspec
from acp import PROTOCOL_VERSION, RequestError
from acp.core import Connection
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AuthenticateRequest,
    CancelNotification,
    ClientCapabilities,
    FileEditToolCallContent,
    FileSystemCapabilities,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    NewSessionRequest,
    NewSessionResponse,
    PermissionOption,
    PromptRequest,
    PromptResponse,
    ReadTextFileRequest,
    RequestPermissionRequest,
    SessionConfigOptionSelect,
    SessionConfigSelectGroup,
    SessionNotification,
    SetSessionConfigOptionSelectRequest,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
    WriteTextFileRequest,
)
from msgspec import Raw
from pydantic import BaseModel, ValidationError

from ybs.conductor.acp.program import AcpTransport
from ybs.conductor.acp.requests import ProposedChange, Requests, Wish
from ybs.conductor.budget import Budget
from ybs.core import events
from ybs.core.cutting import first_words, shortened, whole_words
from ybs.core.errors import ToolError
from ybs.core.events import Emit
from ybs.core.messages import Usage
from ybs.core.time_limits import time_limit
from ybs.core.version import VERSION
from ybs.core.wording import plural
from ybs.tools.mcp.connection import reason_in

#: So long may an agent take to begin, in seconds: some load a runtime first.
START_SECONDS: Final = 60.0
#: Characters of the list of models that an agent has.
_MOST_NAMES: Final = 500
#: What an agent says in one turn.
MOST_SAID: Final = 5_000_000
#: So many of its requests may be open at once.
MOST_OPEN: Final = 100
_MOST_OUTPUT: Final = 10_000  # characters of what a call of it gave
_MOST_RAW: Final = 10_000  # bytes
_LONGEST_TITLE: Final = 200
_AUTH_REQUIRED: Final = -32000
_ENDS: Final[Mapping[str, tuple[events.EndReason, str]]] = {
    "end_turn": ("done", ""),
    "max_tokens": ("limit", "its answer was cut off at its model's limit"),
    "max_turn_requests": ("limit", "it used all the requests that it may send in a turn"),
    "refusal": ("error", "it refused the task"),
    "cancelled": ("interrupted", "it stopped by itself"),
}
_Model = TypeVar("_Model", bound=BaseModel)


class NotLoggedIn(ToolError):
    """The agent asks for a login."""


class AcpTurn:
    """One turn of another agent, from its start to its end. What happens goes to `tell`; more than its `budget` ends it.

    `title` is the agent's name for people, and `model` the one that it is to use, by what the agent calls it; else it uses its own choice.
    """

    def __init__(
        self,
        title: str,
        transport: AcpTransport,
        requests: Requests,
        budget: Budget,
        tell: Emit,
        *,
        model: str = "",
    ) -> None:
        self._wanted, self._model = model, f"{title} {model}".rstrip()
        self._transport, self._requests = transport, requests
        self._budget, self._tell = budget, tell
        self._calls: dict[str, ToolCallUpdate] = {}
        self._ids: dict[str, str] = {}
        #: The tool that each open call was told as.
        self._open: dict[str, str] = {}
        self._said: list[str] = []
        self._size = self._asking = self._steps = 0
        self._tokens, self._cost = 0, None
        self._session = self._folder = ""
        self._started = monotonic()
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def run(self, folder: str, words: str, method: str) -> events.TurnFinished:
        """Have the agent do a task in a folder; `method` is the login to name where it asks for one. Raises ToolError."""
        self._folder = folder
        connection = Connection(self._handle, self._transport)
        working = asyncio.create_task(self._work(connection, folder, words, method))
        try:
            await asyncio.wait((working, self._over), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return self._finished(*working.result())
            await self._cancel(connection)
            return self._finished("limit", self._over.result())
        except asyncio.CancelledError:
            await self._cancel(connection)
            self._finished("interrupted", "")
            raise
        except ToolError as error:
            self._finished("error", str(error))
            raise
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            self._over.cancel()
            await connection.close()

    async def _work(
        self, connection: Connection, folder: str, words: str, method: str
    ) -> tuple[events.EndReason, str]:
        try:
            await self._begin(connection, folder, method)
            self._tell(events.RequestStarted(model=self._model, step=1))
            prompt = PromptRequest(
                session_id=self._session, prompt=[TextContentBlock(type="text", text=words)]
            )
            response = await self._ask(connection, "session/prompt", prompt, PromptResponse)
        except ConnectionError as error:
            raise ToolError(self._why_ended()) from error
        except ValidationError as error:
            raise ToolError("it sent an answer that is not one of the protocol") from error
        except TimeoutError as error:
            raise ToolError(f"it did not answer for {START_SECONDS:g} s at its start") from error
        except RequestError as error:
            raise _error_of(error) from error
        if response.usage is not None:
            self._tokens = response.usage.input_tokens + response.usage.output_tokens
        return _ENDS.get(response.stop_reason, ("error", "it stopped for an unknown reason"))

    async def _begin(self, connection: Connection, folder: str, method: str) -> None:
        """Greet the agent, and open a session."""
        files = FileSystemCapabilities(read_text_file=True, write_text_file=True)
        hello = InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(fs=files, terminal=False),
            client_info=Implementation(name="ybs", version=VERSION),
        )
        new = NewSessionRequest(cwd=folder, mcp_servers=[])
        async with time_limit(START_SECONDS):
            about = await self._ask(connection, "initialize", hello, InitializeResponse)
            if about.protocol_version != PROTOCOL_VERSION:
                raise ToolError(
                    f"it speaks version {about.protocol_version} of the protocol, and ybs version {PROTOCOL_VERSION}"
                )
            try:
                opened = await self._ask(connection, "session/new", new, NewSessionResponse)
            except RequestError as error:
                if error.code != _AUTH_REQUIRED or not method:
                    raise
                login = AuthenticateRequest(method_id=method)
                await connection.send_request("authenticate", _plain(login))
                opened = await self._ask(connection, "session/new", new, NewSessionResponse)
            self._session = opened.session_id
            if self._wanted:
                await self._choose_model(connection, opened)

    async def _choose_model(self, connection: Connection, opened: NewSessionResponse) -> None:
        for option in opened.config_options or ():
            if isinstance(option, SessionConfigOptionSelect) and option.category == "model":
                groups = (
                    each.options if isinstance(each, SessionConfigSelectGroup) else [each]
                    for each in option.options
                )
                known = [each for group in groups for each in group]
                for each in known:
                    if self._wanted in (each.value, each.name):
                        choice = SetSessionConfigOptionSelectRequest(
                            session_id=self._session, config_id=option.id, value=each.value
                        )
                        await connection.send_request("session/set_config_option", _plain(choice))
                        return
                names = ", ".join(each.value for each in known)
                raise ToolError(
                    f"it has no model {self._wanted}, but: {shortened(names, _MOST_NAMES)}"
                )
        raise ToolError(f"it does not let its model be chosen, so {self._wanted} cannot be used")

    @staticmethod
    async def _ask(
        connection: Connection, method: str, params: BaseModel, kind: type[_Model]
    ) -> _Model:
        return kind.model_validate(await connection.send_request(method, _plain(params)))

    async def _cancel(self, connection: Connection) -> None:
        """Tell the agent to stop; it has a moment for that before it is ended."""
        if self._session and not self._transport.ended.is_set():
            notice = _plain(CancelNotification(session_id=self._session))
            with_end = connection.send_notification("session/cancel", notice)
            await asyncio.gather(with_end, return_exceptions=True)

    def _why_ended(self) -> str:
        why, said = self._transport.how, reason_in(self._transport.said)
        return f"{why}: {said}" if said else why

    def _finished(self, reason: events.EndReason, message: str) -> events.TurnFinished:
        """Sum the turn up."""
        self._close_all(success=reason == "done")
        usage = Usage(input_tokens=self._tokens, cost_usd=self._cost)
        end = events.TurnFinished(
            reason=reason,
            message=message,
            steps=max(self._steps, 1),
            usage=usage,
            duration_seconds=monotonic() - self._started,
        )
        self._tell(end)
        return end

    def _close_all(self, *, success: bool) -> None:
        """Tell the end of calls that are open, and what was said."""
        for each in tuple(self._open):
            self._finish(each, success=success, output="")
        self._close_text()

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        """Answer a message of the agent, as the SDK hands it over, which writes other errors than its own to the terminal."""
        try:
            if not is_notification:
                return await self._bounded(method, params)
            if method == "session/update":
                self._take(params)
        except (RequestError, ValidationError):
            raise
        except Exception as error:
            self._stop(f"internal error ({type(error).__name__}: {error})")
            if not is_notification:
                raise RequestError.internal_error() from error

    async def _bounded(self, method: str, params: Any) -> dict[str, Any]:
        if self._asking >= MOST_OPEN:
            self._stop(f"it asked for more than {MOST_OPEN} things at once")
            raise RequestError.invalid_request({"details": "too many requests are open"})
        self._asking += 1
        try:
            return await self._answer(method, params)
        except ToolError as error:
            raise RequestError(-32603, str(error)) from error
        finally:
            self._asking -= 1

    async def _answer(self, method: str, params: Any) -> dict[str, Any]:
        match method:
            case "session/request_permission":
                return await self._permit(RequestPermissionRequest.model_validate(params))
            case "fs/read_text_file":
                file = ReadTextFileRequest.model_validate(params)
                return {"content": await self._requests.read(file.path, file.line, file.limit)}
            case "fs/write_text_file":
                text = WriteTextFileRequest.model_validate(params)
                await self._requests.write(text.path, text.content)
                return {}
            case _:
                raise RequestError.method_not_found(method)

    async def _permit(self, request: RequestPermissionRequest) -> dict[str, Any]:
        """Have a permission judged. Of its choices the one for this once is taken: what is allowed for longer ybs remembers itself."""
        call = self._known(request.tool_call)
        is_allowed = await self._requests.allows(self._wish(call), self._id_of(call.tool_call_id))
        chosen = _option(request.options, is_allowed=is_allowed)
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    def _take(self, params: Any) -> None:
        """Take what the agent tells of its turn; what is not of the protocol, or of another session, is passed over."""
        try:
            notice = SessionNotification.model_validate(params)
        except ValidationError:
            return
        if notice.session_id != self._session or self._over.done():
            return
        match notice.update:
            case AgentMessageChunk(content=TextContentBlock(text=text)):
                self._count(text)
                self._said.append(text)
                self._tell(events.TextStreamed(text=text))
            case AgentThoughtChunk(content=TextContentBlock(text=text)):
                self._count(text)
                self._tell(events.ThinkingStreamed(text=text))
            case ToolCallStart() | ToolCallProgress() as call:
                self._take_call(call)
            case UsageUpdate() as usage:
                self._take_usage(usage)
            case _:
                pass

    def _count(self, text: str) -> None:
        self._size += len(text)
        if self._size > MOST_SAID:
            self._stop(f"it said more than {MOST_SAID:,} characters")

    def _take_usage(self, update: UsageUpdate) -> None:
        self._tokens = max(self._tokens, update.used)
        if update.cost is not None and update.cost.currency.upper() == "USD":
            self._cost = max(0.0, update.cost.amount)
        budget = self._budget
        if budget.cost_usd is not None and (self._cost or 0.0) > budget.cost_usd:
            self._stop(f"it cost more than the ${budget.cost_usd:.2f} that it may")
        if budget.tokens is not None and self._tokens > budget.tokens:
            self._stop(f"it used more than the {budget.tokens:,} tokens that it may")

    def _take_call(self, update: ToolCallStart | ToolCallProgress) -> None:
        call = self._known(update)
        if call.status in ("completed", "failed"):
            self._finish(
                call.tool_call_id, success=call.status == "completed", output=_output_of(call)
            )

    def _known(self, update: Any) -> ToolCallUpdate:
        """Return all that is known of a call with this update; the first one begins it."""
        number: str = update.tool_call_id
        given = {key: value for key in _FIELDS if (value := getattr(update, key)) is not None}
        known = self._calls.get(number) or ToolCallUpdate(tool_call_id=number)
        call = self._calls[number] = known.model_copy(update=given)
        if number not in self._ids:
            self._begin_call(call)
        return call

    def _begin_call(self, call: ToolCallUpdate) -> None:
        self._close_text()
        self._steps += not self._open  # calls side by side are of one request
        most = self._budget.steps
        if most is not None and self._steps > most:
            self._stop(f"it used more than the {plural(most, 'step')} that it may")
        wish, number = self._wish(call), call.tool_call_id
        begun = self._requests.begun(wish, self._id_of(number))
        self._open[number] = begun.name
        self._tell(begun)

    def _id_of(self, number: str) -> str:
        if number not in self._ids:
            self._ids[number] = self._requests.new_id(number[:64])
        return self._ids[number]

    def _finish(self, number: str, *, success: bool, output: str) -> None:
        if (name := self._open.pop(number, None)) is None:
            return
        wish = self._wish(self._calls[number])
        self._tell(
            events.ToolFinished(
                id=self._ids[number],
                name=name,
                success=success,
                output=output,
                summary=first_words(output, _LONGEST_TITLE),
                changes=self._requests.changed(wish) if success else (),
            )
        )

    def _wish(self, call: ToolCallUpdate) -> Wish:
        return _wish_of(call, self._folder)

    def _close_text(self) -> None:
        """Tell what was said since the last call as one message."""
        text, self._said = "".join(self._said), []
        if text.strip():
            self._tell(events.AssistantSaid(content=text, model=self._model))

    def _stop(self, why: str) -> None:
        if not self._over.done():
            self._over.set_result(why)


_FIELDS: Final = ("kind", "status", "title", "content", "locations", "raw_input", "raw_output")


def _plain(params: BaseModel) -> dict[str, Any]:
    return params.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


def _option(options: Sequence[PermissionOption], *, is_allowed: bool) -> str | None:
    """Return the choice that means this, for this once; one that refuses for longer where there is no other, and none that allows for longer."""
    kinds = ("allow_once",) if is_allowed else ("reject_once", "reject_always")
    return next((each.option_id for kind in kinds for each in options if each.kind == kind), None)


def _wish_of(call: ToolCallUpdate, folder: str) -> Wish:
    """Return what a call of the agent's is about, in the terms of ybs; its paths hang on the folder that it works in."""

    def absolute(path: str) -> str:
        return os.path.join(folder, path.replace("\0", ""))  # noqa: PTH118 - it may be no path

    raw: Any = call.raw_input
    given: dict[str, Any] = raw if isinstance(raw, dict) else {}  # pyright: ignore[reportUnknownVariableType] - any JSON
    changes = tuple(
        ProposedChange(path=absolute(each.path), before=each.old_text, after=each.new_text)
        for each in call.content or ()
        if isinstance(each, FileEditToolCallContent)
    )
    named = [value for key in _PATHS if isinstance(value := given.get(key), str) and value]
    paths = (
        [change.path for change in changes]  # these and no others are judged, shown and agreed to
        or [absolute(each.path) for each in call.locations or ()]
        or [*map(absolute, named)]
    )
    encoded = msgspec.json.encode(raw, enc_hook=str)
    place = next((given[key] for key in _FOLDERS if isinstance(given.get(key), str)), "")
    # Some agents call a command that seems to look only a `read` or a `search`.
    is_command = call.kind == "execute" or bool(_command_in(given) and not named and not changes)
    return Wish(
        kind="execute" if is_command else call.kind or "",
        title=first_words(call.title or "", _LONGEST_TITLE),
        command=_command_in(given) or call.title or "" if is_command else "",
        folder=place,
        paths=() if is_command else tuple(dict.fromkeys(paths)),
        changes=changes,
        raw=Raw(encoded if len(encoded) <= _MOST_RAW else b"null"),
    )


_PATHS: Final = ("file_path", "filePath", "path", "abs_path", "notebook_path")
_FOLDERS: Final = ("cwd", "workdir", "working_directory")


def _command_in(given: Mapping[str, Any]) -> str:
    """Return the command of a call, as a shell reads it."""
    from shlex import join

    command = given.get("command") or given.get("cmd")
    if isinstance(command, str):
        return command
    if not isinstance(command, list):
        return ""
    words = [str(each) for each in command]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON
    is_shell = len(words) == 3 and words[0].rpartition("/")[2] in ("sh", "bash", "zsh")
    return words[2] if is_shell and words[1] in ("-c", "-lc") else join(words)


def _output_of(call: ToolCallUpdate) -> str:
    """Return the text that a call gave."""
    blocks = (getattr(each, "content", None) for each in call.content or ())
    texts = [block.text for block in blocks if isinstance(block, TextContentBlock)]
    return whole_words("\n".join(texts), _MOST_OUTPUT)


def _error_of(error: RequestError) -> ToolError:
    data: Any = error.data
    details = data.get("details") or data.get("message") if isinstance(data, dict) else data  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - any JSON
    words = f"{error}: {details}" if isinstance(details, str) and details else str(error)
    words = first_words(words, 500)
    return NotLoggedIn(words) if error.code == _AUTH_REQUIRED else ToolError(f"it failed: {words}")
