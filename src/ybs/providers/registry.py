"""The registry: which providers there are, and a model made from the configuration.

Built-in providers are found by a table; modules are imported and entry points (`ybs.providers`) read only
for the one that is asked for.

A variable's key (`OPENAI_API_KEY`) belongs to its maker's own address. It goes to another one only where both were named together: by a
variable beside it (`OPENAI_BASE_URL`), or by `llm.provider` and `llm.endpoint` from one hand. An address alone is a server of its own, which
gets the key that was saved for exactly its origin, or none. The key of the settings (`llm.api_key`) is for the address that stands beside it,
else for the maker's own: it does not follow a variable.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.addresses import is_local, is_loopback, is_passed_on, shown_address
from ybs.config.document import complaint_of
from ybs.config.host import Host
from ybs.config.key_store import find_key, find_variable, place_of, stored_key
from ybs.config.presets import BUILT_IN, PRESETS, Preset
from ybs.config.provider_change import ADDRESS_ALONE
from ybs.config.schema import Config, Endpoint
from ybs.core.errors import AuthError, ConfigError
from ybs.core.events import Event
from ybs.core.ports import Model, Request
from ybs.core.remedies import Remedy
from ybs.providers.builtin import import_built_in
from ybs.providers.catalog import (
    FREE,
    ModelFacts,
    Price,
    billions_of,
    facts_of,
    over,
    window_of,
)
from ybs.providers.facts import fitted, fitting_temperature, stated
from ybs.providers.http.client import HttpClient, Patience, checked_headers, host_of, unnamed_place
from ybs.providers.http.failures import Site
from ybs.providers.http.transport import Route
from ybs.providers.remote import RemoteModel, Retry, Terms
from ybs.providers.wire.adapter import RequestOptions, with_extra
from ybs.providers.wire.quirks import Quirks, adjust
from ybs.providers.wires import adapter_of, clean_endpoint, query_of, quirks_at


class ProviderModel(Model, Protocol):
    """A model as the registry gives it out: one with connections, to be closed at the end.

    A model without a server inherits what is said of one that is ready, has one name and keeps nothing open.
    """

    @property
    def max_tokens(self) -> int:
        """The longest answer, in tokens; the window has to have room for it beside the request."""
        ...

    async def warm_up(self) -> None:
        """Do ahead what the first request needs. Never fails."""

    async def detect_window(self) -> int:
        """Ask a local server for its window and use that. Never fails."""
        return self.window

    async def list_models(self) -> list[str]:
        """Return the names of the models that the provider offers. Raises ModelError."""
        return [self.name]

    async def aclose(self) -> None:
        """Close all connections."""


#: Makes the model of a provider that is more than an address: `make(host, config, model)`.
Maker: TypeAlias = Callable[[Host, Config, str | None], ProviderModel]


class Provider(Struct, frozen=True, kw_only=True):
    """A provider: an address and how its server speaks. A module of `ybs.providers` has one as PROVIDER.

    `quirks` hold for the provider's own address; at another address, given by the person, an unknown
    server of the same wire format is assumed (`is_moved`). `key_variables` are read in this order.
    `is_installed` says of a provider with a `make` whether the program or package behind it is there.
    `endpoint_variables` may hold another address; the first that is set counts. `locate` reads one that is not written
    as a URL. `wire_elsewhere` is what servers at other addresses are taken to speak, where that is not the same.
    """

    name: str
    wire: str
    wire_elsewhere: str = ""
    endpoint: str
    model: str = ""
    key_variables: tuple[str, ...] = ()
    endpoint_variables: tuple[str, ...] = ()
    needs_key: bool = True
    api_key: str | None = None
    headers: dict[str, str] = {}
    window: int | None = None
    quirks: Quirks = Quirks()
    start_advice: str = ""
    model_advice: str = ""
    make: Maker | None = None
    is_installed: Callable[[Host], bool] | None = None
    locate: Callable[[Mapping[str, str]], str] | None = None
    is_moved: bool = False
    #: It gets no key, see `without_keys`.
    is_keyless: bool = False
    #: The server listens here, and `endpoint` says only how it speaks.
    unix_socket: Path | None = None

    def __repr__(self) -> str:
        # The key must not reach a log by way of a representation.
        return f"Provider(name={self.name!r}, wire={self.wire!r}, endpoint={self.endpoint!r})"


def provider_names(config: Config | None = None) -> list[str]:
    """List the names of the built-in providers and of the person's own."""
    own = () if config is None else (*config.providers, *config.cli_agents)
    return list(dict.fromkeys([*BUILT_IN, *PRESETS, *own]))


def find_provider(name: str, config: Config) -> Provider:
    """Return a provider by its name: the person's own first, then built-in ones and presets, then installed ones.

    Raises ConfigError for one whose name or address cannot be read, and, with the nearest names, for an unknown one.
    """
    _check_readable(name)
    # These before `providers`, to which a trusted project may add: what it adds takes the place of nothing.
    if (agent := config.cli_agents.get(name)) is not None:
        return import_built_in("cli:provider_of")(name, agent)
    if (own := config.providers.get(name)) is not None:
        return _own_provider(name, own)
    if (place := BUILT_IN.get(name)) is not None:
        return _load(place)
    if (preset := PRESETS.get(name)) is not None:
        return _preset_provider(name, preset)
    return _installed_provider(name, config)


def create_model(
    host: Host,
    config: Config,
    *,
    provider: str | None = None,
    model: str | None = None,
    is_persons: bool = False,
) -> ProviderModel:
    """Make the model that the configuration asks for; `provider` and `model` go before it.

    `is_persons`: the person has named `model`, so that it may be the path of a file. Another one is a plain name, or refused:
    no local engine opens a file for it, and it is no part of a shell's command.

    An address alone (`llm.endpoint`) is an OpenAI-compatible server without a variable's key. The address, key and model of `llm`
    belong to the provider that is named there and are not used for another one. Raises ConfigError, and
    AuthError where a key is missing.
    """
    found = chosen_provider(host, config, provider)
    if model and not is_persons:
        _check_name(model)
    model = _named(found, config, model)
    if found.make is not None:
        return found.make(host, config, model)
    return open_model(host, found, config, model=model)


def _named(provider: Provider, config: Config, model: str | None) -> str | None:
    return model or (config.llm.model if provider.name == chosen_name(config) else None)


def model_of(provider: Provider, config: Config, model: str = "") -> str:
    """Return the model that a provider is asked for: this one, else that of `llm` where it belongs to it, else its own; empty where there is none."""
    return _named(provider, config, model) or provider.model


def _check_name(model: str) -> None:
    """Raise ConfigError for what may not name a model where it is not the person's name."""
    from ybs.trust.project_settings import MODEL_NAME, may_name_model  # most names are theirs

    if not may_name_model(model):
        raise ConfigError(
            f"{model!r} is refused: where the person does not name it, it has to be {MODEL_NAME}."
        )


def open_model(
    host: Host, provider: Provider, config: Config, *, model: str | None = None
) -> RemoteModel:
    """Make a model at a provider's address. Raises ConfigError, and AuthError where a key is missing."""
    model = model or provider.model
    if not model:
        raise ConfigError(
            f"No model is chosen for {unnamed_place(provider.name, provider.endpoint) or provider.name}.",
            remedies=(Remedy("choose_model"),),
        )
    own, adapter, agent = (
        stated(config, provider.name, model),
        adapter_of(provider.wire),
        config.agent,
    )
    facts = over(own, facts_of(model))
    endpoint = clean_endpoint(provider.endpoint, provider.wire)
    is_near = is_local(host_of(endpoint))
    window, limit = _windows(own.window or provider.window, config, facts, is_local=is_near)
    options = RequestOptions(
        model=model,
        max_tokens=config.llm.max_tokens,
        temperature=fitting_temperature(config.llm.temperature, billions_of(model), facts),
        window=window,
        keep_minutes=config.local.keep_minutes,
        effort=None if facts.thinks is False else config.llm.effort,
        quirks=fitted(provider.quirks, replace(facts, sees_images=own.sees_images), own),
    )
    price = own.price or price_at(provider, model)
    return RemoteModel(
        adapter,
        client_of(host, provider, config, model),
        options,
        Terms(
            price=price,
            max_output=facts.max_output,
            window_limit=limit,
            stated=own,
            assumes_window=facts.window is None and limit is None,
            asks=facts.window is None or (price is None and not _is_makers(provider)),
        ),
        retry=Retry(attempts=agent.retry_attempts, base_ms=agent.retry_backoff_base_ms),
    )


def chosen_name(config: Config) -> str | None:
    """Return the provider that the settings of `llm` belong to."""
    return config.llm.provider or ("openai" if config.llm.endpoint else None)


def is_named_at_address(config: Config) -> bool:
    """Return whether `llm.endpoint` was named together with its provider, whose variable's key it then gets."""
    return config.llm.provider is not None and config.llm.api_key != ADDRESS_ALONE


def with_only_key(host: Host, config: Config) -> str | None:
    """Return the one provider whose key stands in the environment; None where there are several or none."""
    found: list[str] = []
    for name in provider_names(config):
        with suppress(ConfigError):  # one that cannot be read is not chosen
            if find_variable(find_provider(name, config).key_variables, host.environ):
                found.append(name)
    return found[0] if len(found) == 1 else None


def chosen_provider(host: Host, config: Config, name: str | None = None) -> Provider:
    """Return a provider as it is used: where it is the one of `llm`, with the address and key given there.

    Raises ConfigError as `find_provider` does, where none is chosen, and where the environment names an address that
    cannot be read.
    """
    configured = chosen_name(config)
    name = name or configured
    if name == configured:
        _check_readable(config.llm.endpoint)
    if name is None:
        raise ConfigError(
            f"No provider is chosen. The providers are: {', '.join(provider_names(config))}",
            remedies=(Remedy("choose_provider"),),
        )
    found = find_provider(name, config)
    if name == configured and config.llm.endpoint:
        return _at_settings(found, config)
    if name == configured and config.llm.api_key:  # so that it goes no further than its address
        found = replace(found, api_key=config.llm.api_key)
    return _located(found, host.environ)


def key_left_behind(host: Host, config: Config) -> str:
    """Return words on a key of the settings that does not go where the environment says that the provider is; nothing where it goes.

    Raises ConfigError as `chosen_provider` does.
    """
    if not config.llm.api_key or config.llm.endpoint or chosen_name(config) is None:
        return ""
    found = chosen_provider(host, config)
    if not found.is_moved:
        return ""
    return f"it is not sent to {host_of(found.endpoint)}, where a variable says that {found.name} is; set llm.endpoint beside it"


def without_keys(provider: Provider) -> Provider:
    """Return a provider as a stranger's server is asked: with no key, header, login or query of the person's."""
    endpoint = shown_address(provider.endpoint)
    return replace(provider, endpoint=endpoint, headers={}, is_keyless=True)


def client_of(
    host: Host,
    provider: Provider,
    config: Config,
    model: str = "",
    *,
    patience: Patience | None = None,
) -> HttpClient:
    """Return an HTTP client for a provider's address. Raises ConfigError, and AuthError if a key is missing."""
    endpoint = clean_endpoint(provider.endpoint, provider.wire)
    key = _key(host, provider, endpoint)
    site = Site(
        provider=provider.name,
        endpoint=endpoint,
        host=endpoint.split("://", 1)[1].split("/", 1)[0].rpartition("@")[2],
        query=query_of(provider.endpoint),
        headers=provider.headers,
        model=model,
        key_variable=next(iter(provider.key_variables), ""),
        start_advice=provider.start_advice,
        model_advice=provider.model_advice,
        is_unnamed=bool(unnamed_place(provider.name, endpoint)),
    )
    patience = patience or Patience.of(endpoint, config.llm.timeout_seconds)
    return HttpClient(
        site,
        patience=patience,
        headers=_headers(provider, key),
        secret=key,
        route=replace(route_of(host, config), unix_socket=provider.unix_socket),
        connections=host.shared,
    )


def _headers(provider: Provider, key: str | None) -> dict[str, str]:
    """Return the headers of each call. Raises ConfigError if a header of the person's would replace the key."""
    adapter, own = adapter_of(provider.wire), checked_headers(provider.headers, provider.name)
    bare, known = adapter.headers(None), adapter.headers(key)
    of_key = {name: value for name, value in known.items() if bare.get(name) != value}
    if key and provider.quirks.key_header:
        of_key = {provider.quirks.key_header: key}
    if taken := own.keys() & of_key.keys():
        source = next(iter(provider.key_variables), "its settings")
        raise ConfigError(
            f"providers.{provider.name}.headers: {min(taken)!r} would take the place of the key ({source}).\n"
            "Take one of the two out; nothing was sent."
        )
    return bare | own | of_key


def _at_settings(provider: Provider, config: Config) -> Provider:
    """Put a provider at `llm.endpoint`, with the `llm.api_key` that was set for that."""
    llm = config.llm
    provider = _at(provider, llm.endpoint or "", is_own=provider.name in config.providers)
    if provider.is_moved and not is_named_at_address(config):
        provider = replace(provider, key_variables=())
    return replace(provider, api_key=llm.api_key) if llm.api_key else provider


def _at(provider: Provider, endpoint: str, *, is_own: bool = False) -> Provider:
    """Put a provider at an address, unless it is there already."""
    is_same = host_of(endpoint) == host_of(provider.endpoint)
    wire = provider.wire if is_same else provider.wire_elsewhere or provider.wire
    given = clean_endpoint(endpoint, wire)
    query = query_of(endpoint)
    if query:
        given = f"{given}?{query}"
    if is_same and clean_endpoint(given, wire) == clean_endpoint(provider.endpoint, wire):
        return replace(provider, endpoint=given) if query else provider
    return _moved(provider, given, is_own=is_own)


def _moved(provider: Provider, endpoint: str, *, is_own: bool) -> Provider:
    """Put a provider at another address: another server, so other quirks, and no key, header or field of the first address."""
    wire = provider.wire_elsewhere or provider.wire
    known = quirks_at(endpoint, adapter_of(wire).quirks)
    return replace(
        provider,
        endpoint=endpoint,
        wire=wire,
        quirks=replace(provider.quirks, extra_body=known.extra_body) if is_own else known,
        key_variables=() if is_own else provider.key_variables,
        needs_key=False,
        api_key=None,
        headers={},
        make=None,
        is_moved=True,
    )


def _located(provider: Provider, environ: Mapping[str, str]) -> Provider:
    """Put a provider where the environment says that its server is, as if the settings said it. Raises ConfigError."""
    if provider.locate is not None:
        endpoint = provider.locate(environ)
    else:
        endpoint = _address_in(provider.endpoint_variables, environ)
    return _at(provider, endpoint) if endpoint else provider


def _address_in(names: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the address in the first of these variables that is set; empty where none is. Raises ConfigError for what is not one."""
    variable = find_variable(names, environ)
    endpoint = environ.get(variable, "").strip()
    try:
        if endpoint:
            host_of(endpoint)
    except ConfigError as error:
        raise ConfigError(
            f"The variable {variable} is not an address. Set it like https://HOST/v1, or unset it; nothing was sent."
        ) from error
    return endpoint


def _check_readable(address: str | None) -> None:
    if complaint := complaint_of(address):
        raise ConfigError(
            f"{complaint}; nothing was sent.",
            remedies=(Remedy("do", "correct it there"), Remedy("set_endpoint")),
        )


def _preset_provider(name: str, preset: Preset) -> Provider:
    def locate(environ: Mapping[str, str]) -> str:
        variable = preset.address_variable
        if not environ.get(variable, "").strip():
            raise ConfigError(
                f"{name} answers at an address of your own, such as {preset.endpoint}.\n"
                f"Set {variable}, or llm.endpoint."
            )
        return _address_in((variable,), environ)

    return Provider(
        name=name,
        wire="openai",
        endpoint=preset.endpoint,
        key_variables=(preset.key_variable,),
        needs_key=not preset.start_advice,
        quirks=replace(Quirks(), **preset.quirks),
        start_advice=preset.start_advice,
        locate=locate if preset.address_variable else None,
    )


def _own_provider(name: str, own: Endpoint) -> Provider:
    _check_readable(own.endpoint)
    known = quirks_at(own.endpoint, adapter_of(own.wire).quirks)
    quirks = adjust(known, own.quirks, where=f"providers.{name}.quirks")
    return Provider(
        name=name,
        wire=own.wire,
        endpoint=own.endpoint,
        model=own.model or "",
        key_variables=(own.api_key_env,) if own.api_key_env else (),
        needs_key=False,
        api_key=own.api_key,
        headers=own.headers,
        window=own.window,
        quirks=replace(quirks, extra_body=with_extra(quirks.extra_body, own.extra_body)),
    )


def _installed_provider(name: str, config: Config) -> Provider:
    from ybs.config.installed import installed  # built-in ones are found by a table

    found = [each for each in installed() if (each.group, each.name) == ("ybs.providers", name)]
    if not found:
        raise ConfigError(_unknown(name, provider_names(config)))
    provider: Any = found[0].load()
    if not isinstance(provider, Provider):
        raise found[0].problem("it is not a ybs.providers.registry.Provider")
    return provider


def _unknown(name: str, names: list[str]) -> str:
    from difflib import get_close_matches  # only for the message

    near = get_close_matches(name.lower(), names, n=3, cutoff=0.65)
    guess = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"There is no provider {name!r}.{guess}\nThe providers are: {', '.join(names)}"


def _load(place: str) -> Provider:
    provider: Any = import_built_in(place)
    if not isinstance(provider, Provider):
        raise TypeError(f"{place} is not a Provider")
    return provider


def _windows(
    stated: int | None, config: Config, facts: ModelFacts, *, is_local: bool
) -> tuple[int, int | None]:
    """Return the window to use and the most that the person allows (None: no limit); `stated` is what they say that it is."""
    limit = min([n for n in (stated, config.context.max_tokens) if n is not None], default=None)
    if stated is not None:
        return limit or stated, limit
    if limit is not None and is_local:
        return min(limit, facts.window or limit), limit
    return min(window_of(facts, is_local=is_local), limit or 10**9), limit


def price_at(provider: Provider, model: str) -> Price | None:
    """Return the price: nothing on one's own machines, the maker's at its own address, else unknown."""
    price = facts_of(model).price
    if is_local(host_of(provider.endpoint)):
        # What its maker sells is not run at home: a server that has it passes the words on.
        return None if is_passed_on(model) or price else FREE
    return price if _is_makers(provider) else None


def _is_makers(provider: Provider) -> bool:
    """Return whether this is the address of a built-in provider, whose prices the catalog has."""
    if (place := BUILT_IN.get(provider.name)) is None or provider.make is not None:
        return False
    endpoints = [clean_endpoint(each.endpoint, provider.wire) for each in (provider, _load(place))]
    return endpoints[0] == endpoints[1]


def _stored(host: Host, provider: Provider, endpoint: str) -> str | None:
    """Return the key that was saved for this provider at this address; none goes out unencrypted."""
    server = host_of(endpoint)
    if endpoint.lower().startswith("http:") and not is_loopback(server):
        return None
    return stored_key(host, provider.name, place_of(endpoint))


#: The variable of Ollama's cloud.
_OLLAMA_KEY: Final = ("OLLAMA_API_KEY",)


def _key(host: Host, provider: Provider, endpoint: str) -> str | None:
    """Return the key, or None where none is needed. Raises AuthError, and ConfigError where it would leak."""
    server = host_of(endpoint)
    own, found = (provider.api_key or "").strip(), find_key(provider.key_variables, host.environ)
    if provider.is_keyless:
        return None
    if provider.key_variables == _OLLAMA_KEY and is_loopback(server):
        found = None  # it is for Ollama's cloud, and any program may have the port here
    makers = (
        None if provider.is_moved else found
    )  # at another address a key that was saved for exactly it goes first
    key = own or makers or _stored(host, provider, endpoint) or found
    variable = next(iter(provider.key_variables), "its key")
    is_clear_text = endpoint.lower().startswith("http:") and not is_loopback(server)
    if provider.is_moved and is_clear_text and found and not own:
        raise ConfigError(
            f"This would send the key in {variable} unencrypted to {server}.\nUse https, or put the key for that "
            "address into your own file (llm.api_key), or describe the server in `providers`."
        )
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise AuthError(
            f"The key for {provider.name} contains characters that a key cannot have.\nCheck whether {variable} was copied completely."
        )
    if key is None and provider.needs_key and not is_loopback(server):
        raise AuthError(
            f"{provider.name} needs a key, and none is set.",
            remedies=(Remedy("set_key", variable), Remedy("save_key"), Remedy("change_provider")),
        )
    return key


def shown_name(name: str, config: Config) -> str:
    """Return a provider's name, or the address of an OpenAI-compatible server that is not OpenAI's."""
    own = config.providers.get(name)
    is_moved = name == chosen_name(config) and config.llm.endpoint
    endpoint = config.llm.endpoint if is_moved else own.endpoint if own is not None else ""
    return (endpoint and unnamed_place(name, endpoint)) or name


def route_of(host: Host, config: Config) -> Route:
    """Return how servers elsewhere are reached, Raises ConfigError for what cannot be."""
    proxy, ca_file = config.network.proxy, config.network.ca_file
    if proxy is not None and not proxy.startswith(("http://", "https://")):
        raise ConfigError(
            "network.proxy: this is not an address. Write it like http://proxy.example:3128"
        )
    path = host.expand(ca_file, host.home) if ca_file else None
    if path is not None and not path.is_file():
        raise ConfigError(f"network.ca_file: there is no file {path}")
    return Route(proxy=proxy, ca_file=str(path) if path else None)


def runs_here(host: Host, provider: str, model: str, config: Config) -> bool:
    """Return whether a model answers on this machine; another one in the same house does not count.

    A server here that passes words on cannot be seen, but for Ollama, which names such models:
    https://docs.ollama.com/cloud. Raises ConfigError for an unknown provider or an invalid address.
    """
    return distance(host, provider, model, config) == 0


def distance(host: Host, provider: str, model: str, config: Config) -> Literal[0, 1, 2]:
    """Return how far the words go: 0 stays on this machine, 1 in a private network. An empty `model` is the one that the provider is asked for.

    Raises ConfigError as `runs_here` does.
    """
    found = chosen_provider(host, config, provider)
    server = host_of(found.endpoint)
    if is_passed_on(model_of(found, config, model)):
        return 2
    if is_loopback(server):
        return 0
    return 1 if is_local(server) else 2


class InProcessModel(ProviderModel):
    """A model that a program hands in, with what a session expects of a provider's model besides.

    The session does not close it: whoever made it does, and may hand it to several sessions.
    """

    def __init__(self, model: Model, most_tokens: int) -> None:
        self._model, self._most_tokens = model, most_tokens

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._model.name

    @property
    def window(self) -> int:
        """The model's own window, in tokens."""
        return self._model.window

    @property
    def max_tokens(self) -> int:
        """The part of the window that is kept free for an answer: `llm.max_tokens`, a quarter of the window at most."""
        return max(1, min(self._most_tokens, self.window // 4))

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Return the model's own stream."""
        return self._model.stream(request)
