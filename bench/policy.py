"""Judging shell commands, beside parsing and walking the same commands with tree-sitter and no more."""

import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

import tree_sitter_bash
from lab import Lab, Row, interleave, median
from tree_sitter import Language, Node, Parser

from ybs.config.schema import SafetySettings
from ybs.core.messages import ToolCall
from ybs.core.ports import Preview
from ybs.security.policy.case import Subject
from ybs.security.policy.policy import Policy

MOST = 4


def measure(lab: Lab, rounds: int) -> list[Row]:
    """Judge every command of the tests' corpus; a round takes each in turn, so that nothing is remembered."""
    commands = corpus()
    runs = interleave(
        rounds,
        bare=lambda: timed(lambda: bare(commands)),
        judged=lambda: timed(lambda: judge(commands)),
    )
    ratio = median(runs["judged"]) / median(runs["bare"])
    each = median(runs["judged"]) / len(commands) * 1000
    return [
        Row(f"judging {len(commands)} commands / parsing and walking them", ratio, "x", MOST),
        Row("judging one command, on average", each, "ms"),
    ]


def corpus() -> list[str]:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "security"))
    from corpus.bypasses import BYPASSES
    from corpus.cases import all_cases

    return [command for _, _, command in [*all_cases(), *BYPASSES]]


def timed(call: Callable[[], object]) -> float:
    started = process_time()
    call()
    return process_time() - started


def bare(commands: list[str]) -> int:
    """Parse each command and look at every node's kind and text, as anybody must who judges them."""
    language, count = Language(tree_sitter_bash.language()), 0
    for command in commands:
        source = command.encode()
        count += walk(Parser(language).parse(source).root_node, source)
    return count


def walk(node: Node, source: bytes) -> int:
    count = len(node.type) + len(source[node.start_byte : node.end_byte])
    for child in node.children:
        count += walk(child, source)
    return count


def judge(commands: list[str]) -> None:
    policy = Policy(SafetySettings(), find_sandbox=lambda: "full")
    for command in commands:
        call = ToolCall(id="1", name="run_shell")
        policy.decide(call, "execute", Preview(title="Run"), Subject(command=command))
