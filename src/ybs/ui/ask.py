"""A question to the person outside of a chat: on standard error, answered with a word and Enter."""

import sys
from pathlib import Path
from time import monotonic

from ybs.core.ports import Answer, Question
from ybs.security.unicode import printable
from ybs.ui.confirm import wish
from ybs.ui.plain import Lines, as_answer
from ybs.ui.signs import fit_encoding


async def ask(question: Question, sandbox: str) -> Answer:
    """Ask whether one call may run, with `sandbox` around it; everything that is not clearly a yes is a no."""
    lines = [f"{wish(question, str(Path.cwd()), sandbox)}:"]
    lines.append(printable(question.preview.body or question.preview.title))
    lines += [f"Warning: {printable(warning)}" for warning in question.warnings]
    text = "\n".join([*lines, "Answer yes, no or no because ...: "])
    sys.stderr.write(fit_encoding(text, sys.stderr.encoding))
    sys.stderr.flush()
    with Lines(monotonic) as typed:
        return as_answer(await typed.read_answer() or "", may_always=False)
