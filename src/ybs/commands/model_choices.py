"""The models to choose from at a first start, as every frontend finds them: what this machine has, the best first."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ybs.config.host import Host
from ybs.config.key_store import find_variable, has_key, place_of
from ybs.config.presets import PRESETS
from ybs.config.schema import Config, LlmSettings
from ybs.core.errors import ConfigError
from ybs.providers.nearby import OLLAMA, NearModel, NearServer

#: Settings by dotted key.
Settings: TypeAlias = dict[str, Any]
#: Providers that a first start offers where there is a key for them.
CLOUD = (
    *("anthropic", "openai", "google", "mistral"),
    *(name for name, preset in PRESETS.items() if not preset.start_advice),
)
#: A model in memory takes more than its file: its window too.
_MEMORY_FACTOR = 1.25


class ModelChoice(Struct, frozen=True, kw_only=True):
    """A model with the settings that choose it. `place` names its server or provider, `variable` holds its key.

    `model` is empty where the provider has to be asked for one.
    """

    kind: Literal["server", "starter", "file", "key"]
    model: str
    settings: Settings
    place: str = ""
    size_bytes: int = 0
    is_large: bool = False  # for the memory of this machine
    is_far: bool = False  # a server here only passes the words on
    owner: str = ""  # another user of this machine, whose server it is
    variable: str = ""


class Choices(Struct, frozen=True, kw_only=True):
    """What was found: at servers on this machine, in files, and behind keys."""

    served: list[ModelChoice]
    files: list[ModelChoice]
    keyed: list[ModelChoice]


async def find_choices(host: Host, *, only_here: bool = False) -> Choices:
    """Look for what can be chosen. Servers on this machine are asked what they have, and nobody else."""
    from ybs.providers.nearby import find_servers

    servers = await find_servers(host.environ)
    return Choices(
        served=served_choices(host, servers, memory_bytes(), only_here=only_here),
        files=list(file_choices(host)),
        keyed=[] if only_here else list(key_choices(host)),
    )


def served_choices(
    host: Host, servers: Sequence[NearServer], memory: int | None, *, only_here: bool = False
) -> list[ModelChoice]:
    """List what servers on this machine have: the best of each, then the others."""
    found = [
        [
            choice
            for model in server.models
            if not ((choice := _served(host, server, model, memory)).is_far and only_here)
        ]
        for server in servers
    ]
    for own in found:  # what runs here first, then what fits into memory, then large ones
        own.sort(key=lambda each: (each.is_far, each.is_large, -each.size_bytes))
    return [each for own in found for each in own[:1]] + [each for own in found for each in own[1:]]


def file_choices(host: Host) -> Iterator[ModelChoice]:
    """List the starter model and other model files, where they are installed."""
    from ybs.providers.local import STARTER_NAME
    from ybs.providers.local.models import list_models, starter_installed, starter_path

    def settings(name: str) -> Settings:
        return {"llm.provider": "llamacpp", "llm.model": name}

    if starter_installed(host):
        yield ModelChoice(kind="starter", model=STARTER_NAME, settings=settings(STARTER_NAME))
    for file in list_models(host):
        if file.path != starter_path(host):
            yield ModelChoice(
                kind="file",
                model=file.name,
                settings=settings(file.name),
                size_bytes=file.size_bytes,
            )


def key_choices(host: Host) -> Iterator[ModelChoice]:
    """List the models of the providers whose keys are there. Nobody is asked, and no key is kept."""
    from ybs.providers.registry import chosen_provider

    for name in CLOUD:
        try:
            provider = chosen_provider(host, Config(), name)
        except ConfigError:
            continue
        found = find_variable(provider.key_variables, host.environ)
        if found or has_key(host, name, place_of(provider.endpoint)):
            settings = {"llm.provider": name, "llm.model": provider.model}
            yield ModelChoice(
                kind="key", model=provider.model, settings=settings, place=name, variable=found
            )


def _served(host: Host, server: NearServer, model: NearModel, memory: int | None) -> ModelChoice:
    from ybs.providers.registry import runs_here

    settings: Settings = {"llm.provider": server.provider, "llm.model": model.name}
    if server.wire != "ollama":
        settings[f"providers.{server.provider}.endpoint"] = server.endpoint
    elif server.endpoint != OLLAMA or host.environ.get("OLLAMA_HOST"):
        settings["llm.endpoint"] = server.endpoint
    size = model.size_bytes or 0
    return ModelChoice(
        kind="server",
        model=model.name,
        settings=settings,
        place=server.title,
        size_bytes=size,
        owner=server.owner,
        is_large=memory is not None and size * _MEMORY_FACTOR > memory,
        is_far=not runs_here(
            host, "ollama", model.name, Config(llm=LlmSettings(provider="ollama", endpoint=OLLAMA))
        ),
    )


def whose(owner: str) -> str:
    """Say of a server on this machine that it runs, and whose it is where it is another user's."""
    return f"another user's ({owner})" if owner else "running here"


def memory_bytes() -> int | None:
    """Return the memory of this machine, or None where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
