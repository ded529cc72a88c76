"""What can be chosen at the first start: what this machine has, best first, then what could be had."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from ybs.config.keys import find_variable
from ybs.config.schema import Config
from ybs.core.errors import ConfigError
from ybs.providers.nearby import OLLAMA, NearModel, NearServer

#: Asks for a line; raises EOFError when there is none.
Read: TypeAlias = Callable[[str], str]
#: Settings by dotted key.
Settings: TypeAlias = dict[str, Any]
CLOUD = ("anthropic", "openai", "google", "mistral")
STARTER = "the starter model"
#: So many lines are shown at once.
PAGE = 12
_FEWEST_LOCAL = 4
#: A model in memory takes more than its file: its window too.
_MEMORY_FACTOR = 1.25


class Offer(Struct, frozen=True, kw_only=True):
    """One line of the choice, and what it leads to: settings, or a question that ends in some (None: back)."""

    name: str
    detail: str = ""
    settings: Settings | None = None
    ask: "Callable[[Read], Settings | None] | None" = None

    @property
    def is_ready(self) -> bool:
        """Tell whether taking it asks and fetches nothing more."""
        return self.settings is not None


def order(local: Sequence[Offer], others: Sequence[Offer]) -> list[Offer]:
    """Put the best local models first, the rest behind what must not be overlooked."""
    room = max(_FEWEST_LOCAL, PAGE - len(others))
    return [*local[:room], *others, *local[room:]]


def local_offers(
    servers: Sequence[NearServer], memory: int | None, *, only_here: bool = False
) -> list[Offer]:
    """Offer what servers on this machine have: the best of each, then the others."""
    ranked = [_ranked(server, memory) for server in servers]
    offers = [
        [
            _of_server(server, model, memory)
            for model in models
            if not (only_here and _is_far(model))
        ]
        for server, models in zip(servers, ranked, strict=True)
    ]
    return [each for own in offers for each in own[:1]] + [
        each for own in offers for each in own[1:]
    ]


def file_offers() -> Iterator[Offer]:
    """Offer the starter model and other model files, where they are installed."""
    from ybs.providers.llama_cpp import STARTER_NAME
    from ybs.providers.llama_cpp.models import list_models, starter_installed, starter_path

    if starter_installed():
        yield _embedded(STARTER_NAME, f"{STARTER}, on this machine")
    for file in list_models():
        if file.path != starter_path():
            yield _embedded(file.name, f"a file on this machine, {_gigabytes(file.size_bytes)}")


def key_offers(environ: Mapping[str, str]) -> Iterator[Offer]:
    """Offer the providers whose keys are there. Nobody is asked, and no key is shown."""
    from ybs.providers.registry import find_provider

    for name in CLOUD:
        try:
            provider = find_provider(name, Config())
        except ConfigError:
            continue
        if found := find_variable(provider.key_variables, environ):
            settings = {"llm.provider": name, "llm.model": provider.model}
            yield Offer(
                name=provider.model, detail=f"{name}, key found in {found}", settings=settings
            )


def _ranked(server: NearServer, memory: int | None) -> list[NearModel]:
    """Sort: those on this machine first, those that fit into memory first, large ones first."""
    return sorted(
        server.models,
        key=lambda each: (_is_far(each), _is_large(each, memory), -(each.size_bytes or 0)),
    )


def _is_large(model: NearModel, memory: int | None) -> bool:
    return memory is not None and (model.size_bytes or 0) * _MEMORY_FACTOR > memory


def _is_far(model: NearModel) -> bool:
    """Tell whether a local Ollama only passes the words on."""
    from ybs.providers.whereabouts import runs_here

    return not runs_here("ollama", model.name, Config())


def _of_server(server: NearServer, model: NearModel, memory: int | None) -> Offer:
    if _is_far(model):
        facts = "sent on to its cloud"
    elif model.size_bytes:
        size = _gigabytes(model.size_bytes)
        facts = f"{size}, too large here" if _is_large(model, memory) else f"running here, {size}"
    else:
        facts = "running here"
    settings: Settings = {"llm.provider": server.provider, "llm.model": model.name}
    if server.wire != "ollama":
        settings[f"providers.{server.provider}.endpoint"] = server.endpoint
    elif server.endpoint != OLLAMA:
        settings["llm.endpoint"] = server.endpoint
    return Offer(name=model.name, detail=f"{server.title}, {facts}", settings=settings)


def _embedded(name: str, detail: str) -> Offer:
    return Offer(name=name, detail=detail, settings={"llm.provider": "llamacpp", "llm.model": name})


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 5e7 else f"{size_bytes / 1e6:.1f} MB"


def memory_bytes() -> int | None:
    """Return the memory of this machine, or None where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
