"""The newest memories as the prompt has them: the beginning of each, in a line."""

import re
from collections.abc import Sequence

from ybs.context.memory_file import Memory, Place
from ybs.context.section import Section

#: So many the prompt has.
MOST = 5
#: The most bytes that the prompt has of all recent memories, of one, and of the line that says what is missing. A token
#: has about 4 bytes: 600 and 100 tokens.
_RECENT_BYTES, _EACH_BYTES, _NOTE_BYTES = 2_400, 400, 80
_WHOSE: dict[Place, str] = {
    "project": "",
    "everywhere": " (all projects)",
    "repository": " (a file of the project)",
}
_INTRODUCTION = "Kept in earlier sessions, the newest first:"
#: What would open or close the frame around documents.
_FRAME = r"(?i)<(?=\s*/?\s*document\b)"


def section_of(memories: Sequence[Memory], total: int, source: str) -> Section:
    """Return the section; there are `total` memories, of which these are the newest."""
    lines, left = [_INTRODUCTION], _RECENT_BYTES - len(_INTRODUCTION) - _NOTE_BYTES
    is_cut = False
    for memory in memories[:MOST]:
        line = _cut(_line(memory), min(_EACH_BYTES, left))
        is_cut |= line.endswith("…")
        left -= len(line.encode()) + 1
        lines.append(line)
    more = total - len(memories[:MOST])
    if more or is_cut:
        lines.append(f"[{f'{more:,} more' if more else 'cut'}; /memories shows the person all]")
    return Section(name="memories", text="\n".join(lines), source=source, is_cut=is_cut or more > 0)


def _line(memory: Memory) -> str:
    said = " / ".join(" ".join(line.split()) for line in memory.text.split("\n") if line.strip())
    return f"- {memory.day}{_WHOSE[memory.place]}: {re.sub(_FRAME, '&lt;', said)}"


def _cut(text: str, most_bytes: int) -> str:
    data = text.encode(errors="replace")
    if len(data) <= most_bytes:
        return text
    return data[: most_bytes - 3].decode(errors="ignore").rstrip() + "…"
