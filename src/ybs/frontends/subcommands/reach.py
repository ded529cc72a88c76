"""What `ybs doctor` says of models: which one is chosen, where it would answer, which providers there are."""

import asyncio
from collections.abc import Iterator
from typing import assert_never

from ybs.agent.model_choice import asks_for_router
from ybs.commands.advice import INSTALL_STARTER
from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import AuthError, ModelError, YbsError
from ybs.core.remedies import Remedy
from ybs.frontends.subcommands.finding import Finding
from ybs.providers import reachable as reach
from ybs.providers.local import models
from ybs.providers.registry import chosen_name, find_provider, provider_names, shown_name


def look_at_model(host: Host, config: Config, trouble: YbsError | None) -> Iterator[Finding]:
    """Look at the provider and the model that a session would have."""
    name = chosen_name(config)
    has_router = config.router.enabled and len(config.router.arms) > 1
    if trouble is None and (has_router or asks_for_router(name, config.llm.model)):
        yield _router(host, config)
    elif name is None and models.starter_installed(host):
        yield Finding(
            name="provider", state="ok", detail="none chosen, so the starter model is used"
        )
    elif name is None:
        words = "none chosen; `ybs setup` helps you to choose one"
        yield Finding(name="provider", state="missing", detail=words, fix="ybs setup")
    elif trouble is not None:
        words = str(trouble).partition("\n")[0]
        yield Finding(
            name="provider", state="error", detail=words, fix=_fix_of(trouble, name, config)
        )
    else:
        yield Finding(name="provider", state="ok", detail=shown_name(name, config))
        yield _model(host, name, config)


def _router(host: Host, config: Config) -> Finding:
    from ybs.router.roster import roster_of  # few route

    roster = roster_of(host, config)
    arms = f"the router picks from {', '.join(arm.name for arm in roster.arms)}"
    if roster.problems:
        problems = "; ".join((arms, *roster.problems))
        return Finding(name="provider", state="warning", detail=problems, fix="ybs config check")
    return Finding(name="provider", state="ok", detail=arms)


def look_at_providers(host: Host, config: Config, needed: str | None = None) -> Iterator[Finding]:
    """Look at every provider; only the one that is needed has to be there."""
    for found in asyncio.run(_look(host, config)):
        if reach.is_unused(found, config):
            continue
        yield _provider(found, is_needed=found.provider == needed)


async def _look(host: Host, config: Config) -> list[reach.Reachability]:
    return await asyncio.gather(
        *(reach.look(host, name, config) for name in provider_names(config))
    )


def look_at_starter(host: Host) -> Finding:
    """Look for the starter model. Where it is the chosen one and not there, the provider's line says so."""
    if models.starter_installed(host):
        return Finding(name="starter model", state="ok", detail=str(models.starter_path(host)))
    words = f"`{INSTALL_STARTER}` fetches it ({models.STARTER_SIZE})"
    return Finding(
        name="starter model",
        state="missing",
        detail=words,
        fix=INSTALL_STARTER,
        is_needed=False,
    )


def _fix_of(trouble: YbsError, name: str, config: Config) -> str:
    """Return what lets a session start."""
    if not isinstance(trouble, AuthError):
        return INSTALL_STARTER if Remedy("install_model") in trouble.remedies else "ybs setup"
    variables = find_provider(name, config).key_variables
    return f"export {variables[0]}=..." if variables else "ybs setup"


def _model(host: Host, name: str, config: Config) -> Finding:
    """Say whether the chosen model is there. Only a server on this machine is asked."""
    try:
        found = asyncio.run(reach.look_at_model(host, name, config))
    except ModelError as error:
        return Finding(name="model", state="warning", detail=str(error), fix="ybs setup")
    words = f"{found.name}, window {found.window:,}"
    match found.state:
        case "listed" | "embedded":
            return Finding(name="model", state="ok", detail=words)
        case "unasked":
            return Finding(name="model", state="untried", detail=f"{words}, not checked")
        case "unsaid":
            words = f"{found.name}; {found.complaint or 'the provider does not list it'}"
            state = "warning" if found.complaint else "ok"
            return Finding(name="model", state=state, detail=words.rstrip("."))
        case "unlisted":
            words = f"{found.name} is not available at {found.endpoint}"
            fix = f"ollama pull {found.name}" if found.wire == "ollama" else "ybs setup"
            return Finding(name="model", state="missing", detail=words, fix=fix)
        case _:
            assert_never(found.state)


def _provider(found: reach.Reachability, *, is_needed: bool) -> Finding:
    """Say whether a provider could be used, and what mends it if not."""
    name = f"provider {found.provider}"
    if found.state == "unusable":
        return Finding(name=name, state="warning", detail=found.complaint, fix="ybs config check")
    if found.is_ready:
        is_near = found.state in ("running", "startable", "installed")
        return Finding(name=name, state="ok" if is_near else "untried", detail=_ready(found))
    detail, fix = lack_of(found)
    return Finding(name=name, state="missing", detail=detail, fix=fix, is_needed=is_needed)


def _ready(found: reach.Reachability) -> str:
    match found.state:
        case "running":
            return f"running at {found.endpoint}"
        case "startable":
            return "not running; it starts with the first request"
        case "installed":
            return "installed; log in there, if you have not"
        case "keyed":
            return f"key found ({found.variable or 'configuration'}), not tried"
        case _:
            return f"at {found.endpoint}, not checked"


def lack_of(found: reach.Reachability) -> tuple[str, str]:
    """Return what a provider lacks, and the line that gives it."""
    match found.state:
        case "empty":
            return (
                f"no model yet; `{INSTALL_STARTER}` fetches the starter",
                INSTALL_STARTER,
            )
        case "absent":
            command = found.advice.split("`")[1] if "`" in found.advice else ""
            return f"not installed; {found.advice}", command
        case "stopped":
            hint = f"; {found.advice}" if found.advice else ""
            command = found.advice.split("`")[1] if "`" in found.advice else "ybs setup"
            return f"not running at {found.endpoint}{hint}", command
        case _ if found.variable:
            return f"no key; set {found.variable}", f"export {found.variable}=..."
        case _:
            return "no key", ""
