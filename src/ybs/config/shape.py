"""Fit values into the schema one by one, so that a bad value costs nothing but itself."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from ybs.config.document import LEFT_OUT, MOST_WARNINGS, NOTHING_SENT, is_address, mark, visible
from ybs.config.schema import Config
from ybs.config.tree import KeyPath, Leaf, Tree, find, is_list, is_object
from ybs.config.variables import Unset, replace_references
from ybs.core.decoding import decodable

#: Takes a complaint about the value at a path, and returns it with its place.
Warn: TypeAlias = Callable[[KeyPath, str], str]

_MISSING: Any = object()
_IGNORED = {"$schema"}  # editors look there for the JSON Schema
_LONGEST_GUESSED = 60
_MOST_ENTRIES = 5000


@cache
def fields_of(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return a Struct's fields and their annotations."""
    return get_type_hints(struct, include_extras=True)


@cache
def bare(annotation: Any) -> Any:
    """Return an annotation without its description."""
    return bare(get_args(annotation)[0]) if hasattr(annotation, "__metadata__") else annotation


def item_of(annotation: Any) -> Any:
    """Return what a `dict[str, X]` or a `tuple[X, ...]` holds, or None for anything else."""
    kind = bare(annotation)
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    return get_args(kind)[0] if get_origin(kind) is tuple else None


def is_section(annotation: Any) -> bool:
    """Return whether an annotation is a Struct, and so has known keys."""
    kind = bare(annotation)
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def annotation_at(path: Iterable[str]) -> Any:
    """Return the annotation of the setting at the end of a way, or None if there is none."""
    kind: Any = Config
    for step in path:
        inner = bare(kind)
        if is_section(inner):
            kind = fields_of(inner).get(step)
        elif get_origin(inner) is dict and is_section(item_of(inner)):
            kind = item_of(inner)
        else:
            return None
    return kind


def split_key(key: str) -> tuple[str, ...]:
    """Return the way to a setting by its dotted key; a name within may have dots itself (`models.gpt-4.1.window`)."""
    first, *rest = key.split(".")
    ways = ((first, ".".join(rest[:end]), *rest[end:]) for end in range(1, len(rest)))
    return next((way for way in ways if annotation_at(way) is not None), (first, *rest))


class Fitting:
    """One source of values: how its texts are read, and who hears of what does not fit.

    With `is_text` numbers and truths may be written as text, as variables of the environment are.
    Without `environ`, `${NAME}` stays as it is. What does not fit is left out, but an address is marked
    where it may be given at all (`may_address`).
    """

    def __init__(
        self,
        warn: Warn,
        environ: Mapping[str, str] | None = None,
        *,
        is_text: bool = False,
        may_address: bool = True,
    ) -> None:
        self.warn, self.environ, self.is_text = warn, environ, is_text
        self.may_address = may_address
        self.guesses_left = MOST_WARNINGS

    def section(self, values: Any, struct: type[msgspec.Struct], path: KeyPath = ()) -> Any:
        """Return the values that fit a Struct's fields."""
        if not is_object(values):
            words = "must be an object, in { }"
            return self._misfit(path, words, may_address=values is not None)
        fields = fields_of(struct)
        fitting: dict[str, Any] = {}
        for name, value in values.items():
            if name in fields:
                fitted = self.value(value, fields[name], (*path, name))
                if fitted is not _MISSING:
                    fitting[name] = fitted
            elif name not in _IGNORED:
                self.guesses_left -= 1
                guess = suggest((*path, name), fields) if self.guesses_left >= 0 else ""
                self.warn((*path, name), "is not a setting" + guess)
        return fitting

    def value(self, value: Any, annotation: Any, path: KeyPath) -> Any:
        """Return the value as it fits one setting, or a mark that it does not."""
        kind = bare(annotation)
        if is_section(kind):
            return self.section(value, kind, path)
        if get_origin(kind) is dict:
            return self._map(value, item_of(kind), path)
        if get_origin(kind) is tuple and is_list(value):
            return self._list(value, item_of(kind), path)
        return self._leaf(value, annotation, path)

    def _map(self, value: Any, item: Any, path: KeyPath) -> Any:
        if not is_object(value):
            return self._misfit(path, "must be an object, in { }")
        if item is Any:
            return value
        fitted = {name: self.value(each, item, (*path, name)) for name, each in value.items()}
        return {name: each for name, each in fitted.items() if each is not _MISSING}

    def _list(self, value: list[Any], item: Any, path: KeyPath) -> Any:
        if len(value) > _MOST_ENTRIES:
            return self._misfit(path, f"has more than {_MOST_ENTRIES} entries")
        fitted = [self.value(each, item, (*path, index)) for index, each in enumerate(value)]
        kept = [(index, each) for index, each in enumerate(fitted) if each is not _MISSING]
        if is_section(item):
            return [each for index, each in kept if self._is_whole(each, item, (*path, index))]
        return [each for _, each in kept]

    def _is_whole(self, value: dict[str, Any], struct: Any, path: KeyPath) -> bool:
        missing = missing_from(value, struct)
        if missing:
            self.warn(path, f"ignored, because it has no `{missing[0]}`")
        return not missing

    def _leaf(self, value: Any, annotation: Any, path: KeyPath) -> Any:
        may_be_text = self.is_text
        if isinstance(value, str):
            try:
                text = value if self.environ is None else replace_references(value, self.environ)
            except Unset as unset:
                return self._misfit(path, f"the variable {unset} is not set")
            may_be_text = may_be_text or text != value
            value = text
        try:
            return _convert(value, annotation, may_be_text=may_be_text)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
            return self._misfit(path, _say(error, annotation))

    def _misfit(self, path: KeyPath, words: str, *, may_address: bool = True) -> Any:
        is_one, has_one = is_address(path), is_address((*path, "endpoint"))
        if not (is_one or has_one) or not (may_address and self.may_address):
            self.warn(path, words + LEFT_OUT)
            return _MISSING
        marked = mark(self.warn(path, words + NOTHING_SENT))
        return marked if is_one else {"endpoint": marked}


def fits(value: Any) -> bool:
    """Return whether `Fitting.value` returned a value and not the mark of a misfit."""
    return value is not _MISSING


def current_of(tree: Tree, path: tuple[str, ...]) -> Any:
    """Return the value that a setting has in a tree, or its default."""
    leaf: Any = find(tree, path)
    return leaf.value if isinstance(leaf, Leaf) else _default_of(path)


def _default_of(path: tuple[str, ...]) -> Any:
    found: Any = Config()
    for step in path:
        found = getattr(found, step, None)
    # A built-in tool that no file mentions is as its own defaults say.
    return True if path[:2] == ("tools", "builtin") and path[3:] == ("enabled",) else found


def missing_from(value: Mapping[str, Any], struct: type[msgspec.Struct]) -> list[str]:
    """Return the names of required fields that a value lacks."""
    required = [f.name for f in msgspec.structs.fields(struct) if f.required]
    return [name for name in required if name not in value]


def _convert(value: Any, annotation: Any, *, may_be_text: bool) -> Any:
    if may_be_text and isinstance(value, str):
        value = _read_text(value, annotation)
    converted = msgspec.convert(value, decodable(annotation))
    for text in _texts(converted):
        if b"\0" in text.encode():  # half a surrogate pair, from an odd variable, fails here
            raise ValueError("must not hold a NUL character")
    # Plain data: the whole is converted once more when all layers are merged.
    return list(value) if isinstance(converted, tuple) else converted


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    return (each for each in value if isinstance(each, str)) if isinstance(value, tuple) else ()  # pyright: ignore[reportUnknownVariableType] - of any texts


def _read_text(text: str, annotation: Any) -> Any:
    """Read a text as JSON where the setting itself is not text."""
    kinds = {bare(kind) for kind in get_args(bare(annotation))} or {bare(annotation)}
    if str in kinds and get_origin(bare(annotation)) is not tuple:
        return text
    if get_origin(bare(annotation)) is Literal:
        return text
    words = {"1": True, "true": True, "on": True, "yes": True}
    words |= {"0": False, "false": False, "off": False, "no": False}
    if bool in kinds and text.lower() in words:
        return words[text.lower()]
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text  # what it should have been is said where it does not fit


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def _say(error: Exception, annotation: Any) -> str:
    """Put a decoder's complaint in plain words, without the value (it might be a secret)."""
    kind = bare(annotation)
    kinds = [each for each in (kind, *get_args(kind)) if get_origin(each) is Literal]
    if kinds:
        choices = "must be one of " + ", ".join(str(choice) for choice in get_args(kinds[0]))
        has_number = any(bare(each) is int for each in get_args(kind))
        return choices + (", or a whole number in its bounds" if has_number else "")
    said = str(error).split(" - at ")[0]
    if not said.startswith("Expected"):
        return said if type(error) is ValueError else "cannot be read"
    words = re.sub(r"`([a-z |]+)`", lambda found: _name_kinds(found[1]), said)
    words = re.sub(r" matching regex .*", " on one line", words)
    wanted, _, got = words.removeprefix("Expected ").partition(", got ")
    return f"must be {wanted}" + (f", not {got}" if got else "")


def _name_kinds(kinds: str) -> str:
    return " or ".join(_KINDS.get(kind, kind) for kind in kinds.split(" | "))


@cache
def all_names() -> tuple[str, ...]:
    """Return every setting's dotted name; `*` stands for a name of the user's choice."""
    return tuple(_names(Config, ""))


def _names(struct: type[msgspec.Struct], before: str) -> Iterable[str]:
    for name, annotation in fields_of(struct).items():
        if is_section(annotation):
            yield from _names(bare(annotation), f"{before}{name}.")
            continue
        yield before + name
        if get_origin(bare(annotation)) is dict and is_section(item_of(annotation)):
            yield from _names(item_of(annotation), f"{before}{name}.*.")


def suggest(path: KeyPath, siblings: Collection[str] = ()) -> str:
    """Return words that name the nearest known setting, or nothing."""
    from difflib import get_close_matches  # slow to import, and needed only for a mistake

    *before, last = (str(step) for step in path)
    if len(last) > _LONGEST_GUESSED:
        return ""
    elsewhere = [name for name in all_names() if name.rpartition(".")[2] == last]
    if elsewhere:
        return f"; did you mean {elsewhere[0]}?"
    section = annotation_at(before) if not siblings else None
    siblings = fields_of(bare(section)) if is_section(section) else siblings
    plain = {name.lower().replace("_", ""): name for name in siblings}
    guess = last.lower().replace("_", "").replace("-", "")
    near = get_close_matches(guess, plain, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {visible('.'.join([*before, plain[near[0]]]))}?"
    near = get_close_matches(last, all_names(), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
