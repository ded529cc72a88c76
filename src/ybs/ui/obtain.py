"""What an offer leads to that is not at hand: a model to be fetched, a server to be named."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from ybs.providers.llama_cpp.models import STARTER_SIZE
from ybs.security.gate import put_over
from ybs.session.figures import number_in
from ybs.ui.offers import Read, Settings
from ybs.ui.remarks import say, short, show


def starter_facts() -> str:
    """Say what the starter model takes."""
    from importlib.util import find_spec

    runs = "runs here" if find_spec("xllamacpp") else "needs pip install 'ybs[local]'"
    return f"{STARTER_SIZE}, {runs}"


def fetch_starter(_read: Read) -> Settings:
    """Fetch the starter model. Raises YbsError where it cannot be had."""
    from ybs.providers.llama_cpp import STARTER_NAME

    path = asyncio.run(install_starter_here())
    say(f"It is in {short(path)}.")
    return {"llm.provider": "llamacpp", "llm.model": STARTER_NAME}


async def install_starter_here() -> Path:
    """Fetch the starter model and say how far it is."""
    from ybs.providers.llama_cpp.fetch import install_starter

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
    """Ask for an address, and for a model where the server has none or several. Raises ConfigError."""
    from ybs.providers.nearby import ask_openai
    from ybs.providers.registry import clean_endpoint

    if not (endpoint := read("Address, such as http://localhost:8080/v1: ").strip()):
        return None
    server = asyncio.run(ask_openai(clean_endpoint(endpoint, "openai")))
    names = [model.name for model in server.models] if server else []
    model = _pick(names, read) if len(names) > 1 else "".join(names) or read("Model: ").strip()
    return {"llm.provider": "openai", "llm.endpoint": endpoint, "llm.model": model or None}


def _pick(names: Sequence[str], read: Read) -> str:
    show([(name, "") for name in names])
    while True:
        word = read("Model, number or name [1]: ").strip() or "1"
        if word in names:
            return word
        if 1 <= (number := number_in(word)) <= len(names):
            return names[number - 1]
        say("Please type a number or a name from the list.")
