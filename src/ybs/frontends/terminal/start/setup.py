"""The first choice: which model answers. One question in plain lines, so that it works in any terminal."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from ybs.commands.model_choices import CLOUD, Settings, find_choices
from ybs.config.host import Host
from ybs.config.key_store import keep_key, place_of
from ybs.config.settings_file import write_settings
from ybs.core.errors import ConfigError, YbsError
from ybs.frontends.headless.advice import told
from ybs.frontends.headless.ready_tools import WEB, install
from ybs.frontends.terminal.questions.late import ask_late, says_yes
from ybs.frontends.terminal.start.edits import choose_edits
from ybs.frontends.terminal.start.obtain import (
    ask_key,
    ask_model,
    ask_server,
    fetch_starter,
    starter_facts,
)
from ybs.frontends.terminal.start.offers import PAGE, STARTER, Offer, Read, meant, offer_of, order
from ybs.frontends.terminal.start.remarks import say, show
from ybs.providers.local.models import STARTER_SIZE

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
    """Return what the settings say of the model."""
    from ybs.trust.settings import load

    llm = load(host, folder=Path.cwd()).config.llm
    return {
        "llm.provider": llm.provider,
        "llm.model": llm.model,
        "llm.endpoint": llm.endpoint,
    }


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
    from ybs.providers.registry import chosen_provider, find_provider
    from ybs.providers.wires import clean_endpoint

    name, endpoint = settings["llm.provider"], settings.get("llm.endpoint")
    provider = find_provider(name, Config()) if endpoint else chosen_provider(host, Config(), name)
    endpoint = endpoint or provider.endpoint
    server = place_of(clean_endpoint(endpoint, provider.wire))
    place = keep_key(host, provider.name, server, key)
    say(f"The key is saved in {host.short(place)} and is sent to {server} only.")


def words_of(settings: Settings) -> str:
    """Name what was chosen."""
    from ybs.providers.http.client import unnamed_place

    provider, endpoint = settings["llm.provider"], settings.get("llm.endpoint")
    where = endpoint and provider and unnamed_place(provider, endpoint)
    return ", ".join(filter(None, (settings["llm.model"], where or provider)))


def find_offers(host: Host, *, is_incognito: bool = False, only_here: bool = False) -> list[Offer]:
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
            Offer(name=_ANY_PROVIDER, detail=f"{names}, with a key", ask=partial(ask_key, host))
        )
    others.append(Offer(name="another server\u2026", detail="by its address", ask=ask_server))
    if not found.files and not is_incognito:
        others.append(
            Offer(
                name=f"download {STARTER}", detail=starter_facts(), ask=partial(fetch_starter, host)
            )
        )
    return order([offer_of(each) for each in found.served], others)


class _Choice:
    """One list on the screen and the answer to it."""

    def __init__(self, host: Host, offers: Sequence[Offer], read: Read, using: str) -> None:
        self._host, self._offers, self._read, self._using = host, offers, read, using
        self._shown = 0
        self._has_ready = offers[0].is_ready

    def run(self) -> Settings | None:
        """Return what was chosen, or None to look again. Raises EOFError for leaving."""
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

    def _named(self, word: str) -> Offer | None:
        offers = self._offers
        place = meant(word, [each.name for each in offers], [each.detail for each in offers])
        name = word.casefold()
        if name in CLOUD and (place is None or offers[place].name == _ANY_PROVIDER):
            keyed = (each for each in offers if each.detail.startswith(f"{name}, key"))
            return next(keyed, Offer(name=name, ask=partial(ask_key, self._host, name=name)))
        return None if place is None else offers[place]

    def _take(self, offer: Offer) -> Settings | None:
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
