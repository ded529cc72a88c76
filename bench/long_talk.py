"""A session of 300 turns in a small window: what the person says in it, and what is left of it at the end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ybs.compaction.compaction import Compaction
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.events import AssistantSaid, Compacted, Event
from ybs.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from ybs.core.ports import Request
from ybs.testing import (
    ScriptedModel,
    ScriptedToolbox,
    answer,
    call,
)

TURNS = 300
FACTS_AT = (5, 100, 200)

_FILES = [
    "parser",
    "lexer",
    "config",
    "session",
    "router",
    "cache",
    "index",
    "layout",
    "prompt",
    "server",
    "worker",
    "schema",
]
_PLACES = ["core", "ui", "tools", "tests", "api", "jobs", "plugins", "docs"]
_VERBS = [
    "Open",
    "Look at",
    "Rename",
    "Split",
    "Test",
    "Move",
    "Simplify",
    "Document",
    "Check",
    "Refactor",
]
_THINGS = [
    "the loop",
    "that helper",
    "the error message",
    "the retry logic",
    "the imports",
    "the fixture",
    "the long function",
    "its return type",
]
_ENDS = [
    "please",
    "and run the tests",
    "and tell me what you see",
    "before we go on",
    "as we did above",
    "without touching the rest",
    "and keep it short",
    "then show me the diff",
    "if it is not done already",
    "and commit nothing yet",
]
_LONG = (
    "The test in {place}/test_{file}.py line {n} fails with a KeyError, can you have a look?",
    "Why does {file}.py need {n} lines for this? It should be half of that.",
    "I get exit code {n} from the {file} command since your last change in {place}.",
    "Hmm, the {file} still takes {n} ms; profile {place}/{file}.py and find out where the time goes.",
    "Good. Now do the same for {place}/{file}.py and the {n} callers of it.",
    "Can we drop the {file} argument? It was added in commit {hex} and nobody passes it.",
    "Compare {place}/{file}.py with what we had in {hex}, something got lost there.",
    "That is not what I meant: the {file} is fine, {place} is what is slow.",
    "Revert the last edit in {file}.py, I liked the old name better.",
    "What would happen if {n} users called {place}.{file} at the same time?",
)


def _slots(random: Random, text: str) -> str:
    return text.format(
        file=random.choice(_FILES),
        place=random.choice(_PLACES),
        n=random.randrange(2, 999),
        hex=f"{random.getrandbits(28):07x}",
    )


#: What the person says between the facts: a function of the turn and of chance.
FILLERS: dict[str, Callable[[int, Random], str]] = {
    "identical": lambda _turn, _random: "continue",
    "numbered": lambda turn, _random: f"Go on with step {turn} of the plan, please.",
    "slots": lambda _turn, random: (
        f"{random.choice(_VERBS)} {random.choice(_THINGS)} in {random.choice(_PLACES)}/"
        f"{random.choice(_FILES)}.py {random.choice(_ENDS)}."
    ),
    "varied": lambda _turn, random: _slots(random, random.choice(_LONG)),
    "mixed": lambda turn, random: FILLERS[
        random.choice(["identical", "numbered", "slots", "varied", "varied"])
    ](turn, random),
    "long": lambda _turn, random: " ".join(_slots(random, random.choice(_LONG)) for _ in "ab"),
}
#: What must not be lost, one of each for turns 5, 100 and 200.
FACTS: dict[str, tuple[str, str, str]] = {
    "cue": (
        "Remember: the staging database is called heron and listens on port 5439.",
        "Never push to the branch release-lts, only Marta may do that.",
        "From now on always use tabs in Makefiles and two spaces in YAML.",
    ),
    "plain": (
        "The staging database is called heron and listens on port 5439.",
        "Marta owns the branch release-lts and signs each build on her laptop.",
        "Our customers in Lisbon still run the old client 4.2.",
    ),
    "short": (
        "My name is Ottoline.",
        "We ship on Thursdays.",
        "The key fob lives in drawer 9.",
    ),
    "request": (
        "Put the release notes into Quokka.rst the way Ingrid asked for.",
        "Use the mirror at mirror.example.org instead of the default one.",
        "Write dates as 2026-11-22 everywhere in the invoices.",
    ),
}


@dataclass
class Told:
    """What came of a session."""

    lost: list[str] = field(default_factory=list[str])
    compactions: list[Compacted] = field(default_factory=list[Compacted])
    largest: int = 0
    is_back_to_back: bool = False
    problems: list[str] = field(default_factory=list[str])
    answers: int = 0

    def hear(self, event: Event) -> None:
        """Count: between two compactions there must be an answer."""
        if isinstance(event, Compacted):
            self.is_back_to_back |= bool(self.compactions) and not self.answers
            self.answers = 0
            self.compactions.append(event)
        self.answers += isinstance(event, AssistantSaid)


class Scale:
    """Estimates: four characters for a token, and some for each message. Each is weighed once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, int]] = {}

    def tokens(self, request: Request) -> int:
        """Weigh a request."""
        known = self._known
        for message in request.messages:
            if id(message) not in known:
                known[id(message)] = (message, _weight(message))
        said = sum(known[id(message)][1] for message in request.messages)
        return len(request.system) // 4 + 80 * len(request.tools) + said


def _weight(message: Message) -> int:
    match message:
        case UserMessage():
            return 4 + len(message.text) // 4
        case ToolResult():
            return 8 + len(message.output) // 4
        case AssistantMessage():
            calls = sum(len(c.name) + len(bytes(c.arguments)) for c in message.calls)
            return 4 + (len(message.text) + calls) // 4


async def play(
    filler: str, facts: str, *, seed: int = 1, room: int = 12_000, summary: str | None = "ok"
) -> Told:
    """Play a session. `summary` is what the model summarises with; None: it is not asked."""
    random = Random(seed)
    told, tokens = Told(), Scale().tokens
    planted = dict(zip(FACTS_AT, FACTS[facts], strict=True))
    conversation = Conversation("You help with code. " * 60)

    def reply(request: Request) -> Any:
        told.largest = max(told.largest, tokens(request))
        if not request.tools:
            return summary or ""
        last = request.messages[-1]
        if isinstance(last, UserMessage) and random.random() < 0.4:
            path = f"{random.choice(_PLACES)}/{random.choice(_FILES)}.py"
            return answer("I look.", call("read_file", path=path))
        return "I did what you asked for and ran the tests again. " * random.randrange(1, 6)

    model = ScriptedModel([reply] * (TURNS * 3), window=room)
    output: Any = lambda _call, _emit: "x = 1\n" * random.randrange(20, 700)  # noqa: E731 - one line is all
    toolbox = ScriptedToolbox({"read_file": output})
    guard = Compaction(threshold=0.95, room=lambda: room, size=tokens, specs=toolbox.specs)
    guard.model = None if summary is None else model
    agent = Agent(
        guard.guarding(model, conversation, told.hear), toolbox, told.hear, conversation, [guard]
    )
    for turn in range(1, TURNS + 1):
        words = planted.get(turn) or FILLERS[filler](turn, random)
        finished = await agent.run(UserMessage.of(words))
        if finished.reason != "done":
            told.problems.append(f"turn {turn}: {finished.reason} {finished.message}")
    last = next(r for r in reversed(model.requests) if r.tools)
    prompt = "\n".join(m.text for m in last.messages if isinstance(m, UserMessage))
    told.lost = [fact for fact in planted.values() if fact not in prompt]
    return told
