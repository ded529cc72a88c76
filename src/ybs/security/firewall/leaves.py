"""The texts of plain data in the orders in which they may be parts of one: a secret may go on in the next value."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any, cast

from ybs.core.lazy import lazy
from ybs.security.firewall.anchors import cores_in
from ybs.security.firewall.decode import goes_on_at
from ybs.security.firewall.views import SEPARATOR

_DIGIT = lazy(r"[0-9]")
#: Of a long text its ends decide whether it goes on in another one, in bytes.
_END = 80


class Leaves:
    """The names and values of plain data that are texts. `texts` may be changed before `rebuilt` is asked for."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self.texts: list[str] = []
        self._values: list[int] = []
        self._names: dict[tuple[str, ...], list[int]] = {}
        self._columns: dict[tuple[str, ...], list[int]] = {}
        self._add(data, ())

    def _add(self, data: Any, path: tuple[str, ...]) -> None:
        match data:
            case str():
                self._values.append(len(self.texts))
                self._columns.setdefault(path, []).append(len(self.texts))
                self.texts.append(data)
            case list():
                for item in cast("list[Any]", data):
                    self._add(item, path)
            case dict():
                for name, value in cast("dict[str, Any]", data).items():
                    self._names.setdefault(path, []).append(len(self.texts))
                    self.texts.append(str(name))
                    self._add(value, (*path, str(name)))
            case _:
                pass

    def runs(self) -> Iterator[list[int]]:
        """Yield the numbers of texts that may go on in each other: among all values, each field of all records, and names."""
        columns = [each for each in self._columns.values() if len(each) < len(self._values)]
        names = [*self._names.values(), [*range(len(self.texts))]] if self._has_odd_name() else []
        for order in (self._values, *columns, *names):
            if len(order) > 1:
                yield from self._runs_in(order)

    def _has_odd_name(self) -> bool:
        """Return whether a name may be a part of a secret: those of fields have no digit."""
        numbers = (number for each in self._names.values() for number in each)
        return any(_DIGIT().search(self.texts[number]) for number in numbers)

    def _runs_in(self, order: list[int]) -> Iterator[list[int]]:
        """Yield the parts of an order in which each text may go on in the next one."""
        parts = (self.texts[number].encode("utf-8", "surrogatepass") for number in order)
        ends = [part if len(part) <= 2 * _END else _ends_of(part) for part in parts]
        data = b"\n".join(ends)
        places = {*goes_on_at(data, cores_in(data))}
        if not places:
            return
        after = accumulate(len(end) + 1 for end in ends)
        joined_at = {number for number, place in enumerate(after) if place - 1 in places}
        run: list[int] = []
        for number, text in enumerate(order):
            run.append(text)
            if number not in joined_at:
                if len(run) > 1:
                    yield run
                run = []

    def rebuilt(self) -> Any:
        """Return the data with the texts as they are now."""
        return _rebuilt(self._data, iter(self.texts))


def _ends_of(data: bytes) -> bytes:
    return data[:_END] + SEPARATOR + data[-_END:]


def _rebuilt(data: Any, texts: Iterator[str]) -> Any:
    match data:
        case str():
            return next(texts)
        case list():
            return [_rebuilt(item, texts) for item in cast("list[Any]", data)]
        case dict():
            members = cast("dict[str, Any]", data).values()
            return {next(texts): _rebuilt(value, texts) for value in members}
        case _:
            return data


def joined(data: Any) -> list[str]:
    """Return the texts that go on in each other, as one each."""
    leaves = Leaves(data)
    return ["\n".join(leaves.texts[number] for number in run) for run in leaves.runs()]
