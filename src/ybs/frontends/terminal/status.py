"""The start line and the line at the bottom: what is known, in the room there is."""

from typing import TypeAlias

from ybs.commands.figures import amount, cost, percent
from ybs.config.host import Host
from ybs.frontends.terminal.signs import Paint, Signs
from ybs.frontends.terminal.words import cells, shorten
from ybs.session.status import Status

#: A fact, and the style that prompt_toolkit draws it in.
Fact: TypeAlias = tuple[str, str]
#: How a mode is drawn that is not as calm as `ask`.
MODE_STYLES = {"plan": "nodim ansicyan", "auto": "nodim bold", "bypass": "nodim bold ansiyellow"}
WARNING = "nodim ansiyellow"
#: What `sandbox` says where nothing is around a command.
NO_SANDBOX = "no sandbox"
#: A model's name is cut to no fewer columns than these.
MIN_MODEL = 10
#: Model, mode and context: a model's name is cut before one of them is left out, or the word of a missing sandbox.
FEWEST = 3
#: How the facts stand side by side. Which of them are left out first is another matter: see `_facts`.
ORDER = ("incognito", "provider", "model", "mode", "sandbox", "context", "tokens", "cost", "jobs")


def start_line(
    version: str, state: Status, host: Host, width: int, paint: Paint, signs: Signs
) -> str:
    """Draw the first line: version, model, mode, sandbox, and where it works."""
    dot = f" {signs.dot} "
    name = f"ybs {version}"
    mark = ("incognito",) if state.incognito else ()
    facts = dot.join(
        (*mark, f"{state.shown_provider} {state.shown_model}", state.shown_mode, state.sandbox)
    )
    place = "  ".join(filter(None, (host.short(state.folder), state.branch)))
    left = f"{paint.bold(name)}  {facts}"
    gap = width - cells(left) - cells(place)
    if gap >= 2:
        return f"{left}{' ' * gap}{paint.dim(place)}"
    lines = [name, facts, place] if cells(left) > width else [f"{name}  {facts}", place]
    first, *rest = (shorten(line, width, signs.more) for line in lines)
    return "\n".join([paint.bold(first) if len(lines) == 3 else first, *map(paint.dim, rest)])


def second_line(state: Status, width: int, signs: Signs) -> str:
    """Write the line below: the documents that the model is told of, and where to learn more."""
    more, names = "/help for more", ", ".join(state.documents)
    if not names:
        return more
    gap = width - cells(names) - cells(more)
    return (
        f"{names}{' ' * gap}{more}" if gap >= 2 else f"{shorten(names, width, signs.more)}\n{more}"
    )


def toolbar(state: Status, width: int, signs: Signs, hint: str = "") -> list[Fact]:
    """Draw the bottom line: the facts that there is room for, and the branch. A hint takes their place."""
    if hint:
        return [("", shorten(f" {hint}", width, signs.more))]
    facts = _facts(state)
    least, model = FEWEST + state.incognito, state.shown_model
    _drop(facts, width, fewest=least + state.sandbox.startswith(NO_SANDBOX))
    _drop(facts, width + max(0, cells(model) - MIN_MODEL), fewest=least)
    if (excess := _columns(facts) - width) > 0:
        room = max(MIN_MODEL, cells(model) - excess)
        facts["model"] = ("", shorten(model, room, signs.more))
    _drop(facts, width, fewest=1)
    if len(facts) == 1:
        ((_, text),) = facts.values()
        return [("", shorten(f" {text}", width, signs.more))]
    line = _line(facts)
    gap = width - _columns(facts) - cells(state.branch)
    if gap >= 2 and "sandbox" in facts:  # never in its place
        line.append(("", " " * gap + state.branch))
    return line


def _facts(state: Status) -> dict[str, Fact]:
    """List what there is to say, the most important first; what is empty is left out."""
    used = state.usage.input_tokens + state.usage.output_tokens
    facts = {
        "incognito": ("", "incognito" if state.incognito else ""),
        "model": ("", state.shown_model),
        "mode": (MODE_STYLES.get(state.mode, ""), state.shown_mode),
        "context": ("", f"ctx {percent(state.context_tokens, state.window)}"),
        "sandbox": (WARNING if state.sandbox.startswith(NO_SANDBOX) else "", state.sandbox),
        "cost": ("", cost(state.usage)),
        "tokens": ("", f"{amount(used)} tok"),
        "jobs": ("", f"{state.jobs} job{'s' * (state.jobs > 1)}" if state.jobs else ""),
        "provider": ("", state.shown_provider),
    }
    return {name: fact for name, fact in facts.items() if fact[1]}


def _drop(facts: dict[str, Fact], width: int, *, fewest: int) -> None:
    """Leave out the least important facts that there is no room for, down to so many."""
    while len(facts) > fewest and _columns(facts) > width:
        facts.popitem()


def _line(facts: dict[str, Fact]) -> list[Fact]:
    """Put the facts in the order in which they are drawn; a provider stands close to its model."""
    line: list[Fact] = []
    for name in ORDER:
        if name in facts:
            is_close = name == "model" and "provider" in facts
            line += [("", " " if is_close or not line else "  "), facts[name]]
    return line


def _columns(facts: dict[str, Fact]) -> int:
    return sum(cells(text) for _, text in _line(facts))
