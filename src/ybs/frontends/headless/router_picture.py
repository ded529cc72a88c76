"""The picture of `ybs router stats --svg`: what is believed of each model, and what was spent on each day."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from xml.sax.saxutils import escape

from ybs.router.overview import ArmState, Overview

#: Of the Okabe and Ito palette: told apart by colour-blind people too, and on light and dark ground.
_COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_GREY: Final = "#808080"
_WIDTH: Final = 960
_LEFT: Final = 220
_LONGEST_NAME: Final = 30  # characters
_ROW: Final = 22
_CHART: Final = 160
_TOP: Final = 64
_STYLE: Final = f"text{{font:12px sans-serif;fill:{_GREY}}} .t{{font-weight:bold}} .e{{text-anchor:end}} .m{{text-anchor:middle}}"


def svg_of(found: Overview) -> str:
    """Return the picture as an SVG document without scripts, on whatever ground it is shown."""
    charts = _TOP + _ROW * len(found.arms) + 56
    height = charts + _CHART + 40 + _ROW * len(found.arms)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>The router: {found.decisions} decisions</title><style>{_STYLE}</style>",
        _text(12, 22, f"Chance of success: {found.settled} results ({found.policy})", "t"),
        _text(_WIDTH - 12, 22, "dot: expected; line: where it lies in 9 of 10 cases", "e"),
        *_beliefs(found.arms),
        _text(12, charts - 14, "US dollars on each day (UTC)", "t"),
        *_spending(found, charts),
        "</svg>\n",
    ]
    return "\n".join(parts)


def colour_of(number: int) -> str:
    """Return the colour of the arm with this number."""
    return _COLOURS[number % len(_COLOURS)]


def _beliefs(arms: Sequence[ArmState]) -> Iterator[str]:
    """Draw a line from the least to the most likely chance, and a dot at the mean, of each arm at each kind of task."""
    kinds = [chance.kind for chance in arms[0].chances] if arms else []
    room = (_WIDTH - _LEFT - 12) / max(1, len(kinds))
    for column, kind in enumerate(kinds):
        left = _LEFT + column * room
        yield _text(left + room / 2, 46, kind, "m")
        for edge in (left + 4, left + room - 4):
            bottom = _TOP + _ROW * len(arms)
            yield _line(edge, 52, edge, bottom, _GREY, 0.5)
        if column == 0:  # the others have the same scale
            yield _text(left + 4, bottom + 14, "0", "m")
            yield _text(left + room - 4, bottom + 14, "1", "m")
    for row, arm in enumerate(arms):
        middle = _TOP + _ROW * row + _ROW / 2
        yield _text(_LEFT - 10, middle + 4, _short(arm.arm), "e")
        for column, chance in enumerate(arm.chances):
            left, span = _LEFT + column * room + 4, room - 8
            colour = colour_of(row)
            yield _line(
                left + chance.low * span, middle, left + chance.high * span, middle, colour, 3
            )
            yield f'<circle cx="{left + chance.mean * span:.1f}" cy="{middle:.1f}" r="4" fill="{colour}"/>'


def _spending(found: Overview, top: float) -> Iterator[str]:
    """Draw a bar for each day, with a part for each arm, and whose colour is whose."""
    days = sorted({use.day for use in found.spending})
    names = [arm.arm for arm in found.arms]
    names += sorted({use.arm for use in found.spending} - set(names))
    span = range(days[0], days[-1] + 1) if days else range(0)
    spent = {(use.day, use.arm): 0.0 for use in found.spending}
    for use in found.spending:
        spent[use.day, use.arm] += use.usd
    most = max((sum(spent.get((day, name), 0.0) for name in names) for day in span), default=0.0)
    room = (_WIDTH - _LEFT - 12) / max(1, len(span))
    bottom = top + _CHART
    yield _line(_LEFT, bottom, _WIDTH - 12, bottom, _GREY, 1)
    yield _text(_LEFT - 10, top + 16, f"{most:.2f} USD" if most >= 0.1 else f"{most:.4f} USD", "e")
    for column, day in enumerate(span):
        left, low = _LEFT + column * room, bottom
        for number, name in enumerate(names):
            tall = spent.get((day, name), 0.0) / most * (_CHART - 12) if most else 0.0
            low -= tall
            if tall:
                yield (
                    f'<rect x="{left + 2:.1f}" y="{low:.1f}" width="{_bar(room):.1f}" '
                    f'height="{tall:.1f}" fill="{colour_of(number)}"/>'
                )
        yield _text(left + 2 + _bar(room) / 2, bottom + 16, date_of(day)[5:], "m")
    for number, name in enumerate(names[: len(found.arms)]):
        line = bottom + 40 + _ROW * number
        yield f'<rect x="{_LEFT}" y="{line - 10:.0f}" width="12" height="12" fill="{colour_of(number)}"/>'
        yield _text(_LEFT + 20, line, name, "")


def _bar(room: float) -> float:
    """Return how wide a bar is where each has so much room."""
    return max(1.0, min(room - 4, 48))


def _short(name: str) -> str:
    """Return a name that fits beside its row: of a long one the end, which tells models apart."""
    return name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"


def date_of(day: int) -> str:
    """Return a day, counted from 1970, as it is written."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).date().isoformat()


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, width: float) -> str:
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}" '
        f'stroke-width="{width:g}" stroke-linecap="round"/>'
    )
