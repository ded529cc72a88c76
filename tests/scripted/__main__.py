"""python -m scripted: a scripted server in a process of its own, until it is told to end.

It prints its endpoint on one line, then serves. Requests are appended to `--record`, one JSON object a line.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from scripted.faults import read_script
from scripted.http import RecordedRequest
from scripted.server import (
    AnthropicServer,
    GoogleServer,
    MistralServer,
    OllamaServer,
    OpenAIServer,
    ResponsesServer,
    ScriptedServer,
)
from scripted.wire import encode
from ybs.testing.script import ScriptOver

SERVERS: dict[str, type[ScriptedServer]] = {
    "anthropic": AnthropicServer,
    "google": GoogleServer,
    "mistral": MistralServer,
    "ollama": OllamaServer,
    "openai": OpenAIServer,
    "openai-responses": ResponsesServer,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM."""
    options = _parser().parse_args(arguments)
    try:
        script = read_script(options.script.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        sys.stderr.write(f"{options.script}: {error}\n")
        return 2
    server = SERVERS[options.wire](
        script,
        models=options.model or ("scripted",),
        port=options.port,
        is_repeated=options.repeat,
        on_request=_recorder(options.record),
    )
    try:
        asyncio.run(_serve(server))
    except ScriptOver as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scripted", description=__doc__)
    parser.add_argument("--wire", choices=sorted(SERVERS), required=True)
    parser.add_argument("--script", type=Path, required=True, help="a JSON list of entries")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    parser.add_argument("--model", action="append", help="a model name to list (repeatable)")
    parser.add_argument("--repeat", action="store_true", help="begin anew when the script is over")
    parser.add_argument("--record", type=Path, help="a file that every request is appended to")
    return parser


def _recorder(path: Path | None) -> Callable[[RecordedRequest], None] | None:
    if path is None:
        return None

    def record(request: RecordedRequest) -> None:
        with path.open("ab") as file:
            file.write(encode(request) + b"\n")

    return record


async def _serve(server: ScriptedServer) -> None:
    end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    async with server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        await end.wait()


if __name__ == "__main__":
    raise SystemExit(main())
