"""Fixtures of the tests with the real command."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from screen import Screen
from serving import serving

Start = Callable[..., Screen]


@pytest.fixture
def start(project: Path) -> Iterator[Start]:
    """Return a function that starts a server with a script, and ybs on a terminal that talks to it."""
    with ExitStack() as stack:

        def started(script: Sequence[Any], *words: str, **options: Any) -> Screen:
            server = stack.enter_context(serving(script))
            where = ("--endpoint", server.url, "-m", "scripted")
            # Nobody else names the window, so that ybs would say what it assumes.
            environ = {"YBS_CONTEXT__MAX_TOKENS": "32768", **options.pop("environ", {})}
            return stack.enter_context(Screen(*where, *words, environ=environ, **options))

        yield started
