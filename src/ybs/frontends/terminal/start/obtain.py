"""What an offer leads to that is not at hand: a model to be fetched, a server to be named."""

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ybs.commands.model_choices import Settings
from ybs.config.addresses import is_loopback
from ybs.config.host import Host
from ybs.config.presets import PRESETS
from ybs.core.errors import ConfigError, ModelError
from ybs.frontends.headless.advice import told
from ybs.frontends.terminal.questions.late import ask_late, ask_secret, says_yes
from ybs.frontends.terminal.start.offers import Read, meant
from ybs.frontends.terminal.start.remarks import say, show
from ybs.providers.local.models import STARTER_SIZE
from ybs.security.gate import put_over

if TYPE_CHECKING:
    from ybs.providers.knock import Knock
    from ybs.providers.registry import Provider

#: A host as it is typed: localhost, a name with a dot or a port, a number.
_BARE = re.compile(r"(?P<host>localhost|[\w-]+(?:\.[\w-]+)+|[\w-]+(?=:\d))(?P<port>:\d+)?(?:/\S*)?")
#: Of a long list of models so many are shown; any can be named.
_MOST_SHOWN = 40
_NOT_LISTED = "Please type a number or a name from the list; the beginning of a name is enough."


def starter_facts() -> str:
    """Say what the starter model takes."""
    from importlib.util import find_spec

    runs = "runs here" if find_spec("xllamacpp") else "needs pip install 'ybs[local]'"
    return f"{STARTER_SIZE}, {runs}"


def fetch_starter(host: Host, read: Read) -> Settings | None:
    """Fetch the starter model, after a yes. None: the person said no or stopped it. Raises YbsError."""
    from ybs.providers.local import STARTER_NAME

    try:
        if not says_yes(f"Download {STARTER_SIZE} now?", read):
            return None
        path = asyncio.run(install_starter_here(host))
    except KeyboardInterrupt:
        say("\nStopped. What has been downloaded is kept; the next attempt continues from there.\n")
        return None
    say(f"It is in {host.short(str(path))}.")
    return {"llm.provider": "llamacpp", "llm.model": STARTER_NAME}


async def install_starter_here(host: Host) -> Path:
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
        return await install_starter(host, tell)
    finally:
        say("")


def ask_key(host: Host, read: Read, name: str = "") -> Settings | None:
    """Ask for a provider, unless one is named, and for its key; try the key there. None: the person went back."""
    from ybs.config.schema import Config
    from ybs.providers.registry import chosen_provider, find_provider

    if not (name := name or _name_of_provider(read)):
        return None
    endpoint = ""
    if name not in PRESETS or not PRESETS[name].address_variable:
        provider = chosen_provider(host, Config(), name)
    else:
        provider = find_provider(name, Config())
        endpoint = _read_address(read, f"Address, such as {provider.endpoint}")
        if not endpoint:
            return None
    if not (key := _read_key(read, f"Key of {name}")):
        return None
    if not (model := provider.model):
        model, key = _model_at(endpoint or provider.endpoint, key, read)
    elif not (key := _accepted_key(host, provider, key, read)):
        return None
    settings: Settings = {"llm.provider": name, "llm.model": model or None, "llm.api_key": key}
    return {**settings, "llm.endpoint": endpoint} if endpoint else settings


def _name_of_provider(read: Read) -> str:
    """Ask which provider; empty: the person went back."""
    from ybs.commands.model_choices import CLOUD
    from ybs.config.schema import Config
    from ybs.providers.registry import find_provider

    show([(name, find_provider(name, Config()).model) for name in CLOUD])
    while word := read("Provider, number or name (Enter goes back): ").strip():
        if (place := meant(word, CLOUD)) is not None:
            return CLOUD[place]
        say(_NOT_LISTED)
    return ""


def ask_model(host: Host, name: str, read: Read) -> Settings:
    """Ask a provider whose key is there for its models, and the person for one of them. Raises YbsError."""
    from ybs.config.schema import Config
    from ybs.providers.reach import in_time, list_models

    try:
        names = asyncio.run(in_time(list_models(host, Config(), name)))
    except (ModelError, TimeoutError) as error:
        say(f"{name} does not list its models: {error or 'it did not answer in time'}")
        names = []
    return {"llm.provider": name, "llm.model": _one_of(names, read) or None}


def _accepted_key(host: Host, provider: "Provider", key: str, read: Read) -> str:
    """Try a key at its provider, and ask for another until none is refused. Empty: the person gave up."""
    from ybs.providers.knock import try_key

    while key and (found := asyncio.run(try_key(host, provider, key))).state != "open":
        if found.state != "locked":
            say(f"{provider.name} could not be asked: {found.why or 'no answer in time'}")
            say("So the key has not been tried.")
            break
        say(f"{provider.name} refused this key.")
        key = _read_key(read, f"Key of {provider.name}")
    return key


def _read_key(read: Read, what: str) -> str:
    """Ask for a key, which is not shown, until it looks like one; empty: none."""
    secret = ask_secret if read is ask_late else read
    while key := secret(f"{what} (not shown while you type; Enter for none): ").strip():
        if key.isascii() and key.isprintable() and " " not in key:
            break
        say("That contains characters that a key cannot have. Was it copied completely?")
    return key


def _model_at(endpoint: str, key: str, read: Read) -> tuple[str, str]:
    """Return a model of the server at this address, as the person chooses it, and the key that it took."""
    from ybs.providers.wires import clean_endpoint

    found, key = _knocked(endpoint, clean_endpoint(endpoint, "openai"), read, key)
    return _one_of(found.models, read), key


def _one_of(names: Sequence[str], read: Read) -> str:
    return _pick(names, read) if len(names) > 1 else "".join(names) or read("Model: ").strip()


def _knocked(endpoint: str, address: str, read: Read, key: str = "") -> tuple["Knock", str]:
    """Ask a server for its models, and the person for a key where it wants one. Return what it said, and the key."""
    from ybs.providers.knock import knock

    while (found := asyncio.run(knock(endpoint, key))).state == "locked":
        say("The server refused this key." if key else f"{address} answers, but it needs a key.")
        if not (key := _read_key(read, "Key")):
            break
    if found.state == "silent":
        say(f"No server answers at {address} at the moment. You can choose it anyway.")
        if key:
            say("The key has not been tried.")
    elif found.state == "odd" or (found.state == "open" and not found.models):
        say(f"{address} answers, but does not list its models.")
    return found, key


def ask_server(read: Read) -> Settings | None:
    """Ask for an address until it is one, and for a model where the server has none or several."""
    if not (endpoint := _read_address(read, "Address, such as http://localhost:8080/v1")):
        return None
    model, key = _model_at(endpoint, "", read)
    settings: Settings = {
        "llm.provider": "openai",
        "llm.endpoint": endpoint,
        "llm.model": model or None,
    }
    return {**settings, "llm.api_key": key} if key else settings


def _read_address(read: Read, what: str) -> str:
    """Ask for an address until it is one; empty: none."""
    from ybs.providers.wires import clean_endpoint

    while endpoint := _whole(read(f"{what}: ").strip()):
        try:
            clean_endpoint(endpoint, "openai")
            break
        except ConfigError as error:
            say(f"{told(error)}\n")
    return endpoint


def _whole(address: str) -> str:
    """Complete `HOST:PORT`: on this machine and where a port is named it is http, as model servers are."""
    found = _BARE.fullmatch(address)
    if found is None:
        return address
    return f"http{'' if found['port'] or is_loopback(found['host']) else 's'}://{address}"


def _pick(names: Sequence[str], read: Read) -> str:
    show([(name, "") for name in names[:_MOST_SHOWN]])
    if (rest := len(names) - _MOST_SHOWN) > 0:
        say(f"  {rest} more: type the name")
    while True:
        word = read("Model, number or name [1]: ").strip() or "1"
        if (place := meant(word, names)) is not None:
            return names[place]
        say(_NOT_LISTED)
