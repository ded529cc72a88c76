"""A question to the person outside of a chat: on standard error, answered with a word and Enter."""

import sys
from pathlib import Path
from time import monotonic

from ybs.core.ports import Answer, Question
from ybs.frontends.host import this_host
from ybs.frontends.terminal.plain.line_input import Lines, as_answer
from ybs.frontends.terminal.questions.confirm import whole_body, wish
from ybs.frontends.terminal.signs import fit_encoding
from ybs.security.gate import put
from ybs.security.unicode import printable


async def ask(question: Question, sandbox: str) -> Answer:
    """Ask whether one call may run, with `sandbox` around it; everything that is not clearly a yes is a no."""
    lines = [f"{wish(question, str(Path.cwd()), sandbox, this_host())}:"]
    lines.append(whole_body(question))
    lines += [f"Asked because {printable(question.reason)}."] if question.reason else []
    lines += [f"Warning: {printable(warning)}" for warning in question.warnings]
    text = "\n".join([*lines, "Answer yes, no or no because ...: "])
    put(fit_encoding(printable(text), sys.stderr.encoding), sys.stderr, end="")
    with Lines(monotonic) as typed:
        return as_answer(await typed.read_answer() or "", may_always=False)
