"""What a layer takes back when it names another provider or address: a key never goes where it was not meant for."""

from ybs.config.document import visible
from ybs.config.tree import Leaf, Tree, find, is_object

#: They belong to the provider that they were set for.
_OF_THE_PROVIDER = ("endpoint", "model", "api_key")


def without_strangers(under: Tree, over: Tree) -> tuple[Tree, list[str]]:
    """Return the weaker layers without what belongs to another provider or address, and warnings."""
    llm = under.get("llm")
    if not is_object(llm):
        return under, []
    if _is_changed("provider", llm, over):
        kept = {name: leaf for name, leaf in llm.items() if name not in _OF_THE_PROVIDER}
        return {**under, "llm": kept}, []
    key = llm.get("api_key")
    is_meant_for_one = _value("provider", llm) or _value("endpoint", llm)
    if key is None or not is_meant_for_one or not _is_changed("endpoint", llm, over):
        return under, []
    kept = {name: leaf for name, leaf in llm.items() if name != "api_key"}
    where = visible(key.origin.source)
    warning = (
        f"{where}: llm.api_key: left out, for llm.endpoint is another one now; set both together"
    )
    return {**under, "llm": kept}, [warning] if key.value and not find(
        over, ("llm", "api_key")
    ) else []


def _value(name: str, llm: Tree) -> object:
    leaf = llm.get(name)
    return leaf.value if isinstance(leaf, Leaf) else None


def _is_changed(name: str, llm: Tree, over: Tree) -> bool:
    """Tell whether a layer gives another value; a first provider is no other provider."""
    leaf = find(over, ("llm", name))
    before = _value(name, llm)
    if not isinstance(leaf, Leaf) or leaf.value == before:
        return False
    return before is not None or name == "endpoint"
