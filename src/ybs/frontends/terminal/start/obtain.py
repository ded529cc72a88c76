"""What an offer leads to that is not at hand: a model to be fetched, a server to be named."""

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ybs.commands.figures import number_in
from ybs.commands.model_choices import Settings
from ybs.config.paths import short
from ybs.core.errors import ConfigError
from ybs.frontends.headless.advice import told
from ybs.frontends.terminal.start.offers import Read
from ybs.frontends.terminal.start.remarks import say, show
from ybs.providers.http.client import is_loopback
from ybs.providers.local.models import STARTER_SIZE
from ybs.security.gate import put_over

#: A host as it is typed: localhost, a name with a dot or a port, a number.
_BARE = re.compile(r"(?P<host>localhost|[\w-]+(?:\.[\w-]+)+|[\w-]+(?=:\d))(?P<port>:\d+)?(?:/\S*)?")


def starter_facts() -> str:
    """Say what the starter model takes."""
    from importlib.util import find_spec

    runs = "runs here" if find_spec("xllamacpp") else "needs pip install 'ybs[local]'"
    return f"{STARTER_SIZE}, {runs}"


def fetch_starter(read: Read) -> Settings | None:
    """Fetch the starter model, after a yes. None: the person said no or stopped it. Raises YbsError."""
    from ybs.providers.local import STARTER_NAME

    try:
        word = read(f"Download {STARTER_SIZE} now? [Y/n] ").strip().lower()
        if word not in ("", "y", "yes"):
            return None
        path = asyncio.run(install_starter_here())
    except KeyboardInterrupt:
        say("\nStopped. What has been downloaded is kept; the next attempt continues from there.\n")
        return None
    say(f"It is in {short(str(path))}.")
    return {"llm.provider": "llamacpp", "llm.model": STARTER_NAME}


async def install_starter_here() -> Path:
    """Fetch the starter model and say how far it is."""
    from ybs.providers.local.fetch import install_starter

    last = ""

    def tell(done: int, total: int, what: str) -> None:
        nonlocal last
        text = f"{what}: {100 * done // max(1, total)}%" if what == "fetching" else what
        if text != last:
            put_over(text, sys.stdout, columns=40)
        last = text

    try:
        return await install_starter(tell)
    finally:
        say("")


def ask_server(read: Read) -> Settings | None:
    """Ask for an address until it is one, and for a model where the server has none or several."""
    from ybs.providers.nearby import ask_openai
    from ybs.providers.registry import clean_endpoint

    while endpoint := _whole(read("Address, such as http://localhost:8080/v1: ").strip()):
        try:
            address = clean_endpoint(endpoint, "openai")
            break
        except ConfigError as error:
            say(f"{told(error)}\n")
    else:
        return None
    server = asyncio.run(ask_openai(address))
    if server is None:
        say(f"No server answers at {address} at the moment.")
    names = [model.name for model in server.models] if server else []
    model = _pick(names, read) if len(names) > 1 else "".join(names) or read("Model: ").strip()
    return {"llm.provider": "openai", "llm.endpoint": endpoint, "llm.model": model or None}


def _whole(address: str) -> str:
    """Complete `HOST:PORT`: on this machine and where a port is named it is http, as model servers are."""
    found = _BARE.fullmatch(address)
    if found is None:
        return address
    return f"http{'' if found['port'] or is_loopback(found['host']) else 's'}://{address}"


def _pick(names: Sequence[str], read: Read) -> str:
    show([(name, "") for name in names])
    while True:
        word = read("Model, number or name [1]: ").strip() or "1"
        if word in names:
            return word
        if 1 <= (number := number_in(word)) <= len(names):
            return names[number - 1]
        say("Please type a number or a name from the list.")
