"""Secrets masked in the messages and events of a session, before they are written down or shown."""

import string
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from msgspec.structs import replace

from ybs.core.events import Compacted, Event, Replaced, ToolPrinted
from ybs.core.messages import Thinking
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.structs import masked
from ybs.tools.editing.diff import shared

_T = TypeVar("_T")
_LONGEST_WORD, _LONGEST_LINE = 400, 4_000
#: What tokens are made of, but for the signs that are progress as well.
_OF_WORDS: Final = string.ascii_letters + string.digits + "_-+/="


def mask(firewall: Firewall, value: _T) -> _T:
    """Mask the secrets in a message or an event, in thinking too. The report is of what a model was to see."""
    with firewall.unreported():
        clean: Any = masked(firewall, value, "an export")
        for name in ("content", "parts"):
            parts = getattr(clean, name, ())
            if isinstance(parts, tuple):
                thought = tuple(
                    _mask_thinking(firewall, part) for part in cast("tuple[object, ...]", parts)
                )
                clean = replace(clean, **{name: thought}) if thought != parts else clean
    return clean


def _mask_thinking(firewall: Firewall, part: object) -> object:
    if not isinstance(part, Thinking) or (text := firewall.mask(part.text)) == part.text:
        return part
    return Thinking(text=text, provider=part.provider)  # its signature was of the other text


def masked_event(firewall: Firewall, event: Event) -> Event:
    """Mask the secrets in an event, also in the messages of a history."""
    if isinstance(event, Compacted | Replaced):
        return replace(event, messages=tuple(mask(firewall, each) for each in event.messages))
    return mask(firewall, event)


class Printing:
    """Masks what commands print while they run, with the firewall of `firewall`.

    The word at the end waits for what follows it, as it may be the first half of a token; a line is searched as a whole.
    """

    def __init__(self, firewall: Callable[[], Firewall]) -> None:
        self._firewall = firewall
        #: Of each call the line that has not ended: as it came, and as it was told.
        self._lines = dict[tuple[str, str], tuple[str, str]]()

    def add(self, event: ToolPrinted, agent: str) -> ToolPrinted:
        """Return what can be told now."""
        raw, told = self._lines.pop((agent, event.id), ("", ""))
        raw += event.text
        end = raw[-_LONGEST_WORD:]
        ready = raw[: len(raw) - len(end) + len(end.rstrip(_OF_WORDS))]
        shown = self._masked(ready)
        text = shown[shared(told, shown) :]
        _, newline, rest = ready.rpartition("\n")
        if newline or len(raw) > _LONGEST_LINE:
            rest = rest[-_LONGEST_LINE // 2 :]
            raw, shown = rest + raw[len(ready) :], self._masked(rest)
        if raw:
            self._lines[agent, event.id] = raw, shown
        return replace(event, text=text)

    def rest(self, call_id: str, agent: str) -> str:
        """Return what still waits of a call that has ended."""
        raw, told = self._lines.pop((agent, call_id), ("", ""))
        shown = self._masked(raw)
        return shown[shared(told, shown) :]

    def _masked(self, text: str) -> str:
        firewall = self._firewall()
        with firewall.unreported():
            return firewall.mask(text)
