"""Keep a server's cache of the common prompt prefix on disk, so that a new server need not read it again.

Rules, tools and examples are some 900 tokens, half a minute of work for two cores, and the same in every session of a model.
llama.cpp saves what it made of them and takes it back in a moment; nothing of a conversation is in it.

https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md ("POST /slots/{id_slot}?action=save")
"""

import asyncio
import hashlib
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ybs.config.host import Host
from ybs.core.errors import YbsError
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.local.server import RunningServer, SocketConnection, slots_folder
from ybs.providers.remote import RemoteModel

#: A longer beginning has the folder and its documents in it, which no other session has.
MOST_CHARS: Final = 6_000
#: So many beginnings are kept, each of some 30 MB.
KEPT: Final = 4
READING: Final = "The local model reads how to work here, which can take a minute or more. That is kept: it is done once for each model."
_MARK: Final = "\x02words\x03"
_QUICK_SECONDS: Final = 20.0
#: As long as the first piece of an answer may take: others wait until the beginning is read.
_READ_SECONDS: Final = 600.0


async def prepare(
    host: Host,
    running: RunningServer,
    model: RemoteModel,
    request: Request,
    tell: Callable[[str], None],
    *,
    may_write: bool,
) -> None:
    """Have the server know how the prompts of this request's kind begin: from disk, else, where that may be written, by reading it once.

    What fails is left to the request itself: it says what is wrong, or reads everything.
    """
    folder = slots_folder(host)
    with suppress(OSError, HTTPException, YbsError, msgspec.DecodeError, LookupError, TypeError):
        text = await _beginning(running, model, request)
        if not text or len(text) > MOST_CHARS:
            return
        name = _name_of(running, text)
        with suppress(_Failed):
            if (folder / name).is_file():
                await _post(running, "/slots/0?action=restore", {"filename": name})
                if may_write:
                    os.utime(folder / name)
                return
        if not may_write:
            return
        tell(READING)
        only_read = {"prompt": text, "n_predict": 0, "cache_prompt": True}
        await _post(running, "/completion", only_read, seconds=_READ_SECONDS)
        await _post(running, "/slots/0?action=save", {"filename": name})
        _forget_oldest(folder)


async def _beginning(running: RunningServer, model: RemoteModel, request: Request) -> str:
    """Return the prompt up to the person's first words; nothing where the template does not keep them apart."""
    body = model.body(replace(request, messages=(UserMessage.of(_MARK),)))
    prompt: str = (await _post(running, "/apply-template", body))["prompt"]
    text, mark, _ = prompt.partition(_MARK)
    return text if mark else ""


def _name_of(running: RunningServer, text: str) -> str:
    """Return a file's name that stands for the model file, the window and the text."""
    facts = Path(running.model).stat()
    known = (running.model, facts.st_size, facts.st_mtime_ns, running.window, text)
    return f"{hashlib.sha256(repr(known).encode()).hexdigest()[:32]}.slot"


def _forget_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*.slot"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files[KEPT:]:
        path.unlink(missing_ok=True)


class _Failed(OSError):
    """The server refused."""


async def _post(
    running: RunningServer, path: str, body: Any, *, seconds: float = _QUICK_SECONDS
) -> dict[str, Any]:
    """Ask the server; when this is cancelled the connection is cut, which ends the server's work. Raises OSError, HTTPException."""
    connection = SocketConnection(running.socket, timeout=seconds)

    def ask() -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {running.key}", "Content-Type": "application/json"}
        connection.request("POST", path, msgspec.json.encode(body), headers)
        response = connection.getresponse()
        data = response.read()
        if response.status != 200:
            raise _Failed(f"{path}: {response.status}")
        return msgspec.json.decode(data, type=dict[str, Any])

    try:
        return await asyncio.to_thread(ask)
    finally:
        with suppress(OSError):
            if connection.sock is not None:
                connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
