"""A question to the person outside of a chat: on standard error, answered with a word and Enter."""

import sys
from pathlib import Path
from time import monotonic

from ybs.core.ports import Answer, Question
from ybs.frontends.host import this_host
from ybs.frontends.terminal.plain.line_input import InputLines, as_answer
from ybs.frontends.terminal.questions.confirm import as_choice, marked_body, options_of, wish
from ybs.frontends.terminal.signs import fit_encoding
from ybs.security.gate import put
from ybs.security.unicode import printable


async def ask(question: Question, sandbox: str) -> Answer:
    """Ask whether one call may run, with `sandbox` around it; everything that is not clearly a yes is a no."""
    lines = [f"{wish(question, str(Path.cwd()), sandbox, this_host())}:"]
    lines.append(marked_body(question))
    lines += [f"Asked because {printable(question.reason)}."] if question.reason else []
    lines += [f"Warning: {printable(warning)}" for warning in question.warnings]
    how = "yes, no or no because ..."
    if question.choices is not None:
        lines += [f"{key}: {label}" for key, label in options_of(question)[:-2]]
        how = "with a number or in your own words"
    text = "\n".join([*lines, f"Answer {how}: "])
    put(fit_encoding(printable(text), sys.stderr.encoding), sys.stderr, end="")
    with InputLines(monotonic) as typed:
        said = await typed.read_answer() or ""
    if question.choices is not None:
        return as_choice(said, question)
    return as_answer(said, may_always=False)
