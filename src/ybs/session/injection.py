"""The message for the model about a command that the person typed, and reading it back for the screen."""

import re
from collections.abc import Mapping
from typing import Any

from ybs.core.lazy import lazy
from ybs.core.messages import UserMessage

#: What the model gets begins with one of these.
DONE, FAILED = "[Shell command output]", "[Shell command failed]"
#: What `tools/shell/output.py` writes in place of what it did not keep.
_LEFT_OUT = lazy(r"\n\[\.\.\. ([\d,]+) bytes(?: \(([\d,]+) lines\))? left out \.\.\.\]\n")
_ENDED = lazy(r"^(?:Exit code: (-?\d+)(?:\nSandbox: (.+))?|Stopped: .+)$", re.MULTILINE)


def injection(command: str, result: str, *, has_run: bool = True) -> str:
    """Write down a command with what came of it: what `spoken` says, or why it did not run."""
    return (
        f"{DONE if has_run else FAILED}\nCommand: {command}\n{'' if has_run else 'Error: '}{result}"
    )


def command_of(content: str) -> str:
    """Read the first line of the command from an injection."""
    return content.partition("\nCommand: ")[2].partition("\n")[0]


#: Stands before words that would be a command if they were typed: a paste, or a message that is put into the prompt again.
NO_COMMAND = "(pasted)\n"


def to_type(message: UserMessage) -> str:
    """Return the prompt text for a message that is taken back; sent again, it gives the same message."""
    return as_typed(message.words) if message.origin == "shell" else as_words(message.words)


def as_words(words: str) -> str:
    """Return words so that they are no command where they are put into the prompt."""
    return NO_COMMAND + words if words.lstrip().startswith("!") or is_command(words) else words


def is_command(line: str) -> bool:
    """Return whether the line is a slash command; a path such as `/etc/hosts` at the start is not one."""
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    return word.startswith("/") and "/" not in word[1:]


def as_typed(words: str) -> str:
    """Return words as the person typed them: of an injection the command alone, or its first line."""
    return shell_line(command_of(words)) if words.startswith((DONE, FAILED)) else words


def shell_line(command: str) -> str:
    """Return the line that runs a command in the sandbox, whatever it begins with: `!!` would begin one of the person's own shell."""
    return f"! {command}" if command.startswith("!") else f"!{command}"


def denial_of(content: str) -> str:
    """Read from an injection what in the sandbox the command ran into, as half a sentence; "" if it does not say."""
    found = None if content.startswith(FAILED) else _ENDED().search(content)
    return (found[2] or "") if found else ""


def ending_of(content: str) -> tuple[str, bool]:
    """Read from an injection how the command ended, and whether well; "" if it does not say."""
    if content.startswith(FAILED):
        return content.rpartition("\nError: ")[2], False
    if not (found := _ENDED().search(content)):
        return "", True
    if found[1] is None:
        return found[0][:1].lower() + found[0][1:].rstrip("."), False
    return f"exit code {found[1]}", found[1] == "0"


def spoken(result: Mapping[str, Any], most_chars: int, denial: str = "") -> str:
    """Write down how a command ended, in the specification's form (section 6.4), with at most so much of its output.

    What is longer than that has been kept in a file, which is named. `denial` is what in the sandbox it ran into.
    """
    if result.get("running"):
        lines = [f"Still running, in the background as {result['id']}"]
    elif not result["timed_out"]:
        lines = [f"Exit code: {result['exit_code']}", *([f"Sandbox: {denial}"] if denial else [])]
    else:
        lines = ["Stopped: it took longer than its time limit."]
    output, errors = result["stdout"].strip("\n"), result.get("stderr", "").strip("\n")
    room = max(most_chars // 2, most_chars - len(output))  # one stream has what the other leaves
    lines += ["", "Output:", _shortened(output, most_chars - min(room, len(errors)))]
    if errors:
        lines += ["", "Stderr:", _shortened(errors, room)]
    if file := result.get("output_file"):
        lines += ["", f"The whole output is in {file}"]
    return "\n".join(lines)


def _shortened(text: str, limit: int) -> str:
    """Return the text within `limit` characters; of one that was cut before, the note tells of all that is missing."""
    from ybs.tools.calls.cut import cut, from_line, up_to_line  # not on the way to the first prompt

    notes = _LEFT_OUT().finditer(text) if len(text) > limit else ()
    note = min(notes, key=lambda each: abs(each.start() - len(text) // 2), default=None)
    if note is None:
        return cut(text, limit)
    head, tail = text[: note.start() + 1], text[note.end() :]
    half = max(limit // 2 - len(note[0]), 1)
    first, last = up_to_line(head[:half]), from_line(tail[-half:])
    gone = head[len(first) :] + tail[: len(tail) - len(last)]
    size, lines = (int((each or "0").replace(",", "")) for each in note.groups())
    size, lines = size + len(gone.encode(errors="replace")), lines + gone.count("\n")
    in_lines = f" ({lines:,} lines)" if lines > 1 else ""
    return f"{first.removesuffix(chr(10))}\n[... {size:,} bytes{in_lines} left out ...]\n{last}"
