"""A seeded set of cases: so many of each class, from edits in turns."""

from collections.abc import Iterator
from functools import partial
from random import Random

from edits.cases import SLIPS, Case, Maker, repaired, turns
from edits.content import other_numbers, other_style, own_numbers
from edits.elisions import elided, elided_twice
from edits.mining import Edit
from edits.numbering import numbered_block, numbered_line
from edits.traps import TRAPS, Trap, absent_block

MORE: dict[str, Maker] = {
    "numbers of all kinds": numbered_block,
    "one numbered line": numbered_line,
    "own numbers": own_numbers,
    "elisions": elided,
}
MORE_TRAPS: dict[str, Trap] = {
    "other numbers": other_numbers,
    "other numbering": other_style,
    "elided twice": elided_twice,
}
REPAIRABLE = (*SLIPS, "two at once", *MORE)
REFUSED = (*TRAPS, *MORE_TRAPS, "absent block")
CLASSES = (*REPAIRABLE, *REFUSED)
EXACT_SHARE, REFUSED_SHARE = 0.1, 0.3


def _maker_of(name: str, edits: list[Edit]) -> Maker:
    makers: dict[str, Trap] = {**TRAPS, **MORE_TRAPS, **MORE}
    makers["absent block"] = partial(absent_block, others=edits)
    return makers[name] if name in makers else partial(repaired, name)


def _shares(count: int) -> dict[str, int]:
    """Return how many cases of each class make so many in all."""
    exact = round(count * EXACT_SHARE)
    refused = round(count * REFUSED_SHARE)
    groups = ((("exact",), exact), (REFUSED, refused), (REPAIRABLE[1:], count - exact - refused))
    return {
        name: total // len(names) + (number < total % len(names))
        for names, total in groups
        for number, name in enumerate(names)
    }


def make_cases(edits: list[Edit], count: int, seed: int, only: str | None = None) -> list[Case]:
    """Return cases of every class, or all of one. Classes that the edits cannot fill are made up by others of their kind."""
    wanted = _shares(count) if only is None else {only: count}
    sources = {name: turns(edits, _maker_of(name, edits), f"{seed}:{name}") for name in wanted}
    cases: list[Case] = []
    missing = {True: 0, False: 0}
    for name, number in wanted.items():
        found = [case for case, _ in zip(sources[name], range(number), strict=False)]
        missing[name in REFUSED] += number - len(found)
        cases += found
    for is_refused, names in ((True, REFUSED), (False, REPAIRABLE[1:])):
        cases += _fill([sources[n] for n in names if n in sources], missing[is_refused])
    Random(f"{seed}:order").shuffle(cases)
    return cases


def _fill(sources: list[Iterator[Case]], number: int) -> list[Case]:
    cases: list[Case] = []
    while sources and len(cases) < number:
        for source in list(sources):
            case = next(source, None)
            if case is None:
                sources.remove(source)
            elif len(cases) < number:
                cases.append(case)
    return cases
