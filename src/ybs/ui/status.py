"""The start line and the line at the bottom: what is known, in the room there is."""

from typing import TypeAlias

from ybs.session.figures import amount, money, percent
from ybs.session.session import Status
from ybs.ui.signs import Paint, Signs
from ybs.ui.words import cells, short_folder, shorten

#: A fact, and the style that prompt_toolkit draws it in.
Fact: TypeAlias = tuple[str, str]
#: How a mode is drawn that is not as calm as `ask`.
MODE_STYLES = {"plan": "nodim ansicyan", "auto": "nodim bold", "bypass": "nodim bold ansiyellow"}
WARNING = "nodim ansiyellow"
#: What `sandbox` says where nothing is around a command.
NO_SANDBOX = "no sandbox"
#: A model's name is cut before a fact is left out, to no fewer columns than these.
MIN_MODEL = 10


def start_line(version: str, state: Status, width: int, paint: Paint, signs: Signs) -> str:
    """Draw the first line: version, model, mode, sandbox, and where it works."""
    dot = f" {signs.dot} "
    name = f"ybs {version}"
    mark = ("incognito",) if state.incognito else ()
    facts = dot.join((*mark, f"{state.provider} {state.model}", state.mode, state.sandbox))
    place = "  ".join(filter(None, (short_folder(state.folder), state.branch)))
    left = f"{paint.bold(name)}  {facts}"
    gap = width - cells(left) - cells(place)
    if gap >= 2:
        return f"{left}{' ' * gap}{paint.dim(place)}"
    lines = [name, facts, place] if cells(left) > width else [f"{name}  {facts}", place]
    first, *rest = (shorten(line, width, signs.more) for line in lines)
    return "\n".join([paint.bold(first) if len(lines) == 3 else first, *map(paint.dim, rest)])


def toolbar(state: Status, width: int, signs: Signs, hint: str = "") -> list[Fact]:
    """Draw the bottom line: the facts that there is room for, and the branch. A hint takes their place."""
    if hint:
        return [("", shorten(f" {hint}", width, signs.more))]
    facts = [fact for fact in _facts(state) if fact[1]]
    model = 1 if state.incognito else 0
    while len(facts) > model + 3 and _columns(facts) > width:
        facts.pop()
    if (excess := _columns(facts) - width) > 0:
        name = facts[model][1]
        room = max(MIN_MODEL, cells(name) - excess)
        facts[model] = ("", shorten(name, room, signs.more))
    while len(facts) > 1 and _columns(facts) > width:
        facts.pop()
    line = [part for style, text in facts for part in (("", "  "), (style, text))]
    line[0] = ("", " ")
    gap = width - _columns(facts) - cells(state.branch)
    if gap >= 2 and len(facts) > model + 3:  # never in the place of the sandbox
        return [*line, ("", " " * gap + state.branch)]
    return line if len(facts) > 1 else [("", shorten(f" {facts[0][1]}", width, signs.more))]


def _facts(state: Status) -> tuple[Fact, ...]:
    """List what there is to say, the most important first; what is empty is left out."""
    used = state.usage.input_tokens + state.usage.output_tokens
    cost = state.usage.cost_usd
    return (
        ("", "incognito" if state.incognito else ""),
        ("", state.model),
        (MODE_STYLES.get(state.mode, ""), state.mode),
        ("", f"ctx {percent(state.context_tokens, state.window)}"),
        (WARNING if state.sandbox.startswith(NO_SANDBOX) else "", state.sandbox),
        ("", money(cost) if cost else ""),
        ("", f"{amount(used)} tok"),
        ("", f"{state.jobs} job{'s' * (state.jobs > 1)}" if state.jobs else ""),
        ("", state.provider),
    )


def _columns(facts: list[Fact]) -> int:
    return 1 + cells("  ".join(text for _, text in facts))
