"""Sessions of twenty turns made of real texts: this repository's sources and docs, tool results, prose of two languages."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

from msgspec import Raw

from ybs.core.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage

ROOT = Path(__file__).parent.parent
TURNS = 20
PROSE = {
    path.stem: path.read_text("utf-8") for path in Path(__file__).parent.glob("token_texts/*.txt")
}
KINDS = ("code", "docs", "data", "German", "Chinese", "mixed")
_TOOLS = ("read_file", "search_files", "run_shell", "edit_file", "list_files")


class Story:
    """Makes one session's messages, turn by turn; the same seed makes the same."""

    def __init__(self, kind: str, seed: int) -> None:
        self._kind, self._random = kind, Random(f"{kind} {seed}")
        self._sources = _files("src/**/*.py") if kind != "docs" else _files("docs/**/*.md", "*.md")
        self._count = 0

    def turn(self) -> Iterator[Message]:
        """Yield a turn: the person, then answers with their results; the last answer asks for nothing."""
        yield UserMessage.of(self._prose(1, 4))
        for _ in range(self._random.randrange(0, 4)):
            call, output = self._step()
            said = (Text(text=self._prose(0, 2)),) if self._random.random() < 0.6 else ()
            yield AssistantMessage(content=(*said, call), stop_reason="tool_calls")
            yield ToolResult(call_id=call.id, name=call.name, output=output)
        yield AssistantMessage(content=(Text(text=self._answer()),))

    def _step(self) -> tuple[ToolCall, str]:
        self._count += 1
        path, text = self._random.choice(self._sources)
        name, arguments = self._random.choice(_TOOLS), {"path": path}
        lines = text.splitlines()
        start = self._random.randrange(max(1, len(lines) - 60))
        part = lines[start : start + self._random.randrange(5, 200)]
        output = "\n".join(f"{start + n:>5}  {line}" for n, line in enumerate(part, 1))
        if name == "edit_file":
            old = "\n".join(part[:6])
            arguments |= {"old_text": old, "new_text": old.replace("return", "yield") + "\n"}
            output = f"edited {path}: 1 replacement"
        elif name == "search_files" or self._kind == "data":
            output = (
                self._data() if self._random.random() < 0.7 else _hits(self._sources, self._random)
            )
        elif name == "run_shell":
            arguments = {"command": f"grep -n 'def ' {path} | head -40"}
            output = "\n".join(f"{n}:{line}" for n, line in enumerate(lines, 1) if "def " in line)
        elif self._kind in ("German", "Chinese"):
            output = self._prose(5, 30)
        call = ToolCall(id=f"call_{self._count}", name=name, arguments=Raw(_json(arguments)))
        return call, output or "no output"

    def _data(self) -> str:
        rows = [
            {
                "id": self._random.randrange(10**6),
                "file": self._random.choice(self._sources)[0],
                "size": self._random.randrange(10**5),
                "hash": f"{self._random.randrange(16**12):012x}",
                "changed_at": f"2026-11-{self._random.randrange(1, 30):02}T12:{self._random.randrange(60):02}:07Z",
                "is_open": self._random.random() < 0.5,
            }
            for _ in range(self._random.randrange(1, 30))
        ]
        return json.dumps(rows, indent=self._random.choice((None, 2)))

    def _prose(self, least: int, most: int) -> str:
        kind = self._kind.lower()
        if kind not in PROSE:
            languages = (*PROSE, "english") if kind == "mixed" else ("english",)
            kind = self._random.choice(languages)
        sentences = re.findall(
            r"[^.?\u3002\uff1f]+[.?\u3002\uff1f]", PROSE[kind].replace("\n", " ")
        )
        chosen = self._random.choices(sentences, k=self._random.randrange(least, most) + 1)
        return "".join(chosen).strip()

    def _answer(self) -> str:
        _, text = self._random.choice(self._sources)
        start = self._random.randrange(max(1, len(text) - 800))
        code = f"\n\n```\n{text[start : start + self._random.randrange(100, 800)]}\n```\n"
        return self._prose(1, 6) + (code if self._random.random() < 0.5 else "")


def _hits(sources: list[tuple[str, str]], random: Random) -> str:
    word = random.choice(("return", "self", "the", "import", "not"))
    rows = [
        f"{path}:{number}: {line}"
        for path, text in random.sample(sources, min(6, len(sources)))
        for number, line in enumerate(text.splitlines(), 1)
        if word in line
    ]
    return "\n".join(rows[:120])


def _files(*patterns: str) -> list[tuple[str, str]]:
    paths = sorted(path for pattern in patterns for path in ROOT.glob(pattern))
    return [
        (str(path.relative_to(ROOT)), path.read_text("utf-8"))
        for path in paths
        if path.name != "token_rates.py" and path.stat().st_size > 400
    ]


def _json(arguments: dict[str, str]) -> bytes:
    return json.dumps(arguments, ensure_ascii=False).encode()
