"""Secrets masked in the messages and events of a session, before they are written down or shown."""

from typing import Any, TypeVar, cast

from msgspec.structs import replace

from ybs.core.events import Compacted, Event, Replaced
from ybs.core.messages import Text, Thinking
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.structs import masked

_T = TypeVar("_T")


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


def masked_reply(firewall: Firewall, text: str) -> str:
    """Return the text of a command's reply as it is shown. It may ask for something, so it hides what a question would."""
    return mask(firewall.asking(), Text(text=text)).text


def masked_event(firewall: Firewall, event: Event) -> Event:
    """Mask the secrets in an event, also in the messages of a history."""
    if isinstance(event, Compacted | Replaced):
        return replace(event, messages=tuple(mask(firewall, each) for each in event.messages))
    return mask(firewall, event)
