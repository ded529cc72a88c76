"""A scripted OpenAI-compatible server on loopback that writes Markdown, as fast as the path says.

`/stream-300/v1` streams 300 pieces a second until the client hangs up, `/lines-300-100/v1` a hundred paragraphs of one
line at that pace; `/turns/v1` answers each prompt with one tool
call (read, edit and shell by turns) and then with 2 kB of Markdown, at once; what is due follows from the history.
"""

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

CONTENT_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PIECE = 12
SECTION = """\
## Part {0}: the sum of the cart

The second coupon is taken from the price *before* the first one, so `apply()` reads the **wrong** value;
see [the notes](https://example.com/{0}) and the lines below, which say what was found and what it means for the
callers of this function in the other modules.

- the first point of part {0}, with `code` in it
- the second point, somewhat longer than the first one was, so that it folds on a narrow screen
  - a deeper one

```python
def total_{0}(cart, coupons):
    total = cart.subtotal
    for coupon in coupons:
        total -= coupon.discount(total)  # not of cart.subtotal
    return max(total, 0)
```

| name | value | note |
|---|---:|---|
| first | {0} | as it was |
| second | 80.00 | as it should be |

"""


def endless() -> Iterator[str]:
    """Write Markdown without an end, in pieces as a model does."""
    for number in count(1):
        text = SECTION.format(number)
        for start in range(0, len(text), PIECE):
            yield text[start : start + PIECE]


def answer_of(turn: int) -> str:
    """Write about 2 kB of Markdown that ends in a mark."""
    return (SECTION.format(turn) + SECTION.format(turn + 1000)) + f"\nThis was turn {turn}.\n"


def call_of(turn: int) -> tuple[str, dict[str, Any]]:
    """Say what the model calls in this turn."""
    match turn % 3:
        case 0:
            return "run_shell", {"command": f"echo checks of {turn} passed"}
        case 1:
            return "read_file", {"path": f"src/mod_{turn % 60:02d}.py"}
        case _:
            values = {"old_text": f"VALUE = {value_before(turn)}", "new_text": f"VALUE = {turn}"}
            return "edit_file", {"path": "src/app.py", **values}


def value_before(turn: int) -> int:
    return 1 if turn == 2 else turn - 3


def frame(delta: dict[str, Any], reason: str | None = None) -> bytes:
    """Make one chunk of the stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    event = f"data: {json.dumps({'id': 'c', 'model': 'fake', 'choices': [choice]})}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(event), event)


def ending(reason: str) -> bytes:
    usage = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
    events = [json.dumps({"id": "c", "choices": [], "usage": usage}), "[DONE]"]
    text = "".join(f"data: {event}\n\n" for event in events).encode()
    return frame({}, reason) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(text), text)


def turn_frames(body: bytes) -> list[bytes]:
    """Make what is due after this history: the call of the turn, or its answer."""
    sent = json.loads(body)["messages"]
    messages = [each for each in sent if not str(each.get("content")).startswith("Repo map:")]
    turn = sum(message["role"] == "user" for message in messages)
    if messages[-1]["role"] == "user":
        name, arguments = call_of(turn)
        call = {"index": 0, "id": f"call_{turn}", "type": "function"}
        call["function"] = {"name": name, "arguments": json.dumps(arguments)}
        return [frame({"role": "assistant", "tool_calls": [call]}), ending("tool_calls")]
    text = answer_of(turn)
    pieces = (text[start : start + PIECE] for start in range(0, len(text), PIECE))
    return [*(frame({"content": piece}) for piece in pieces), ending("stop")]


def lines(number: int) -> Iterator[str]:
    """Write so many short paragraphs that can be told apart."""
    for line in range(number):
        yield from ("line ", f"{line:04d} ", "ok\n\n")


async def stream(writer: asyncio.StreamWriter, pieces: Iterator[str], per_second: int) -> None:
    """Write the pieces at their times."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for number, piece in enumerate(pieces):
        wait = begun + number / per_second - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        writer.write(frame({"content": piece}))
        await writer.drain()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection until it is closed."""
    try:
        while first := await reader.read(1):
            head = first + await reader.readuntil(b"\r\n\r\n")
            length = CONTENT_LENGTH.search(head)
            body = await reader.readexactly(int(length[1])) if length else b""
            path = head.split(b" ", 2)[1].decode()
            if not path.endswith("/chat/completions"):
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}")
                continue
            writer.write(HEAD)
            match path.split("/")[1].split("-"):
                case ["stream", pace]:
                    await stream(writer, endless(), int(pace))
                case ["lines", pace, number]:
                    await stream(writer, lines(int(number)), int(pace))
                    writer.write(ending("stop"))
                case _:
                    writer.write(b"".join(turn_frames(body)))
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
        pass  # the client has gone, or the bench is over
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**24)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, sys.stdin.read)  # until the bench closes the pipe


if __name__ == "__main__":
    asyncio.run(main())
