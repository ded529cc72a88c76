"""The start line and the line at the bottom: what is known, in the room there is."""

from msgspec import Struct

from ybs.core.messages import Usage
from ybs.ui.signs import Paint, Signs
from ybs.ui.words import amount, cells, short_folder, shorten


class State(Struct, kw_only=True):
    """What the lines show; read from the session when something has changed, not at every redraw."""

    provider: str = ""
    model: str = ""
    mode: str = ""
    sandbox: str = ""
    folder: str = ""
    branch: str = ""
    context_percent: int = 0
    usage: Usage = Usage()
    incognito: bool = False


def start_line(version: str, state: State, width: int, paint: Paint, signs: Signs) -> str:
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


def toolbar(state: State, width: int, signs: Signs, hint: str = "") -> str:
    """Draw the bottom line. A hint takes the place of what matters least."""
    used = state.usage.input_tokens + state.usage.output_tokens
    mark = ["incognito"] if state.incognito else []
    facts = [
        *mark,
        state.model,
        state.mode,
        f"ctx {state.context_percent}%",
        state.sandbox,
        f"{amount(used)} tok",
    ]
    if hint:
        return shorten(f" {hint}", width, signs.more)
    while len(facts) > 2 + len(mark) and cells("  ".join(facts)) + 1 > width:
        facts.pop()
    left = " " + "  ".join(facts)
    gap = width - cells(left) - cells(state.branch) - 1
    return left + " " * gap + state.branch if gap >= 2 else shorten(left, width, signs.more)
