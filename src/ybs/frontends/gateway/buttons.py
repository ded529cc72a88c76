"""Buttons that were shown: a token stands for a choice, in one chat, once. They live as long as the gateway's process.

What a button is for does not outlive the process either: a question is asked anew when its turn is taken up, with new buttons.
"""

import secrets
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from ybs.core.wording import first_words
from ybs.frontends.gateway.channel import Button, Incoming, Place
from ybs.security.unicode import printable

#: So many are kept, the newest.
_MOST: Final = 5_000
_LONGEST_LABEL: Final = 60


class _Shown(Struct, frozen=True):
    chat: tuple[str, str, str]
    of: Any
    number: int


def _chat(place: Place) -> tuple[str, str, str]:
    return place.channel, place.account, place.chat


class Buttons:
    """The buttons that may still be pressed."""

    def __init__(self) -> None:
        self._shown = dict[str, _Shown]()

    def show(self, of: object, place: Place, labels: Sequence[str]) -> tuple[tuple[Button], ...]:
        """Return buttons for a chat, each in a row of its own, by which one of the labels is chosen. `of` is what `pressed` gives back."""
        rows = list[tuple[Button]]()
        for number, label in enumerate(labels):
            token = secrets.token_urlsafe(16)
            self._shown[token] = _Shown(_chat(place), of, number)
            rows.append((Button(first_words(printable(label), _LONGEST_LABEL), token),))
        for token in list(self._shown)[: max(0, len(self._shown) - _MOST)]:
            del self._shown[token]
        return tuple(rows)

    def pressed(self, incoming: Incoming) -> tuple[Any, int] | None:
        """Return what a button is of, and its place among the labels; None where no such button can be pressed in this chat."""
        shown = self._shown.get(incoming.button)
        if shown is None or shown.chat != _chat(incoming.place):
            return None
        return shown.of, shown.number

    def withdraw(self, of: object) -> None:
        """Have no button of this pressed any more."""
        self._shown = {token: each for token, each in self._shown.items() if each.of is not of}
