"""The texts of plain data in the orders in which they may be parts of one: a secret may go on in the next value."""

from collections.abc import Iterator
from typing import Any, cast

from ybs.security.firewall.anchors import cores_in
from ybs.security.firewall.decode import may_go_on
from ybs.security.firewall.views import SEPARATOR

#: Of a long text its ends decide whether it goes on in another one, in characters.
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

    def orders(self) -> Iterator[list[int]]:
        """Yield the numbers of texts that may go on in each other: all values, each field of all records, the names of each, and all there is."""
        columns = [each for each in self._columns.values() if len(each) < len(self._values)]
        everything = [[*range(len(self.texts))]] if self._names else []
        for order in (self._values, *columns, *self._names.values(), *everything):
            if len(order) > 1 and self._may_go_on(order):
                yield order

    def _may_go_on(self, order: list[int]) -> bool:
        apart = SEPARATOR.decode()
        parts = (self.texts[number] for number in order)
        ends = (t if len(t) <= 2 * _END else f"{t[:_END]}{apart}{t[-_END:]}" for t in parts)
        text = "\n".join(ends).encode("utf-8", "surrogatepass")
        return may_go_on(text, cores_in(text))

    def rebuilt(self) -> Any:
        """Return the data with the texts as they are now."""
        return _rebuilt(self._data, iter(self.texts))


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
    return ["\n".join(leaves.texts[number] for number in order) for order in leaves.orders()]
