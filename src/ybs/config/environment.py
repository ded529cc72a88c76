"""Settings in the environment: `YBS_LLM__MAX_TOKENS` is `llm.max_tokens`, and a few have short names.

Two underscores stand for the dot, so a key's own underscores need no guessing. Only the real environment is read,
never a file of variables.
"""

from collections.abc import Iterator, Mapping

from ybs.config.schema import Config
from ybs.config.shape import annotation_at, bare, fields_of, is_section

PREFIX = "YBS_"
PROFILE = "YBS_PROFILE"
#: Variables that are not settings.
_OTHERS = (PROFILE, "YBS_HOME", "YBS_LLAMA_THREADS", "YBS_MODEL_HUB")
_LONGEST_GUESSED = 60
SHORT_NAMES: dict[str, tuple[str, ...]] = {
    "YBS_ENDPOINT": ("llm", "endpoint"),
    "YBS_MODEL": ("llm", "model"),
    "YBS_PROVIDER": ("llm", "provider"),
}


def variables_of(environ: Mapping[str, str]) -> list[str]:
    """Return the variables that may be settings: short names first, so that full names win."""
    names = [name for name, value in environ.items() if name.startswith(PREFIX) and value]
    return sorted(names, key=lambda name: (name not in SHORT_NAMES, name))


def path_of(variable: str) -> tuple[str, ...] | None:
    """Return the way to the setting that a variable names, or None if it does not name a setting."""
    if variable in SHORT_NAMES:
        return SHORT_NAMES[variable]
    steps = variable.removeprefix(PREFIX).split("__")
    sections = {name.lower(): name for name in fields_of(Config)}
    section = sections.get(steps[0].lower())
    if len(steps) == 1 or section is None or not all(steps):
        return None
    return (section, *(step.lower() for step in steps[1:]))


def meant_by(variable: str) -> str | None:
    """Return the right spelling of a variable that has one underscore where two belong."""
    rest = variable.removeprefix(PREFIX).lower()
    return next((right for plain, right in _spellings() if plain == rest), None)


def nearest_to(variable: str) -> str:
    """Return words that name the nearest variable, or nothing; also for one that ybs knows."""
    if variable in _OTHERS:
        return ""
    from difflib import get_close_matches  # only for a mistake

    is_full = "__" in variable
    known = [right for _, right in _spellings()] if is_full else [*SHORT_NAMES, *_OTHERS]
    close = get_close_matches(
        variable.upper()[:_LONGEST_GUESSED], known, 1, 0.7 if is_full else 0.8
    )
    return f"; did you mean {close[0]}?" if close else ""


def _spellings() -> Iterator[tuple[str, str]]:
    for section, annotation in fields_of(Config).items():
        if is_section(annotation):
            for name in fields_of(bare(annotation)):
                yield f"{section}_{name}".lower(), f"{PREFIX}{section}__{name}".upper()


def is_setting(path: tuple[str, ...]) -> bool:
    """Return whether a setting stands at the end of a way (a whole section does not count)."""
    annotation = annotation_at(path)
    return annotation is not None and not is_section(annotation)
