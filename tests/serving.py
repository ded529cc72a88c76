"""A scripted server in a thread, for tests that start the real command: a process of its own costs them much more."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

from scripted import OpenAIServer, ScriptedServer
from scripted.faults import Entry


@contextmanager
def serving(
    script: Sequence[Entry], kind: type[ScriptedServer] = OpenAIServer
) -> Iterator[ScriptedServer]:
    """Run the server until the block ends. Raises what its own `async with` raises."""
    server = kind(script)
    begun, failed = Event(), list[BaseException]()
    loop, over = asyncio.new_event_loop(), asyncio.Event()
    resume = server.resume
    server.resume = lambda: None if loop.is_closed() else loop.call_soon_threadsafe(resume) and None

    async def serve() -> None:
        async with server:
            begun.set()
            await over.wait()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve())
        except Exception as error:  # it belongs to the thread of the test
            failed.append(error)
        finally:
            begun.set()

    thread = Thread(target=run)
    thread.start()
    begun.wait()
    try:
        yield server
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(over.set)
        thread.join()
    if failed:
        raise failed[0]
