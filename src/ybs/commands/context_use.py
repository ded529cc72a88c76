"""Where the tokens go: what fills the model's window, by whose words it is."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, assert_never

from msgspec import Struct

from ybs.agent.map_guard import TITLE
from ybs.context.prompt import FACTS, Section, framed_of
from ybs.core.messages import AssistantMessage, Message, Origin, ToolResult, Usage, UserMessage

if TYPE_CHECKING:
    from ybs.providers.tokens.estimate import TokenCounter
    from ybs.providers.tokens.meter import Meter
    from ybs.session.session import Session

#: The row of the repo map.
MAP: Final = "repo map"
#: The rows of what ybs itself says of the place, and where it has it from.
_FACT_ROWS: Final = {
    "system": ("machine", "ybs, the model and this machine"),
    "project": ("project", "the project's own files"),
    "commits": ("commits", "git, the last five"),
    "commands": ("commands", "ybs"),
}
#: Who speaks in the messages, in the order of the rows.
VOICES: Final = (
    "yours",
    "attached",
    "commands",
    "model",
    "results",
    "reminders",
    "summary",
)
_VOICE_OF: Final[dict[Origin, str]] = {
    "person": "yours",
    "shell": "commands",
    "guard": "reminders",
    "context": "reminders",
    "summary": "summary",
}


class Share(Struct, frozen=True, kw_only=True):
    """One part of what is sent; `parts` is what it is made of, `note` says where it comes from."""

    name: str
    tokens: int
    note: str = ""
    parts: "tuple[Share, ...]" = ()


class ContextUse(Struct, frozen=True, kw_only=True):
    """What fills the window: the size of the next request as it stands, and what it is made of.

    The shares are estimates and add up to `tokens`. `is_counted`: the provider itself has counted all but its
    own last answer. `cached` and `fresh` are of the last request, as the provider counted. `basis` says in words what the number rests on.
    """

    tokens: int
    window: int
    shares: tuple[Share, ...]
    cached: int
    fresh: int
    is_counted: bool
    basis: str


def measure(session: "Session") -> ContextUse:
    """Measure a session's next request and its shares."""
    counter, request = session.agent.window.counter, session.next_request()
    tokens, is_counted = counter.tokens(request), counter.is_counted(request)
    voices = _voices(counter.meter, request.messages)
    map_size = voices.pop(MAP)
    names = [name for name in VOICES if voices[name]]
    context, meter = session.context, counter.meter
    papers = context.documents
    facts = [each for each in context.sections if each.name in FACTS]
    framed = [meter.system(framed_of(paper)) for paper in papers]
    known = [meter.system(fact.text) for fact in facts]
    system = max(meter.system(request.system) - sum(framed) - sum(known), 0.0)
    tools = meter.tools(request.tools)
    sizes = [system, *known, tools, map_size, *framed, *(voices[n] for n in names)]
    parts = iter(_split(tokens, sizes))
    own = [_system_share(next(parts), [(fact.name, next(parts)) for fact in facts])]
    own += [Share(name=name, tokens=next(parts)) for name in ("tools", MAP)]
    written = tuple(
        Share(name=paper.name, tokens=next(parts), note=_note_on(paper)) for paper in papers
    )
    said = tuple(Share(name=name, tokens=next(parts)) for name in names)
    last = _last_usage(request.messages)
    return ContextUse(
        tokens=tokens,
        window=session.agent.model.window,
        shares=(
            *own[:2],
            Share(name="documents", tokens=sum(each.tokens for each in written), parts=written),
            own[2],
            Share(name="messages", tokens=sum(each.tokens for each in said), parts=said),
        ),
        cached=last.cached_tokens,
        fresh=max(0, last.input_tokens - last.cached_tokens),
        is_counted=is_counted,
        basis=_basis(counter, is_counted=is_counted),
    )


def _system_share(rules: int, facts: Sequence[tuple[str, int]]) -> Share:
    """Return the share of the system prompt without its documents: the rules, and what is known of the place."""
    rows = [(*_FACT_ROWS[name], tokens) for name, tokens in facts]
    parts = [Share(name=name, tokens=tokens, note=note) for name, note, tokens in rows]
    if parts:
        parts.insert(0, Share(name="rules", tokens=rules, note="how to work, folder, day"))
    whole = rules + sum(tokens for _, tokens in facts)
    return Share(name="system", tokens=whole, parts=tuple(parts))


def _note_on(paper: Section) -> str:
    return f"{paper.source}{' (cut)' if paper.is_cut else ''}".strip()


def _basis(counter: "TokenCounter", *, is_counted: bool) -> str:
    if is_counted:
        return "the total is counted"
    answers = counter.correction.answers
    if not answers:
        return "so is the total"
    return f"corrected by {answers} answer{'s' if answers > 1 else ''}"


def _voices(meter: "Meter", messages: Sequence[Message]) -> dict[str, float]:
    """Measure what each voice has in the messages."""
    sizes: dict[str, float] = dict.fromkeys((*VOICES, MAP), 0.0)
    for message in messages:
        whole = meter.message(message)
        match message:
            case UserMessage():
                behind = sum(meter.parts(message)[1:]) if len(message.content) > 1 else 0.0
                # Behind a summary stand the person's own words, as they were said.
                sizes["yours" if message.origin == "summary" else "attached"] += behind
                voice = MAP if message.words.startswith(TITLE) else _VOICE_OF[message.origin]
                sizes[voice] += whole - behind
            case AssistantMessage():
                sizes["model"] += whole
            case ToolResult():
                sizes["results"] += whole
            case _:
                assert_never(message)
    return sizes


def _split(total: int, sizes: Sequence[float]) -> list[int]:
    """Split a whole number into whole parts of these sizes, none of them lost to rounding."""
    whole = sum(sizes)
    ends = [round(end / whole * total) if whole else 0 for end in accumulate(sizes, initial=0.0)]
    return [end - start for start, end in pairwise(ends)]


def _last_usage(messages: Sequence[Message]) -> Usage:
    answers = (each for each in reversed(messages) if isinstance(each, AssistantMessage))
    last = next(answers, None)
    return Usage() if last is None else last.usage
