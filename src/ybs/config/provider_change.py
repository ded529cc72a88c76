"""Drop inherited values when a layer names another provider or address: a key never goes where it was not meant for.

That holds for the key in a provider's variable too: the address of a layer that names no provider beside it is marked (`ADDRESS_ALONE`).
"""

from typing import Any

from ybs.config.document import complaint_of, dotted, visible
from ybs.config.schema import Config, Endpoint
from ybs.config.tree import Leaf, Tree, find, is_object, leaves_of

#: They belong to the provider that they were set for.
_OF_THE_PROVIDER = ("endpoint", "model", "api_key")
#: They belong to the address that they were set for.
_OF_THE_ADDRESS = ("api_key", "api_key_env", "headers", "extra_body")
#: Stands for `llm.api_key` where `llm.endpoint` was named without a provider: no variable's key goes there.
ADDRESS_ALONE = ""
_NO_FILES = ("environment", "option")


def without_strangers(under: Tree, over: Tree) -> tuple[Tree, list[str]]:
    """Return the weaker layers without what belongs to another provider or address, and warnings."""
    kept = dict(under)
    warnings: list[str] = []
    if is_object(llm := under.get("llm")):
        kept["llm"], warnings = _llm_without_strangers(llm, over)
    if is_object(providers := under.get("providers")):
        kept["providers"] = dict(providers)
        for name, own in providers.items():
            path = ("providers", name)
            if is_object(own) and _is_changed("endpoint", own, find(over, path)):
                kept["providers"][name], more = _without_keys(path, own, over, _moved(path))
                warnings += more
    return kept, warnings


def _llm_without_strangers(llm: Tree, over: Tree) -> tuple[Tree, list[str]]:
    path, now = ("llm",), find(over, ("llm",))
    if _is_changed("provider", llm, now):
        return {name: leaf for name, leaf in llm.items() if name not in _OF_THE_PROVIDER}, []
    if _is_changed("endpoint", llm, now):
        return _without_keys(path, llm, over, _moved(path))
    named = find(over, ("llm", "provider"))
    is_for_nobody = _value("provider", llm) is None and _value("endpoint", llm) is None
    if is_for_nobody and isinstance(named, Leaf) and named.origin.layer in _NO_FILES:
        words = "the file does not say for which provider; set llm.provider in it"
        return _without_keys(path, llm, over, words)
    return llm, []


def _without_keys(
    path: tuple[str, ...], settings: Tree, over: Tree, why: str
) -> tuple[Tree, list[str]]:
    """Take keys, headers and fields of bodies out; warn of those that the stronger layer does not set itself."""
    warnings: list[str] = []
    for name in _OF_THE_ADDRESS:
        here = (*path, name)
        taken = leaves_of({name: settings[name]} if name in settings else {})
        sources = [leaf.origin.source for _, leaf in taken if leaf.value]
        if sources and find(over, here) is None:
            warnings.append(f"{visible(sources[0])}: {dotted(here)}: ignored, because {why}")
    kept = {name: value for name, value in settings.items() if name not in _OF_THE_ADDRESS}
    return kept, warnings


def _moved(path: tuple[str, ...]) -> str:
    return f"{dotted((*path, 'endpoint'))} has changed; set both in the same file"


def together(before: bool, over: Tree) -> bool:
    """Return whether address and provider are named together, once a layer is laid over others, of which `before` says it."""
    named = find(over, ("llm",))
    return isinstance(find(named, ("provider",)), Leaf) if _value("endpoint", named) else before


def mark_alone(tree: Tree) -> None:
    """Mark an address that was named without a provider, unless a key of its own was named with it."""
    llm: Tree = tree.get("llm", {})
    if _value("endpoint", llm) and not _value("api_key", llm):
        llm["api_key"] = Leaf(ADDRESS_ALONE, llm["endpoint"].origin)


def _value(name: str, settings: Any) -> object:
    leaf = find(settings, (name,))
    return leaf.value if isinstance(leaf, Leaf) else None


def _is_changed(name: str, before: Tree, now: Any) -> bool:
    """Return whether a layer gives another value; a first provider does not count as another one."""
    leaf, value = find(now, (name,)), _value(name, before)
    if not isinstance(leaf, Leaf) or leaf.value == value:
        return False
    return value is not None or name == "endpoint"


def keeps_from(own: Endpoint, address: str) -> bool:
    """Return whether an entry of `providers` holds a key, headers or fields of bodies, and this is not its address."""
    has_some = own.api_key or own.api_key_env or own.headers or own.extra_body
    return bool(has_some) and own.endpoint.rstrip("/") != address.rstrip("/")


def keys_left_behind(config: Config) -> str | None:
    """Return words on a provider whose key, headers and fields of bodies stay at its own address, for `llm.endpoint` is another."""
    address, name = config.llm.endpoint, config.llm.provider
    own = config.providers.get(name) if name else None
    if name is None or own is None or address is None or complaint_of(address):
        return None
    if not keeps_from(own, address):
        return None
    where = dotted(("providers", name))
    return f"{where}: its key, headers and extra_body are not sent to llm.endpoint, because that is another address"
