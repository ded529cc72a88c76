"""The first choice: which provider answers. Plain lines, so that it works in any terminal."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from ybs.config.schema import Config
from ybs.core.errors import ConfigError, YbsError
from ybs.security.gate import ask_line, put, put_over
from ybs.ui.settings_file import write_settings
from ybs.ui.signs import fit_encoding

#: Asks for a line; raises EOFError when there is none.
Read: TypeAlias = Callable[[str], str]
CLOUD = ("anthropic", "openai", "google", "mistral")
STARTER, STARTER_SIZE = "the starter model, Qwen2.5-Coder 1.5B", "1.1 GB"


class Offer(Struct, frozen=True, kw_only=True):
    """One line of the choice, and what it leads to: settings by dotted key, or None to go back."""

    text: str
    take: "Callable[[Read], dict[str, Any] | None]"


def set_up(read: Read = ask_line, environ: Mapping[str, str] | None = None) -> bool:
    """Let the person choose and write the choice down. Tell whether something was chosen."""
    offers = find_offers(os.environ if environ is None else environ)
    say("Which model shall ybs talk to?\n")
    for number, offer in enumerate(offers, 1):
        say(f"  {number}  {offer.text}")
    say("  q  quit\n")
    try:
        while True:
            word = read("Number, or q: ").strip().lower()
            if word in ("q", "quit", "exit"):
                return False
            if not word.isdecimal() or not 1 <= int(word) <= len(offers):
                say(f"Please type a number from 1 to {len(offers)}, or q.")
                continue
            if (settings := _take(offers[int(word) - 1], read)) is not None:
                path = write_settings(
                    {"llm.endpoint": None, **settings}
                )  # it was the old provider's
                say(f"Written to {path}. `ybs setup` changes it.\n")
                return True
    except (EOFError, KeyboardInterrupt):
        say("")
        return False


def find_offers(environ: Mapping[str, str]) -> list[Offer]:
    """List what can be chosen; providers whose key is there come first among the remote ones."""
    offers = [
        Offer(
            text=f"{STARTER}, on this machine ({STARTER_SIZE} to download)",
            take=_take_starter,
        ),
        Offer(text="a local Ollama", take=_take_ollama),
    ]
    keyed = [(name, variable) for name in CLOUD if (variable := _key_in(environ, name))]
    for name, variable in keyed:
        offers.append(Offer(text=f"{name} (key found in {variable})", take=_taker(name)))
    offers.append(Offer(text="another server that speaks the OpenAI protocol", take=_take_server))
    return offers


def say(text: str) -> None:
    """Write a line."""
    put(fit_encoding(text, sys.stdout.encoding or "ascii"), sys.stdout)


def _take(offer: Offer, read: Read) -> dict[str, Any] | None:
    try:
        return offer.take(read)
    except YbsError as error:
        say(f"{error}\n")
        return None


def _take_starter(read: Read) -> dict[str, Any] | None:
    from ybs.providers.llama_cpp import STARTER_NAME

    if read(f"Download {STARTER_SIZE}? [y/n] ").strip().lower() not in ("y", "yes"):
        say("")
        return None
    path = asyncio.run(install_starter_here())
    say(f"It is in {path}.")
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


def _take_ollama(read: Read) -> dict[str, Any] | None:
    names = models_of("ollama")
    if not names:
        say("Ollama has no model yet. `ollama pull qwen3:8b` fetches one.\n")
        return None
    return {"llm.provider": "ollama", "llm.model": _pick(names, read)}


def _taker(name: str) -> "Callable[[Read], dict[str, Any] | None]":
    def take(read: Read) -> dict[str, Any] | None:
        from ybs.providers.registry import find_provider

        usual = find_provider(name, Config()).model
        model = read(f"Model [{usual}]: ").strip() or usual
        return {"llm.provider": name, "llm.model": model}

    return take


def _take_server(read: Read) -> dict[str, Any] | None:
    endpoint = read("Address, such as http://localhost:8080/v1: ").strip()
    if not endpoint.startswith(("http://", "https://")):
        say("An address begins with http:// or https://.\n")
        return None
    model = read("Model: ").strip()
    return {"llm.provider": "openai", "llm.endpoint": endpoint, "llm.model": model or None}


def models_of(provider: str) -> list[str]:
    """Ask a provider for its models. Raises ModelError."""
    from ybs.providers.registry import list_models

    return asyncio.run(list_models(_named(provider), provider))


def _named(provider: str) -> Config:
    import msgspec

    return msgspec.convert(
        {"llm": {"provider": provider, "model": "any"}, "agent": {"retry_attempts": 0}}, Config
    )


def _pick(names: Sequence[str], read: Read) -> str:
    for number, name in enumerate(names, 1):
        say(f"  {number}  {name}")
    while True:
        word = read("Model, number or name [1]: ").strip() or "1"
        if word in names:
            return word
        if word.isdecimal() and 1 <= int(word) <= len(names):
            return names[int(word) - 1]
        say("Please type a number or a name from the list.")


def _key_in(environ: Mapping[str, str], name: str) -> str:
    from ybs.providers.registry import find_provider

    try:
        variables = find_provider(name, Config()).key_variables
    except ConfigError:
        return ""
    return next((variable for variable in variables if environ.get(variable, "").strip()), "")
