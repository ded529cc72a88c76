"""Masks a text that comes in pieces: nothing goes on that could be the beginning of a secret."""

from ybs.core.lazy import lazy
from ybs.security.firewall.masking import Firewall

#: What went on is kept for so long, in characters: a value may be known by the name before it.
OVERLAP = 4_096
#: A word without an end is held back no longer than this, in characters.
MOST_HELD = 65_536
#: Where words end, as the rules see it: other signs of Unicode may stand in a password.
_SPACE = " \t\r\n\v\f"
#: Secrets of several lines: how each begins, and what ends it.
_LONG = (
    ("-----BEGIN", lazy(r"-----END[ A-Z0-9_-]{0,60}-----")),
    ("Private-Lines:", lazy(r"Private-MAC:")),
)


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
        for begin, end in _LONG:
            place = held.rfind(begin)
            if place >= 0 and not end().search(held, place):
                cut = min(cut, place)
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
        for finding in self._firewall.search(whole):
            start, stop = max(finding.start - shift, end), finding.end - shift
            if stop <= end:
                continue
            # Known as a whole: its end alone would be masked in the result, and its beginning stand there.
            placeholder = self._firewall.vault.placeholder(
                finding.kind, whole[finding.start : finding.end]
            )
            self._firewall.report.add(finding.kind, self._place, placeholder)
            pieces += (part[end:start], placeholder)
            end = stop
        return self._firewall.mask("".join((*pieces, part[end:])), self._place)


def _before(held: str, value: str, cut: int) -> int:
    """Return where a beginning of the value stands that reaches the end of the text; `cut` if there is none."""
    least = max(0, len(held) - len(value) + 1)
    place = held.find(value[:1], least)
    while 0 <= place < cut:
        if value.startswith(held[place:]):
            return place
        place = held.find(value[:1], place + 1)
    return cut
