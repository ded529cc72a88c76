"""Events of a session as updates of the protocol, live and replayed alike.

They are plain JSON objects (`session/update` in the schema): a model of each, made and dumped again, would be half the cost of a long replay.
"""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from ybs.commands.advice import advised
from ybs.core.changes import FileChange
from ybs.core.envelope import Envelope
from ybs.core.events import (
    AssistantSaid,
    Compacted,
    Event,
    FilesChanged,
    Noticed,
    RequestRetried,
    RequestStarted,
    TextStreamed,
    ThinkingStreamed,
    ToolFinished,
    ToolPrinted,
    ToolStarted,
    UserSaid,
)
from ybs.core.messages import Image, Text, Thinking
from ybs.frontends.markdown import escaped, fenced
from ybs.security.unicode import printable
from ybs.tools.calls.describing import title_of

Update: TypeAlias = dict[str, Any]
#: The kinds of calls: of some tools by their names, of all others by their effect.
_KINDS: Final = {
    **dict.fromkeys(("search_files", "list_files", "repo_map", "web_search"), "search"),
    **dict.fromkeys(("todo", "set_thought", "delegate"), "think"),
    "web_fetch": "fetch",
}
_EFFECTS: Final = {
    "read": "read",
    "write": "edit",
    "edit": "edit",
    "delete": "delete",
    "execute": "execute",
}
_STATES: Final = {"x": "completed", ">": "in_progress"}
#: Of what a call prints the newest is shown while it runs.
_MOST_LIVE_CHARS: Final = 20_000


class Updates:
    """Makes the updates of one session, event by event. `folder` is where its relative paths begin."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._said = self._thought = False
        #: What the running calls have printed, and which of them have printed more since that was shown.
        self._printed = dict[str, str]()
        self._dirty = set[str]()
        #: The calls of the past whose results come later.
        self._begun = dict[str, ToolStarted]()
        #: Why the last answer ended.
        self.stop_reason = ""

    def of(self, envelope: Envelope, *, is_replayed: bool = False) -> Iterator[Update]:
        """Yield the updates of an event; of what the person said only where it is replayed, for the editor has shown it."""
        match envelope.event:
            case ToolStarted() as begun if not envelope.is_main:
                line = f"{envelope.agent}: {_title(begun)}\n"
                self._keep(ToolPrinted(id=envelope.started_by, text=line))
            case _ if not envelope.is_main:
                pass
            case ToolStarted(id=call) as begun if is_replayed:
                self._begun[call] = begun
            case ToolFinished(id=call) as ended if call in self._begun:
                yield self._whole(self._begun.pop(call), ended)
            case UserSaid(origin="person", message=message) if is_replayed:
                for part in message.content:
                    yield chunk("user_message", _block(part))
            case ToolStarted() | ToolPrinted() | ToolFinished() as event:
                yield from self._of_call(event)
            case event:
                yield from self._of_answer(event)

    def _of_answer(self, event: Event) -> Iterator[Update]:
        match event:
            case TextStreamed(text=text):
                self._said = True
                yield chunk("agent_message", text)
            case ThinkingStreamed(text=text):
                self._thought = True
                yield chunk("agent_thought", text)
            case AssistantSaid():
                yield from self._rest_of(event)
            case RequestStarted():
                self._said = self._thought = False
            case RequestRetried(message=message):
                again = " The answer begins anew." * self._said
                self._said = self._thought = False
                yield note(f"{message.rstrip('.')}.{again}")
            case _ if text := _words_of(event):
                yield note(text)
            case _:
                pass

    def _rest_of(self, event: AssistantSaid) -> Iterator[Update]:
        """Yield what was not streamed of a message: all of it, where it is replayed."""
        thought = "".join(each.text for each in event.parts if isinstance(each, Thinking))
        if thought and not self._thought:
            yield chunk("agent_thought", thought)
        if event.content and not self._said:
            yield chunk("agent_message", event.content)
        self._said = self._thought = False
        self.stop_reason = event.stop_reason

    def _of_call(self, event: ToolStarted | ToolPrinted | ToolFinished) -> Iterator[Update]:
        match event:
            case ToolPrinted():
                self._keep(event)
            case ToolStarted(id=call):
                self._printed[call] = ""
                yield self._whole(event)
            case ToolFinished(id=call, success=success):
                self._printed.pop(call, None)
                status = "completed" if success else "failed"
                yield _moved(call, self._content_of(event), status)

    def _whole(self, begun: ToolStarted, ended: ToolFinished | None = None) -> Update:
        """Return a call as it begins, or with what it came to."""
        status = "in_progress" if ended is None else "completed" if ended.success else "failed"
        return {
            "sessionUpdate": "tool_call",
            "toolCallId": begun.id,
            "title": _title(begun),
            "kind": _KINDS.get(begun.name) or _EFFECTS.get(begun.effect, "other"),
            "status": status,
            "locations": [{"path": self._place(each)} for each in begun.paths],
            "rawInput": msgspec.json.decode(begun.arguments),
            **({} if ended is None else {"content": self._content_of(ended)}),
        }

    def running(self) -> Iterator[Update]:
        """Yield the calls of the past that run on, from now on as any other."""
        for begun in self._begun.values():
            yield from self._of_call(begun)
        self._begun.clear()

    def _place(self, path: str) -> str:
        return str(self._folder / path)

    def _content_of(self, event: ToolFinished) -> list[Update]:
        """Return what a call came to: the changes that it made, or what it printed."""
        images = [_content(_block(each)) for each in event.images]
        whole = [each for each in event.changes if not each.omitted]
        if whole:
            return [*map(self._diff, whole), *images]
        output = printable(event.output)
        is_own = event.is_refused  # words of ybs's own
        text = escaped(advised(output, event.remedies)) if is_own else fenced(output)
        return [*([_content(text)] if output else []), *images]

    def _diff(self, change: FileChange) -> Update:
        diff = {"type": "diff", "path": self._place(change.path), "newText": change.after or ""}
        return diff if change.before is None else {**diff, "oldText": change.before}

    def _keep(self, printed: ToolPrinted) -> None:
        if printed.id in self._printed:
            whole = self._printed[printed.id] + printed.text
            self._printed[printed.id] = whole[-_MOST_LIVE_CHARS:]
            self._dirty.add(printed.id)

    @property
    def has_live(self) -> bool:
        """Whether running calls have printed something that was not shown."""
        return bool(self._dirty)

    def live(self) -> list[Update]:
        """Return what they have printed."""
        dirty, self._dirty = self._dirty & self._printed.keys(), set[str]()
        return [_moved(call, [_content(fenced(printable(self._printed[call])))]) for call in dirty]


def plan_of(steps: str) -> Update:
    """Return the plan that the model has noted, a step per line (`[x] done`)."""
    entries = [
        {"content": line[4:], "priority": "medium", "status": _STATES.get(line[1:2], "pending")}
        for line in steps.splitlines()
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def note(text: str) -> Update:
    """Return words of ybs's own, apart from the answer."""
    lines = escaped(printable(text)).split("\n")
    return chunk("agent_message", "\n".join(("\n", *(f"> {line}  " for line in lines), "\n")))


def chunk(kind: str, content: str | Update) -> Update:
    """Return a piece of a message (`user_message`, `agent_message`, `agent_thought`): text, or a block of content."""
    block = {"type": "text", "text": content} if isinstance(content, str) else content
    return {"sessionUpdate": f"{kind}_chunk", "content": block}


def _moved(call: str, content: list[Update], status: str = "") -> Update:
    """Return that a call has printed more, or has ended with a status."""
    update = {"sessionUpdate": "tool_call_update", "toolCallId": call, "content": content}
    return {**update, "status": status} if status else update


def _words_of(event: Event) -> str:
    """Return what ybs itself says of an event; nothing for most."""
    match event:
        case Noticed(text=text, remedies=remedies):
            return advised(text, remedies, separator=" ")
        case Compacted(tokens_before=before, tokens_after=after):
            return f"The conversation was compacted: {before:,} to {after:,} tokens."
        case FilesChanged(commit=commit) if commit:
            return f"Committed {commit[:10]}."
        case _:
            return ""


def _block(part: Text | Image) -> Update:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    data = b64encode(part.data).decode()
    return {"type": "image", "data": data, "mimeType": part.media_type}


def _content(of: str | Update) -> Update:
    block = {"type": "text", "text": of} if isinstance(of, str) else of
    return {"type": "content", "content": block}


def _title(event: ToolStarted) -> str:
    return event.title or title_of(event.name, bytes(event.arguments))
