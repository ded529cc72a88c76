"""The cases of the bench: what a model asks for, and what must become of the file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from edits.draft import Draft, draft_of, plain
from edits.mining import Edit
from edits.slips import (
    Slip,
    blank_lines,
    elision,
    indentation,
    punctuation,
    tabs,
    trailing_space,
)
from edits.tellings import (
    escapes,
    extra_newline,
    first_indentation,
    line_numbers,
    other_line_ends,
)


@dataclass(frozen=True)
class Case:
    """One call of the tool. `after` is None where it must refuse; `disturbed` is written after the file was read."""

    name: str
    origin: str
    path: str
    before: bytes
    after: bytes | None
    old: str
    new: str
    disturbed: bytes | None = None


Maker = Callable[[Edit, Random], Case | None]

SLIPS: dict[str, tuple[Slip, ...]] = {
    "exact": (),
    "trailing space": (trailing_space,),
    "punctuation": (punctuation,),
    "indentation": (indentation,),
    "tabs": (tabs,),
    "line ends": (other_line_ends,),
    "blank lines": (blank_lines,),
    "line numbers": (line_numbers,),
    "escapes": (escapes,),
    "extra newline": (extra_newline,),
    "elision": (elision,),
    "first indentation": (first_indentation,),
}
_PAIRS: tuple[tuple[Slip, Slip], ...] = (
    (trailing_space, indentation),
    (indentation, line_numbers),
    (trailing_space, line_numbers),
    (indentation, other_line_ends),
    (punctuation, trailing_space),
    (punctuation, indentation),
    (tabs, trailing_space),
    (tabs, other_line_ends),
    (blank_lines, indentation),
    (blank_lines, trailing_space),
    (trailing_space, escapes),
    (indentation, escapes),
    (indentation, extra_newline),
    (trailing_space, first_indentation),
    (elision, indentation),
    (elision, trailing_space),
)
_CONTEXT: dict[Slip, int] = {elision: 6}


def repaired(name: str, edit: Edit, random: Random) -> Case | None:
    """Return a case of one class (or of two slips at once) whose result is determined, if the edit gives one."""
    slips = random.choice(_PAIRS) if name == "two at once" else SLIPS[name]
    context = max((_CONTEXT.get(slip, 0) for slip in slips), default=0)
    draft = draft_of(edit, random, 1, context)
    if draft is None or (slips and is_ambiguous(draft)):
        return None
    if not all(slip(draft, random) for slip in slips) or draft.old == draft.new:
        return None
    if not _is_met(name, slips, draft):
        return None
    how = " + ".join(slip.__name__ for slip in slips) if name == "two at once" else ""
    return case_of(name, draft, draft.after, how)


def case_of(name: str, draft: Draft, after: str | None, how: str = "") -> Case:
    """Return the case that a draft tells."""
    edit = draft.edit
    return Case(
        name=name,
        origin=f"{edit.origin} {how}".rstrip(),
        path=edit.path,
        before=draft.before.encode(),
        after=None if after is None else after.encode(),
        old=draft.old,
        new=draft.new,
    )


def is_ambiguous(draft: Draft) -> bool:
    """Return whether the change is, in a line or in all of them, one of what the slips change."""
    if not any(text.strip() for text in draft.real("cut", "add")):
        return True
    olds = {(plain(text), text) for text in draft.block}
    adds = draft.real("add")
    return any(looks == plain(add) and text != add for looks, text in olds for add in adds)


def _is_met(name: str, slips: tuple[Slip, ...], draft: Draft) -> bool:
    """Return whether the text is wrong for exact replacement, except where that does what is meant."""
    if not slips:
        return draft.before.count(draft.old) == 1 and draft.line_end == "\n"
    text = draft.before if name == "line ends" else "\n".join(draft.edit.before)
    if draft.old not in text:
        return True
    is_harmless = text.count(draft.old) == 1
    return (
        first_indentation in slips
        and is_harmless
        and text.replace(draft.old, draft.new) == "\n".join(draft.edit.after)
    )


def turns(edits: list[Edit], maker: Maker, seed: str) -> Iterator[Case]:
    """Yield a case for every edit that gives one, in an order that keeps kinds of files apart."""
    random = Random(seed)
    shift = random.randrange(len(edits)) if edits else 0
    for edit in edits[shift:] + edits[:shift]:
        case = maker(edit, random)
        if case is not None:
            yield case
