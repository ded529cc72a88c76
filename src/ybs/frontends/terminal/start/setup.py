"""The first choice: which model answers. One question in plain lines, so that it works in any terminal."""

import asyncio
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec.structs import replace

from ybs.commands.model_choices import CLOUD, Settings, find_choices
from ybs.config.addresses import is_loopback, shown_address
from ybs.config.host import Host
from ybs.config.key_store import keep_key, place_of
from ybs.config.presets import PRESETS
from ybs.config.provider_change import keeps_from
from ybs.config.settings_file import write_settings
from ybs.core.errors import ConfigError, ModelError, YbsError
from ybs.frontends.headless.advice import told
from ybs.frontends.subcommands.tools import WEB, install
from ybs.frontends.terminal.questions.late import ask_late, ask_secret, say, says_yes, show
from ybs.frontends.terminal.start.offers import (
    PAGE,
    STARTER,
    Read,
    StartOffer,
    meant,
    offer_of,
    order,
)
from ybs.providers.local.models import STARTER_SIZE
from ybs.security.gate import put_over

if TYPE_CHECKING:
    from ybs.providers.nearby import ProbeResult
    from ybs.providers.registry import Provider


QUESTION = "Which model should ybs use?"
ABOUT_WEB = (
    "The model can search the web and read pages with two tools that are not installed yet. "
    "ybs asks before it uses them."
)
ASK_WEB = "Install web_search and web_fetch?"
NOTHING_FOUND = """\
No model was found on this machine. There are three ways to get one:

  The starter model: small, runs on this machine, downloaded once ({size}).
  Ollama: get it from https://ollama.com, then type in another terminal
  `ollama pull qwen3:8b`
  A provider with a key: choose it below, or set {keys}.
"""
KEYS = "ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or MISTRAL_API_KEY"
#: The name of the offer to take a provider with a key.
_ANY_PROVIDER = "a provider\u2026"
_QUIT = ("q", "quit", "exit")


def set_up(host: Host, read: Read = ask_late, *, using: str = "") -> bool:
    """Let the person choose the model, and whether edits are asked about, and write it down. Return whether one was chosen, or kept.

    `using` names the model of the chat that this was called from. Raises ConfigError when it cannot be written.
    """
    settings = choose(host, read, using=using or words_of(settings_in_use(host)))
    if settings is None:
        return False
    if settings:
        keep(host, settings)
    choose_edits(host, read)
    offer_web(host, read)
    if not using:
        say("Run `ybs` in the folder of a project to begin.")
    return True


def settings_in_use(host: Host) -> Settings:
    """Return a line about the configured model."""
    from ybs.trust.settings import load

    llm = load(host, folder=Path.cwd()).config.llm
    return {"llm.provider": llm.provider, "llm.model": llm.model, "llm.endpoint": llm.endpoint}


def choose(
    host: Host,
    read: Read = ask_late,
    *,
    is_incognito: bool = False,
    only_here: bool = False,
    using: str = "",
) -> Settings | None:
    """Ask which model; return the settings that say so, none ({}) for the one that is in use, or None. Nothing is written.

    `is_incognito` offers nothing that stays on the disk, `only_here` no model beyond this machine. `using` names the one in use.
    """
    try:
        while True:
            offers = find_offers(host, is_incognito=is_incognito, only_here=only_here)
            if (done := _Choice(host, offers, read, using).run()) is not None:
                return done
    except (EOFError, KeyboardInterrupt):
        say("")
        return None


def keep(host: Host, settings: Settings) -> None:
    """Write a choice into the person's own file and say so in a line. Raises ConfigError."""
    from ybs.trust.settings import load

    before = load(host, folder=Path.cwd())
    llm, origin = before.config.llm, before.origins["llm.api_key"]
    if llm.api_key and origin.layer == "user" and llm.provider != settings["llm.provider"]:
        raise ConfigError(
            f"{origin.source} holds llm.api_key, which is not {settings['llm.provider']}'s.\n"
            "Move that key into its provider's variable, then choose again. Nothing was written."
        )
    name = settings["llm.provider"]
    own, address = before.config.providers.get(name), settings.get(f"providers.{name}.endpoint")
    if own and address and keeps_from(own, address):
        raise ConfigError(
            f"Your settings describe providers.{name} with a key, headers or fields of its own for {shown_address(own.endpoint)}.\n"
            "Give that entry another name, then choose again. Nothing was written."
        )
    key = settings.get("llm.api_key")
    plain = {name: value for name, value in settings.items() if name != "llm.api_key"}
    # The endpoint was the old provider's.
    path = write_settings({"llm.endpoint": None, **plain}, host.user_config_file)
    if key:
        _keep_key(host, settings, key)
    place = host.short(str(path))
    say(f"{words_of(settings)}. Saved in {place}; change it with `ybs setup` or /model.")
    after = load(host, folder=Path.cwd())
    if after.config.llm.provider != settings["llm.provider"]:
        rival = after.origins["llm.provider"]
        say(
            f"But {rival.source} sets the provider to {after.config.llm.provider} and takes precedence."
        )
    say("")


def _keep_key(host: Host, settings: Settings, key: str) -> None:
    """Save a key for the provider at its address, and say where. Raises ConfigError."""
    from ybs.config.schema import Config
    from ybs.providers.registry import chosen_provider

    name = settings["llm.provider"]
    address = settings.get("llm.endpoint") or settings.get(f"providers.{name}.endpoint")
    server = place_of(address or chosen_provider(host, Config(), name).endpoint)
    place = keep_key(host, name, server, key)
    say(f"The key is saved in {host.short(place)} and is sent to {server} only.")


def words_of(settings: Settings) -> str:
    """Name what was chosen."""
    from ybs.providers.http.client import unnamed_place

    provider, endpoint = settings["llm.provider"], settings.get("llm.endpoint")
    where = endpoint and provider and unnamed_place(provider, endpoint)
    return ", ".join(filter(None, (settings["llm.model"], where or provider)))


def find_offers(
    host: Host, *, is_incognito: bool = False, only_here: bool = False
) -> list[StartOffer]:
    """List what can be chosen. Servers on this machine are asked what they have, and nobody else."""
    found = asyncio.run(find_choices(host, only_here=only_here))
    others = [
        offer_of(each)
        if each.model
        else replace(offer_of(each), settings=None, ask=partial(ask_model, host, each.place))
        for each in (*found.files, *found.keyed)
    ]
    if not only_here:
        names = f"{', '.join(CLOUD[:4])} or another"
        others.append(
            StartOffer(
                name=_ANY_PROVIDER, detail=f"{names}, with a key", ask=partial(ask_key, host)
            )
        )
    others.append(StartOffer(name="another server\u2026", detail="by its address", ask=ask_server))
    if not found.files and not is_incognito:
        others.append(
            StartOffer(
                name=f"download {STARTER}", detail=starter_facts(), ask=partial(fetch_starter, host)
            )
        )
    # Another user's server gets all words and code, so it is chosen by its number and never by Enter.
    others += [offer_of(each) for each in found.served if each.owner]
    return order([offer_of(each) for each in found.served if not each.owner], others)


class _Choice:
    """One list on the screen and the answer to it."""

    def __init__(self, host: Host, offers: Sequence[StartOffer], read: Read, using: str) -> None:
        self._host, self._offers, self._read, self._using = host, offers, read, using
        self._shown = 0
        self._has_ready = offers[0].is_ready

    def run(self) -> Settings | None:
        """Return the choice, or None to look again. Raises EOFError for leaving."""
        if self._using:
            say(f"In use: {self._using}.\n")
        if self._has_ready or self._using:
            say(f"{QUESTION}\n")
        else:
            say(NOTHING_FOUND.format(size=STARTER_SIZE, keys=KEYS))
        self._show_more()
        enter = "Enter takes 1" if self._has_ready else "Enter looks again"
        enter = "Enter keeps the one in use" if self._using else enter
        while True:
            word = self._read(f"Number or name ({enter}, q to quit): ").strip()
            if word.lower() in _QUIT:
                raise EOFError
            if not word and (self._using or not self._has_ready):
                return {} if self._using else None
            if word.lower() == "m" and self._shown < len(self._offers):
                self._show_more()
            elif (offer := self._named(word or "1")) is None:
                say(
                    f"Please type a number from 1 to {len(self._offers)}, the beginning of a name, or q."
                )
            else:
                return self._take(offer)

    def _named(self, word: str) -> StartOffer | None:
        offers = self._offers
        place = meant(word, [each.name for each in offers], [each.detail for each in offers])
        name = word.casefold()
        if name in CLOUD and (place is None or offers[place].name == _ANY_PROVIDER):
            keyed = (each for each in offers if each.detail.startswith(f"{name}, key"))
            return next(keyed, StartOffer(name=name, ask=partial(ask_key, self._host, name=name)))
        return None if place is None else offers[place]

    def _take(self, offer: StartOffer) -> Settings | None:
        try:
            return offer.settings if offer.ask is None else offer.ask(self._read)
        except YbsError as error:
            say(f"{told(error)}\n")
            return None

    def _show_more(self) -> None:
        page = self._offers[self._shown : self._shown + PAGE]
        show([(each.name, each.detail) for each in page], begin=self._shown + 1)
        self._shown += len(page)
        if rest := len(self._offers) - self._shown:
            say(f"  m  {rest} more")
        say("")


def offer_web(host: Host, read: Read) -> None:
    """Ask whether the model gets the tools of the web, and install them on a yes; nothing is asked where one is there already."""
    if any((host.config_folder / f"tools/{name}.py").exists() for name in WEB):
        return
    say(ABOUT_WEB)
    try:
        is_yes = says_yes(ASK_WEB, read)
    except (EOFError, KeyboardInterrupt):
        say("")
        return
    if is_yes:
        install(host, "web")
    say("")


#: A host as it is typed: localhost, a name with a dot or a port, a number.
_BARE = re.compile(r"(?P<host>localhost|[\w-]+(?:\.[\w-]+)+|[\w-]+(?=:\d))(?P<port>:\d+)?(?:/\S*)?")
#: Of a long list of models so many are shown; any can be named.
_MOST_SHOWN = 40
_NOT_LISTED = "Please type a number or a name from the list; the beginning of a name is enough."


def starter_facts() -> str:
    """Return the size and memory of the starter model, in words."""
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
    from ybs.providers.registry import route_of
    from ybs.trust.settings import load

    route = route_of(host, load(host, folder=Path.cwd()).config)
    last = ""

    def tell(done: int, total: int, what: str) -> None:
        nonlocal last
        text = f"{what}: {100 * done // max(1, total)}%" if what == "fetching" else what
        if text != last:
            put_over(text, sys.stdout, columns=40)
        last = text

    try:
        return await install_starter(host, tell, route)
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
    from ybs.providers.reachable import in_time, list_models

    try:
        names = asyncio.run(in_time(list_models(host, Config(), name)))
    except (ModelError, TimeoutError) as error:
        say(f"{name} does not list its models: {error or 'it did not answer in time'}")
        names = []
    return {"llm.provider": name, "llm.model": _one_of(names, read) or None}


def _accepted_key(host: Host, provider: "Provider", key: str, read: Read) -> str:
    """Try a key at its provider, and ask for another until none is refused. Empty: the person gave up."""
    from ybs.providers.nearby import try_key

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

    found, key = _probed(endpoint, shown_address(clean_endpoint(endpoint, "openai")), read, key)
    return _one_of(found.models, read), key


def _one_of(names: Sequence[str], read: Read) -> str:
    return _pick(names, read) if len(names) > 1 else "".join(names) or read("Model: ").strip()


def _probed(endpoint: str, address: str, read: Read, key: str = "") -> tuple["ProbeResult", str]:
    """Ask a server for its models, and the person for a key where it wants one. Return what it said, and the key."""
    from ybs.providers.nearby import probe

    while (found := asyncio.run(probe(endpoint, key))).state == "locked":
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
    """Ask for an address until it is one, and for a model where the server has none or several.

    The server is a provider of its own, called by host and port: what is kept for another one, or lies in its variable, is not sent there.
    """
    if not (endpoint := _read_address(read, "Address, such as http://localhost:8080/v1")):
        return None
    from ybs.providers.http.client import port_of

    model, key = _model_at(endpoint, "", read)
    name = urlsplit(endpoint).netloc.rpartition("@")[2].lower()
    if not {*".:"} & {*name}:  # a provider may be called like it
        name += f":{port_of(endpoint)}"
    settings: Settings = {
        "llm.provider": name,
        f"providers.{name}.endpoint": endpoint,
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


KEY = "safety.ask_before_edits"
MODE_ASK = """\
Unasked: any command, with the project read-only and no network, and edits of files that the model has read.
ybs asks before a command writes or uses the network, and before files are created or deleted."""
CHOICES = (
    ("edit without asking", "you see each change, and /undo takes it back"),
    ("ask before each edit", ""),
)


def choose_edits(host: Host, read: Read) -> None:
    """Ask, and write the answer down; nothing is asked where the settings say it already. Raises ConfigError."""
    from ybs.trust.settings import load

    say(f"{MODE_ASK}\n")
    if load(host, folder=Path.cwd()).origins[KEY].layer != "default":
        return
    names = [name for name, _ in CHOICES]
    show(CHOICES)
    try:
        while (
            place := meant(read("Files that the model has read: 1 or 2? ").strip(), names)
        ) is None:
            say("Please type 1 or 2.")
    except (EOFError, KeyboardInterrupt):
        say("")
        return
    write_settings({KEY: place == 1}, host.user_config_file)
    say(
        f"{('Edits are made without asking', 'Edits are asked about')[place]}. Change it with {KEY}.\n"
    )
