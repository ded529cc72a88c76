"""Report the masked secrets of a session: which kind, where, how often. Never the value."""

from collections.abc import Sequence

from msgspec import Struct


class Masked(Struct, frozen=True, kw_only=True):
    """One secret in one place. `placeholder` is what stands there now."""

    kind: str
    place: str
    placeholder: str
    count: int


class SecretsReport:
    """The list behind `/secrets`."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}
        self._latest: dict[tuple[str, str, str], int] = {}

    def add(self, kind: str, place: str, placeholder: str) -> None:
        """Note that a secret was masked."""
        key = (kind, place, placeholder)
        self._counts[key] = self._counts.get(key, 0) + 1
        self._latest[key] = self._latest.get(key, 0) + 1

    def begin(self) -> None:
        """Forget what `latest` has."""
        self._latest.clear()

    @property
    def latest(self) -> Sequence[Masked]:
        """What was masked since `begin`."""
        return _rows(self._latest)

    @property
    def rows(self) -> Sequence[Masked]:
        """What was masked, in the order in which it was first seen."""
        return _rows(self._counts)


def _rows(counts: dict[tuple[str, str, str], int]) -> list[Masked]:
    return [
        Masked(kind=kind, place=place, placeholder=placeholder, count=count)
        for (kind, place, placeholder), count in counts.items()
    ]
