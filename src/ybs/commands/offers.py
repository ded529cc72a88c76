"""Menus of what can be reached: models and providers."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ybs.commands.advice import INSTALL_STARTER
from ybs.commands.figures import amount
from ybs.commands.model_choices import whose
from ybs.commands.router import routing_of
from ybs.config.addresses import is_loopback
from ybs.core.cutting import first_words
from ybs.core.errors import ModelError
from ybs.providers.catalog import known_models
from ybs.providers.facts import known
from ybs.providers.http.client import host_of, port_of
from ybs.providers.reachable import Reachability, in_time, list_models, look, models_here
from ybs.providers.registry import chosen_name, provider_names, runs_here
from ybs.session.reply import Menu, MenuItem, Reply
from ybs.session.session import Session

_LONGEST_LABEL = 60
_DETAILS: Final = {
    "startable": "ready; it starts with the first request",
    "installed": "installed; it answers with its own login",
    "empty": f"no model yet: `{INSTALL_STARTER}`",
    "keyed": "key found",
}


async def offer_models(session: Session) -> Reply:
    """Offer the models of the provider in use, and those of other servers on this machine."""
    config, used = session.config, session.agent.provider
    others = [name for name in provider_names(config) if name != used]
    (names, note), found = await asyncio.gather(
        _names_in_use(session), asyncio.gather(*(_others(name, session) for name in others))
    )
    model = session.agent.model.name
    own = [model, *(name for name in names if name != model)]
    items = [_model_item(session, name) for name in _allowed(session, used, own)]
    if len(config.router.arms) > 1:
        detail = "the router picks one of several for each turn"
        is_routed = routing_of(session) is not None
        items.append(MenuItem("/model auto", "auto", detail, is_current=is_routed))
    items += [item for more in found for item in more]
    title = f"Models of {session.agent.server}" + " and of other providers on this machine" * any(
        found
    )
    notes = [note] if note else []
    hint = "/model NUMBER takes one of these, /model NAME any other."
    menu = Menu(". ".join([title, *notes]), tuple(items))
    return Reply(menu=menu, notes=(hint,))


async def offer_providers(session: Session) -> Reply:
    """Offer every provider with what is known of it; nobody beyond this machine is asked."""
    names = provider_names(session.config)
    reaches = await asyncio.gather(*(look(session.host, name, session.config) for name in names))
    items = tuple(_provider_item(reach, session) for reach in reaches)
    menu = Menu("Providers", items)
    hint = "/provider NUMBER or /provider NAME [MODEL] switches; the conversation stays."
    return Reply(menu=menu, notes=(hint,))


async def offer_models_at(session: Session, name: str) -> Reply:
    """Offer the models of a provider that the person chose and that has no model of its own.

    Raises ConfigError for one on another machine where only this one may be used.
    """
    incognito = session.environment.incognito
    if incognito.only_here:
        is_here = runs_here(session.host, name, "", session.config)
        incognito.check_model(name, "", is_here=is_here)
    reach = await look(session.host, name, session.config)
    names: list[str] = []
    asked = list_models(session.host, session.config, name, is_keyless=bool(reach.owner))
    with suppress(ModelError, TimeoutError):
        names = await in_time(asked)
    if not names:
        text = f"{name} has no default model. Name one: /provider {name} MODEL"
        return Reply.error(text)
    items = [_item_at(reach, model) for model in _allowed(session, name, names)]
    if reach.owner:  # Enter changes nothing
        used = f"{session.agent.server} {session.agent.model.name}"
        items.insert(0, MenuItem("/provider current", _label(used), "in use", is_current=True))
    return Reply(menu=Menu(f"Models of {name}", tuple(items)))


async def whose_server(session: Session, provider: str) -> list[str]:
    """Say of a provider whose server it is, in a sentence, where that is another user's of this machine; else nothing."""
    owner = (await look(session.host, provider, session.config)).owner
    return [f"Its server on this machine is {whose(owner)}: your words go there."] if owner else []


async def names_of(session: Session) -> list[str]:
    """Ask the model in use for its neighbours; nothing where it does not say."""
    return (await _asked(session))[0]


async def _asked(session: Session) -> tuple[list[str], str]:
    """Return the names that the model's server lists, or why there are none."""
    used = session.agent.server
    try:
        return await in_time(session.agent.model.list_models()), ""
    except TimeoutError:
        return [], f"{used} did not list its models in time"
    except ModelError as error:
        return [], first_words(str(error).split("\n", 1)[0], 160).rstrip(".")


async def _names_in_use(session: Session) -> tuple[list[str], str]:
    names, why = await _asked(session)
    if names or not why:
        return names, ""
    used = session.agent.provider
    is_here = runs_here(session.host, used, session.agent.model.name, session.config)
    names = [] if is_here else known_models(used)
    return names, f"{why}{'; these are the ones ybs knows of' if names else ''}."


async def _others(name: str, session: Session) -> list[MenuItem]:
    """Return the models of another provider: asked here, else the one that the person's settings name."""
    config = session.config
    reach = await look(session.host, name, config)
    names = await models_here(session.host, reach, config)
    if not names and (own := config.providers.get(name)) is not None and own.model:
        names = [own.model] if reach.is_ready else []
    return [_item_at(reach, model) for model in _allowed(session, name, names)]


def _item_at(reach: Reachability, model: str) -> MenuItem:
    """Return the item for a model of another provider, which says whose server that is."""
    name = reach.provider
    return MenuItem(f"/provider {name} {model}", _label(f"{name} {model}"), _detail(reach))


def _allowed(session: Session, provider: str, names: Sequence[str]) -> list[str]:
    """Leave out what this session may not use."""
    incognito = session.environment.incognito
    if not incognito.only_here:
        return list(names)
    return [name for name in names if runs_here(session.host, provider, name, session.config)]


def _model_item(session: Session, name: str) -> MenuItem:
    window = known(session.config, session.agent.provider, name).window
    detail = f"{amount(window)} window" if window else ""
    is_current = name == session.agent.model.name
    return MenuItem(f"/model {name}", _label(name), detail, is_current=is_current)


def _provider_item(reach: Reachability, session: Session) -> MenuItem:
    is_current = reach.provider == session.agent.provider
    detail = f"in use, {_detail(reach)}" if is_current else _detail(reach)
    if (moved := _moved_to(reach, session)) and moved not in detail:
        detail += f", at {moved}"
    return MenuItem(
        f"/provider {reach.provider}", _label(reach.provider), detail, is_current=is_current
    )


def _moved_to(reach: Reachability, session: Session) -> str:
    """Return the host of the address that `llm.endpoint` gives a provider, where it gives it one."""
    config = session.config
    if not (config.llm.endpoint and reach.endpoint and reach.provider == chosen_name(config)):
        return ""
    host = host_of(reach.endpoint)
    return f"{host}:{port_of(reach.endpoint)}" if is_loopback(host) else host


def _detail(reach: Reachability) -> str:
    """Return in a few words what is known of a provider."""
    match reach.state:
        case "stopped":
            place = f" at {reach.endpoint}"
            return f"not running{f': {reach.advice}' if reach.advice else place}"
        case "absent":
            return f"not installed: {reach.advice}"
        case "keyless":
            return f"no key: set {reach.variable or 'one'}"
        case "unasked":
            return f"at {host_of(reach.endpoint)}"
        case "running" | "unusable":
            return reach.complaint or whose(reach.owner)
        case plain:
            return _DETAILS[plain]


def _label(text: str) -> str:
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
