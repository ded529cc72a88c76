"""A toolbox behind the firewall: what tools answer is masked, and placeholders in calls are put back or refused."""

from functools import cached_property
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.core.changes import FileChange
from ybs.core.decoding import from_json
from ybs.core.errors import Refused
from ybs.core.events import Emit, Event, Noticed, ToolPrinted
from ybs.core.lazy import lazy
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Toolbox
from ybs.core.wrapper import ToolboxWrapper
from ybs.security.firewall.masking import Firewall, member_text
from ybs.security.firewall.restore import Read, Restorer
from ybs.security.firewall.rules import FRAME_SIGNS, WORDS
from ybs.security.firewall.structs import has_frame, has_rest_of_key, is_clean, masked

#: What the model reads in place of a result.
WITHHELD = (
    "[withheld: a private key stands in it, and a part of it could not be masked for certain]"
)


#: The one word of a file, behind the number of its line; a name that ends with a word of secrecy, at the end of a path.
_ONE_WORD = lazy(r"\s*(?:1\t)?(\S{8,200})\s*")
_SECRET_FILE = lazy(rf"[\w.-]*(?i:{WORDS.decode()})[\w-]*(?:\.txt)?(?=[\"'\s;|&)\\])")


class FirewallToolbox(ToolboxWrapper):
    """Wraps a Toolbox. `read` returns the text of a file that a call names, as the tools see it, or None."""

    def __init__(self, toolbox: Toolbox, firewall: Firewall, read: Read) -> None:
        super().__init__(toolbox)
        self.firewall = firewall
        self._restorer = Restorer(firewall.vault, read)

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        """Run one call; nothing of a secret is in its events or its result."""
        try:
            restored = self._restorer.restored(call)
        except Refused as refusal:
            return ToolResult(
                call_id=call.id,
                name=call.name,
                output=str(refusal),
                is_error=True,
                is_refused=True,
                summary="refused: it holds the placeholder of a secret",
            )
        live = _Live(self.firewall, call, emit)
        try:
            result = await self._toolbox.run(restored, live)
        finally:
            live.close()
        self._learn_word(restored, result)
        if is_clean(self.firewall, result) and not _may_hold_key(result):
            return result
        changes = tuple(map(self._masked_change, result.changes))
        result = replace(result, changes=()) if changes else result
        clean = self._masked_result(result, live)
        return replace(clean, changes=changes) if changes else clean

    def _learn_word(self, call: ToolCall, result: ToolResult) -> None:
        """Know the one word that a result is for a secret where the call names a file that is called one, as `master.key`."""
        if word := _ONE_WORD().fullmatch(result.output):
            for name in _SECRET_FILE().findall(bytes(call.arguments).decode()):
                self.firewall.mask(member_text(name, word[1]), f"the result of {call.name}")

    def _masked_result(self, result: ToolResult, live: "_Live") -> ToolResult:
        clean = masked(self.firewall, result, live.place)
        clean = replace(clean, name=result.name)
        has_key = live.has_key(clean)
        if not (has_key or _may_hold_key(clean)):
            return clean
        if has_rest_of_key(clean):
            text = f"A private key stands in {live.place}; a part of it could not be masked for certain, so the model sees nothing of it."
            live(Noticed(level="warning", text=text))
            return replace(
                clean, output=WITHHELD, summary=WITHHELD, display=Raw(b"null"), images=()
            )
        if not has_key:
            return clean
        text = f"A private key stands in {live.place}; the model sees a placeholder."
        live(Noticed(level="warning", text=text))
        return clean

    def _masked_change(self, change: FileChange) -> FileChange:
        """Return a change without secrets. No model reads it, so it is not reported; of a file with a private key no text is kept."""
        with self.firewall.unreported():
            clean = masked(self.firewall, change)
        if _has_key((clean.before or "") + (clean.after or "")):
            return clean.without_texts("a private key stands in the file")
        return clean


class _Named(Struct):
    """Arguments with the name of a file in them."""

    path: Any = None


class _Live:
    """Takes the events of one running call and hands them on without secrets."""

    def __init__(self, firewall: Firewall, call: ToolCall, emit: Emit) -> None:
        self._firewall, self._call, self._emit = firewall, call, emit
        self._printed: StreamMask | None = None

    @cached_property
    def place(self) -> str:
        """What the report names; few calls need it."""
        return f"the result of {self._call.name}{self._firewall.mask(_path_of(self._call))}"

    def __call__(self, event: Event) -> None:
        """Hand an event on."""
        if isinstance(event, ToolPrinted):
            self._printed = self._printed or StreamMask(self._firewall, self.place)
            if text := self._printed.feed(event.text):
                self._emit(replace(event, text=text))
            return
        if not is_clean(self._firewall, event):
            event = masked(self._firewall, event, self.place)
        self._emit(event)

    def close(self) -> None:
        """Hand on what was held back."""
        if self._printed and (text := self._printed.close()):
            self._emit(ToolPrinted(id=self._call.id, text=text))

    def has_key(self, result: ToolResult) -> bool:
        """Return whether the masked result had a private key in it."""
        return _has_key(result.output + bytes(result.display).decode("utf-8", "replace"))


def _may_hold_key(result: ToolResult) -> bool:
    """Return whether a beginning or an end of a private key stands in a result: a part of it may, too."""
    display = bytes(result.display)
    return has_frame(result.output) or any(sign in display for sign in FRAME_SIGNS)


def _has_key(text: str) -> bool:
    return "[ybs:secret:private-key#" in text


def _path_of(call: ToolCall) -> str:
    """Return a description of the call, for the place of a secret."""
    path = from_json(call.arguments, _Named).path
    return f" {path[:200]}" if isinstance(path, str) else ""


#: What went on is kept for so long, in characters: a value may be known by the name before it.
OVERLAP = 4_096
#: A word without an end is held back no longer than this, in characters.
MOST_HELD = 65_536
#: Where words end, as the rules see it: other signs of Unicode may stand in a password.
_SPACE = " \t\r\n\v\f"
#: Secrets of several lines: how each begins, and what ends it.
_FRAMED = lazy(r"-----?[ +]?END(?:[ +\w]|-(?!---)){0,60}----")
_LONG = (
    ("----BEGIN", _FRAMED),
    ("---- BEGIN", _FRAMED),
    ("Private-Lines:", lazy(r"Private-MAC:")),
)

#: The end of a line in which a token may begin: a word of letters and digits.
_OPEN = lazy(r"(?<![\w+/=-])(?=[\w+/=-]*\d)(?=[\w+/=-]*[A-Za-z])[\w+/=-]{10,}\s*\Z")


class StreamMask:
    """Takes pieces and returns what may be shown."""

    def __init__(self, firewall: Firewall, place: str = "") -> None:
        self._firewall, self._place = firewall, place
        self._seen = ""
        self._held = ""

    def feed(self, text: str) -> str:
        """Take a piece and return what is decided by now."""
        self._held += text
        cut = self._decided()
        if not cut and len(self._held) > MOST_HELD:
            cut = self._whole(len(self._held) - OVERLAP)
        return self._release(cut)

    def close(self) -> str:
        """Return the rest; nothing follows."""
        return self._release(len(self._held))

    def _decided(self) -> int:
        """Return how much of what is held cannot become a part of a secret any more."""
        held = self._held
        cut = len(held)
        while cut and held[cut - 1] not in _SPACE:
            cut -= 1
        if not any(map(str.isalnum, held[cut:])):
            cut = len(held)  # progress
        cut = _before_open_lines(held, cut)
        for begin, end in _LONG:
            place = held.rfind(begin)
            if place >= 0 and not end().search(held, place):
                cut = min(cut, len(held[:place].rstrip("-")))
        for value, _ in self._firewall.vault.known():
            if any(code in value for code in b" \t\r\n"):
                cut = min(cut, _before(held, value.decode("utf-8", "replace"), cut))
        return cut

    def _whole(self, cut: int) -> int:
        """Return the cut, or where the secret begins that it would go through."""
        for finding in self._firewall.search(self._held):
            if finding.start < cut < finding.end:
                return finding.start or finding.end
        return cut

    def _release(self, cut: int) -> str:
        """Mask the held text up to `cut`, read together with what came before it."""
        if not cut:
            return ""
        part, self._held = self._held[:cut], self._held[cut:]
        masked = self._masked(part)
        self._seen = (self._seen + part)[-OVERLAP:]
        return masked

    def _masked(self, part: str) -> str:
        shift, whole = len(self._seen), self._seen + part
        pieces: list[str] = []
        end = 0
        find = self._firewall.search if shift else self._firewall.find  # the first piece may be all
        for finding in find(whole):
            start, stop = max(finding.start - shift, end), finding.end - shift
            if stop <= end:
                continue
            # Known as a whole: its end alone would be masked in the result, and its beginning stand there.
            placeholder = self._firewall.vault.placeholder(
                finding.kind, whole[finding.start : finding.end], finding.lines
            )
            self._firewall.report.add(finding.kind, self._place, placeholder)
            pieces += (part[end:start], placeholder)
            end = stop
        return self._firewall.mask("".join((*pieces, part[end:])), self._place)


def is_open(line: str) -> bool:
    """Return whether a line ends as the first part of a token could, which goes on in the next one."""
    return _OPEN().search(line) is not None


def _before_open_lines(held: str, cut: int) -> int:
    """Return where the lines before `cut` begin that could be the first parts of one token; `cut` if there are none."""
    while cut and held[cut - 1] == "\n":
        start = held.rfind("\n", 0, cut - 1) + 1
        found = _OPEN().search(held, start, cut)
        if found is None:
            break
        cut = found.start()
        while cut > start and held[cut - 1] not in _SPACE:  # no cut within a word
            cut -= 1
        if held[start:cut].strip():
            break  # it begins in this line
    return cut


def _before(held: str, value: str, cut: int) -> int:
    """Return where a value stands that the cut goes through, or a beginning of it that reaches the end of the text; else `cut`."""
    whole = held.find(value, max(0, cut - len(value) + 1), cut + len(value) - 1)
    cut = cut if whole < 0 else min(cut, whole)
    least = max(0, len(held) - len(value) + 1)
    place = held.find(value[:1], least)
    while 0 <= place < cut:
        if value.startswith(held[place:]):
            return place
        place = held.find(value[:1], place + 1)
    return cut
