"""What is told of older messages without a model: what was answered, files, commands, errors, names."""

import re
from collections.abc import Iterable, Sequence

from ybs.compaction.eliding import arguments_of, one_line
from ybs.core.messages import AssistantMessage, Message, ToolResult, UserMessage

FILES, NAMES = "Files that calls named:", "Names that came up:"
_SENTENCE = re.compile(r"(?s)^\W*(.+?(?:[.!?](?=\s|$)|\n\n|$))")
_NAME = re.compile(
    r"`[^`\n]{2,60}`"  # quoted as code
    r"|(?<![\w/])(?:~?/)?(?:[\w.-]+/)+[\w.-]*\w"  # a path
    r"|\b[\w-]+\.(?:[a-z]{1,4}|toml|yaml|json|lock)\b"  # a file
    r"|\b[A-Za-z]+_\w+\b|\b[a-z]+[A-Z]\w+\b|\b(?:[A-Z][a-z0-9]+){2,}\b|\b[A-Z]{2,}[A-Z0-9_-]*\d\w*\b"  # an identifier
    r"|\b\d[\d.,:]*\d{2,}\b"  # a number that says something
)
_FILES, _NAMES, _COMMANDS, _ERRORS = 30, 40, 8, 3


def extract(messages: Sequence[Message], previous: str, chars: int, focus: str = "") -> str:
    """Return what can be told in so many characters: half for the summary before, the newest of all the rest."""
    before = previous.strip()
    if len(before) > chars // 2:
        head, tail = before[: chars // 4].rsplit("\n", 1)[0], before[-(chars // 4) :]
        before = f"{head}\n…\n{tail.split(chr(10), 1)[-1]}"
    parts = [before] if before else []
    room = chars - len(before)
    for title, lines in (
        ("Last errors:", _errors(messages)),
        ("Commands that ran:", _commands(messages)),
        ("What was answered:", _answers(messages, focus)),
    ):
        if part := _part(title, lines, room):
            parts.append(part)
            room -= len(part) + 2
    return "\n\n".join(parts)


def references(messages: Sequence[Message], others: Iterable[str], chars: int) -> str:
    """List the files that calls named and the names that stand in the texts, within so many characters.

    Those of `others` (the summary before, words that are kept no longer) come before those of answers.
    """
    files = _files(messages)
    answers = [m.text for m in messages if isinstance(m, AssistantMessage)]
    names: dict[str, None] = {}
    for text in (*answers, *others):
        known = _listed(text, NAMES)
        for name in (*known, *_NAME.findall(without_references(text))):
            names.pop(name := name.strip("`"), None)
            names[name] = None
    told = [name for name in names if name not in files]
    parts = [_row(FILES, list(files)[-_FILES:], chars * 2 // 3)]
    parts.append(_row(NAMES, told[-_NAMES:], chars - len(parts[0]) - 1))
    return "\n".join(filter(None, parts))


def without_references(text: str) -> str:
    """Return a summary without the lists behind it."""
    lines = text.split("\n")
    while lines and (lines[-1].startswith((FILES, NAMES)) or not lines[-1].strip()):
        lines.pop()
    return "\n".join(lines)


def _row(title: str, words: Sequence[str], chars: int) -> str:
    """Put as many words behind the title as fit, the last ones first."""
    taken: list[str] = []
    room = chars - len(title)
    for word in reversed(words):
        if len(word) + 2 > room:
            break
        room -= len(word) + 2
        taken.append(word)
    return f"{title} {', '.join(reversed(taken))}" if taken else ""


def _listed(text: str, title: str) -> list[str]:
    """Return the words that `_row` put behind the title."""
    rows = [line for line in text.split("\n") if line.startswith(title)]
    return rows[-1].removeprefix(title).strip().split(", ") if rows else []


def _part(title: str, lines: Sequence[str], chars: int) -> str:
    """Put lines under a title, the newest of them that fit, in order."""
    taken: list[str] = []
    room = chars - len(title)
    for line in lines:  # the newest, or the most wanted, come first
        if len(line) + 3 > room:
            break
        room -= len(line) + 3
        taken.append(line)
    return "\n".join([title, *(f"- {line}" for line in reversed(taken))]) if taken else ""


def _answers(messages: Sequence[Message], focus: str) -> list[str]:
    wanted = set(re.findall(r"\w+", focus.lower()))
    said: list[str] = []
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and message.text.strip():
            found = _SENTENCE.match(message.text)
            said.append(one_line(found[1] if found else message.text, 200))
    said = list(dict.fromkeys(said))
    return sorted(said, key=lambda line: -len(wanted & set(re.findall(r"\w+", line.lower()))))


def _commands(messages: Sequence[Message]) -> list[str]:
    ran = [
        one_line(command, 100)
        for message in reversed(messages)
        if isinstance(message, AssistantMessage)
        for call in reversed(message.calls)
        if isinstance(command := arguments_of(call).get("command"), str)
    ]
    return list(dict.fromkeys(ran))[:_COMMANDS]


def _errors(messages: Sequence[Message]) -> list[str]:
    failed = [
        f"{message.name}: {one_line(message.output, 160)}"
        for message in reversed(messages)
        if isinstance(message, ToolResult) and message.is_error
    ]
    return list(dict.fromkeys(failed))[:_ERRORS]


def _files(messages: Sequence[Message]) -> dict[str, None]:
    files: dict[str, None] = {}
    for message in messages:
        calls = message.calls if isinstance(message, AssistantMessage) else ()
        for call in calls:
            given = arguments_of(call)
            path = given.get("path") or given.get("file_path")
            if isinstance(path, str) and path:
                files.pop(path, None)
                files[path] = None
        if isinstance(message, UserMessage) and message.origin == "summary":
            told = message.content[0]
            text = getattr(told, "text", "")
            files |= dict.fromkeys(_listed(text, FILES))
    return files
