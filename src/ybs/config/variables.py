"""`${NAME}` in a text: replaced by the variable of that name, `${NAME:-words}` by the words where there is none. `$${NAME}` stands for itself."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ybs.config.tree import is_list, is_object
from ybs.core.lazy import lazy

_REFERENCE = lazy(r"\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Unset(LookupError):
    """A text names a variable that is not set."""


def has_reference(text: str) -> bool:
    """Return whether a text names a variable."""
    return "${" in text and any(not found[1] for found in _REFERENCE().finditer(text))


def names_in(text: str) -> list[str]:
    """Return the names of the variables that a text names."""
    return [found[2] for found in _REFERENCE().finditer(text) if not found[1]]


def variables_in(value: Any) -> list[str]:
    """Return, each once, the names of the variables that any text of JSON data names: keys count, and depth does not matter."""
    if isinstance(value, str):
        return list(dict.fromkeys(names_in(value)))
    parts: list[Any] = value if is_list(value) else []
    parts = [*value, *value.values()] if is_object(value) else parts
    return list(dict.fromkeys(name for each in parts for name in variables_in(each)))


def replace_references(text: str, environ: Mapping[str, str]) -> str:
    """Put the variables' values in place of their names; they are not looked through again.

    Raises Unset, with the name.
    """
    if "${" not in text:
        return text

    def value_of(reference: re.Match[str]) -> str:
        is_literal, name, otherwise = reference.groups()
        if is_literal:
            return reference.group()[1:]
        if name in environ:
            return environ[name]
        if otherwise is None:
            raise Unset(name)
        return str(otherwise)

    return _REFERENCE().sub(value_of, text)


def project_variables(folder: Path) -> dict[str, str]:
    """Return the variables that say where the project is."""
    return {"CLAUDE_PROJECT_DIR": str(folder), "YBS_PROJECT_DIR": str(folder)}
