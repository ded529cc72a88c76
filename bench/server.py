"""A scripted OpenAI-compatible server on loopback that answers at once and notes when each request came.

The first part of a request's path names the plan and the run: `/task-3/v1/chat/completions`. The answer to give
follows from the number of answers in the request's own history, so the server holds no state but its log:
`GET /task-3/log` returns it as JSON. Times are the monotonic clock, which all processes of a machine share.
"""

import asyncio
import json
import re
import sys
import time
from dataclasses import asdict, dataclass

FINAL = "Done. VALUE is 2 now, and the check passed."
CONTENT_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass
class Arrival:
    """One request: when its first byte and its last byte came, and when the answer had been sent."""

    path: str
    step: int
    began: float
    arrived: float
    answered: float
    body_bytes: int
    tools_bytes: int
    system_chars: int


def calls_of(plan: str) -> list[tuple[str, dict[str, str]]]:
    """List the tool calls of a plan: `task`, or `turnsN` for N calls that read and edit by turns."""
    if plan == "task":
        return [
            ("read_file", {"path": "src/app.py"}),
            edit("src/app.py"),
            ("run_shell", {"command": "echo checks passed"}),
        ]
    calls = []
    for number in range(int(plan.removeprefix("turns")) // 2):
        path = f"src/mod_{number:02d}.py"
        calls += [("read_file", {"path": path}), edit(path)]
    return calls


def edit(path: str) -> tuple[str, dict[str, str]]:
    return "edit_file", {"path": path, "old_text": "VALUE = 1", "new_text": "VALUE = 2"}


def deltas(step: int, call: tuple[str, dict[str, str]] | None):
    """Yield what the model streams at this step."""
    yield {"role": "assistant", "content": ""}
    if call is None:
        for start in range(0, len(FINAL), 16):
            yield {"content": FINAL[start : start + 16]}
        return
    name, arguments = call
    text = json.dumps(arguments)
    half = len(text) // 2
    head = {
        "index": 0,
        "id": f"call_{step}",
        "type": "function",
        "function": {"name": name, "arguments": ""},
    }
    yield {"tool_calls": [head]}
    for piece in (text[:half], text[half:]):
        yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def answer_of(step: int, call: tuple[str, dict[str, str]] | None) -> bytes:
    """Make the whole response, head included, as chunked server-sent events."""
    base = {
        "id": f"chatcmpl-{step}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "fake",
    }
    chunks = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas(step, call)
    ]
    reason = "tool_calls" if call else "stop"
    chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
    chunks.append({**base, "choices": [], "usage": usage})
    events = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]
    body = b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        + body
    )


def whole(status: str, data: object) -> bytes:
    body = json.dumps(data).encode()
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        status.encode(),
        len(body),
        body,
    )


class Server:
    """Answers requests and keeps the log of every run."""

    def __init__(self) -> None:
        self.runs: dict[str, list[Arrival]] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it is closed."""
        try:
            while first := await reader.read(1):
                began = time.monotonic()
                head = first + await reader.readuntil(b"\r\n\r\n")
                length = CONTENT_LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                arrived = time.monotonic()
                path = head.split(b" ", 2)[1].decode()
                writer.write(self.answer(path, body, began, arrived))
                await writer.drain()
                rows = self.runs.get(path.split("/")[1])
                if rows and rows[-1].arrived == arrived:
                    rows[-1].answered = time.monotonic()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()

    def answer(self, path: str, body: bytes, began: float, arrived: float) -> bytes:
        """Note the request and make its response."""
        run = path.split("/")[1]
        if path.endswith("/log"):
            return whole("200 OK", [asdict(row) for row in self.runs.get(run, [])])
        rows = self.runs.setdefault(run, [])
        request = json.loads(body) if body else {}
        messages = request.get("messages", [])
        step = sum(message["role"] == "assistant" for message in messages)
        system = "".join(
            str(message["content"]) for message in messages if message["role"] == "system"
        )
        tools = json.dumps(request.get("tools", []), separators=(",", ":"))
        rows.append(
            Arrival(path, step, began, arrived, arrived, len(body), len(tools), len(system))
        )
        if not path.endswith("/chat/completions"):
            return whole("404 Not Found", {"error": {"message": f"nothing at {path}"}})
        calls = calls_of(run.split("-")[0])
        return answer_of(step, calls[step] if step < len(calls) else None)


async def main() -> None:
    server = await asyncio.start_server(Server().serve, "127.0.0.1", 0, limit=2**24)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.get_running_loop().run_in_executor(
            None, sys.stdin.read
        )  # until the bench closes the pipe


if __name__ == "__main__":
    asyncio.run(main())
