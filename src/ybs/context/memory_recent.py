"""The newest memories as the prompt has them: the beginning of each, in a line."""

from collections.abc import Sequence

from ybs.context.document_text import framed
from ybs.context.memory_file import Memory
from ybs.context.section import Section

#: The most bytes that the prompt has of all recent memories, of one, and of the line that says what is missing. A token
#: has about 4 bytes: 600 and 100 tokens.
_RECENT_BYTES, _EACH_BYTES, _NOTE_BYTES = 2_400, 400, 80
_INTRODUCTION = "Kept in earlier sessions, the newest first:"


def section_of(memories: Sequence[Memory], total: int, source: str) -> Section:
    """Return the section; there are `total` memories, of which these are the newest."""
    lines, left = [_INTRODUCTION], _RECENT_BYTES - len(_INTRODUCTION) - _NOTE_BYTES
    is_cut = False
    for memory in memories:
        line = _cut(_line(memory), min(_EACH_BYTES, left))
        is_cut |= line.endswith("…")
        left -= len(line.encode()) + 1
        lines.append(line)
    more = total - len(memories)
    if more or is_cut:
        lines.append(f"[{f'{more:,} more' if more else 'cut'}; the person can list them all]")
    return Section(name="memories", text="\n".join(lines), source=source, is_cut=is_cut or more > 0)


def _line(memory: Memory) -> str:
    said = " / ".join(" ".join(line.split()) for line in memory.text.split("\n") if line.strip())
    whose = f" ({memory.whose})" if memory.whose else ""
    return f"- {memory.day}{whose}: {framed(said)}"


def _cut(text: str, most_bytes: int) -> str:
    data = text.encode(errors="replace")
    if len(data) <= most_bytes:
        return text
    return data[: most_bytes - 3].decode(errors="ignore").rstrip() + "…"
