"""Load the settings: defaults, files, profile, environment, options, each laid over the one before."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from ybs.config import paths
from ybs.config.document import (
    LEFT_OUT,
    NOTHING_SENT,
    SettingsDocument,
    Unusable,
    dotted,
    open_document,
    place_of,
    profile_in,
    read,
    visible,
)
from ybs.config.host import Host, asked_for, own_folder
from ybs.config.paths import PROJECT_FILE
from ybs.config.provider_change import (
    keys_left_behind,
    mark_alone,
    together,
    without_strangers,
)
from ybs.config.review import PluginFolder, Review
from ybs.config.schema import Config, planned_in
from ybs.config.sections import CliAgent, Endpoint
from ybs.config.shape import (
    Fitting,
    annotation_at,
    bare,
    current_of,
    fields_of,
    fits,
    is_section,
    missing_from,
    split_key,
    suggest,
)
from ybs.config.tree import (
    DEFAULT,
    Layer,
    Leaf,
    Tree,
    ValueOrigin,
    find,
    flatten,
    is_object,
    label,
    leaves_of,
    merge,
    put,
    values_of,
)
from ybs.core.decoding import decodable
from ybs.core.errors import ConfigError

_NO_KEY_HERE = (
    "a key is read from the provider's own variable or from your files only; this one is ignored"
)
_NOTHING: Mapping[str, Any] = {}
BLOCKED_PATHS: Final = ("safety", "sandbox_blocked_paths")


class ProjectFiles(Protocol):
    """The layer of a project's own files; how much of it holds is a question of trust, and not of this package."""

    @property
    def warnings(self) -> Sequence[str]:
        """What the person should know of these files."""
        ...

    @property
    def united(self) -> Mapping[tuple[str, ...], Leaf]:
        """Lists to unite with those of every other layer."""
        ...

    @property
    def review(self) -> Review | None:
        """What the files want, and whether they may; None where they want nothing."""
        ...

    def lay_over(self, user: Tree) -> Tree:
        """Return the person's settings with the project's over them."""
        ...

    def bind_keys(self, tree: Tree, own: Sequence[Tree]) -> list[str]:
        """Take the keys that the person's `own` files and all settings name away from what the project names; return warnings."""
        ...


#: Reads a project's files, given the path of its settings, their text where there is one, and the host.
ReadProject: TypeAlias = Callable[[Path, str | None, Host], ProjectFiles]


class Loaded(Struct, frozen=True, kw_only=True):
    """The settings of a host, where each came from, and what was wrong on the way.

    `origins` has an entry for every key of `flatten(config)`.
    """

    host: Host
    config: Config
    origins: dict[str, ValueOrigin]
    warnings: tuple[str, ...] = ()
    #: The name of the profile in use; empty for none.
    profile: str = ""
    #: What the project wants and whether it is trusted; None where it wants nothing.
    review: Review | None = None
    #: The project was trusted for this run alone, whatever it wants.
    trusts_project: bool = False
    #: The plugins in force.
    plugins: tuple[PluginFolder, ...] = ()
    #: What the project alone adds to `safety.sandbox_blocked_paths`.
    blocked_by_project: tuple[str, ...] = ()

    def is_projects(self, key: str) -> bool:
        """Return whether a project's file gives this setting."""
        return self.origins.get(key, DEFAULT).layer == "project"


def load(
    host: Host,
    *,
    folder: Path,
    overrides: Mapping[str, Any] = _NOTHING,
    config_file: Path | None = None,
    profile: str | None = None,
    read_project: ReadProject | None = None,
) -> Loaded:
    """Load the settings of a host for a project's folder.

    `overrides` holds options by dotted key; None means that the option was not given. Without `read_project` the
    project's own files say nothing (`ybs.trust` has the function that reads them).
    Raises ConfigError for what was asked for by name and cannot be had: `config_file`, a profile, an option.
    Everything else that is wrong becomes a warning, and an address that cannot be read is kept, marked (see
    `unusable`), so that no model can be made from it.
    """
    loading = _Loading(host, read_project)
    loading.add_files(folder, config_file)
    loading.add_profile(profile)
    loading.add_environment()
    loading.add_options(overrides)
    return loading.finish()


class _Loading:
    """The layers that were read so far, as one tree."""

    def __init__(self, host: Host, read_project: ReadProject | None) -> None:
        self.host, self.environ, self.read_project = host, host.environ, read_project
        self.tree: Tree = {}
        self.is_together = True  # the provider and its address, see `provider_change`
        self.warnings: list[str] = []
        self.own_documents: list[SettingsDocument] = []
        self.project: ProjectFiles | None = None
        self.profile = ""

    def add_files(self, folder: Path, config_file: Path | None) -> None:
        """Add the files, the weakest first."""
        home_file = self.host.home_config_file
        self._add_own("system", self._open(paths.SYSTEM_FILE))
        self._add_own("user", self._open(self.host.user_config_file))
        self._add_own("home", self._open(home_file))
        project_file = folder.absolute() / paths.PROJECT_FILE
        if not paths.is_same(project_file, home_file):
            self._add_project(project_file)
        known = [document.source for document in self.own_documents]
        self.warnings += unread(project_file.parent, home_file.parent, known)
        if config_file is not None:
            self._add_own("file", _open_asked_for(config_file))
        if self.environ.get("YBS_HOME") and own_folder(self.environ) is None:
            self.warnings.append("YBS_HOME: must be an absolute path; it is ignored")

    def _open(self, path: Path) -> SettingsDocument | None:
        try:
            return open_document(path, "own")
        except Unusable as error:
            self.warnings.append(f"{place_of(path, error)}: IGNORED as a whole, because it {error}")
            return None

    def _add_own(self, layer: Layer, document: SettingsDocument | None) -> None:
        if document is None:
            return
        self.own_documents.append(document)
        values = Fitting(document.warn, self.environ).section(document.tree, Config)
        self._lay(label(values, ValueOrigin(layer, document.source)))
        self.warnings += document.all_warnings()

    def _add_project(self, file: Path) -> None:
        text = self._text_of(file)
        is_there = text is not None or any(
            os.path.lexists(file.parent / name) for name in paths.PROJECT_SIGNS
        )
        if self.read_project is None or not is_there:
            return
        self.project = self.read_project(file, text, self.host)
        self.tree = self.project.lay_over(self.tree)
        self.warnings += self.project.warnings

    def _text_of(self, file: Path) -> str | None:
        try:
            return read(file, "project")
        except Unusable as error:
            self.warnings.append(f"{place_of(file, error)}: IGNORED as a whole, because it {error}")
            return None

    def _lay(self, over: Tree) -> None:
        under, warnings = without_strangers(self.tree, over)
        self.tree = merge(under, over)
        self.is_together = together(self.is_together, over)
        self.warnings += warnings

    def add_profile(self, asked_for: str | None) -> None:
        """Add the chosen profile, as the user's own files describe it."""
        name = asked_for or self.environ.get(PROFILE) or None
        if name is None:
            return
        self.profile = name
        known = set[str]()
        for document in self.own_documents:
            profiles = document.tree.get("profiles")
            if is_object(profiles):
                known.update(profiles)
                if name in profiles:
                    self._add_from_profile(document, name)
        if name not in known:
            there = ", ".join(sorted(known)[:10]) or "none"
            words = f"profile {visible(name, 60)!r}: there is no such profile in your files (only: {visible(there)})"
            raise ConfigError("\n".join([words, *self.warnings]))

    def _add_from_profile(self, document: SettingsDocument, name: str) -> None:
        view = profile_in(document, name)
        values = Fitting(view.warn, self.environ).section(view.tree, Config)
        self._lay(label(values, ValueOrigin("profile", f"{document.source}: profiles.{name}")))
        self.warnings += view.all_warnings()

    def add_environment(self) -> None:
        """Add the variables that name a setting."""
        layer: Tree = {}
        for variable in variables_of(self.environ):
            path = path_of(variable)
            if path is not None:
                origin = ValueOrigin("environment", variable)
                _add_text(layer, path, self.environ[variable], origin, self._warn, name=variable)
            elif right := meant_by(variable):
                self.warnings.append(f"{variable}: is not read; use {right}")
            elif "__" in variable or nearest_to(variable):
                self.warnings.append(f"{variable}: is not a setting{nearest_to(variable)}")
        self._lay(layer)

    def _warn(self, warning: str) -> None:
        self.warnings.append(warning)

    def add_options(self, overrides: Mapping[str, Any]) -> None:
        """Add the options. Raises ConfigError for one that does not fit."""
        layer: Tree = {}
        for key, value in overrides.items():
            if value is not None:
                origin = ValueOrigin("option", "option")
                _add_text(layer, split_key(key), value, origin, _refuse, name=key)
        self._lay(layer)

    def finish(self) -> Loaded:
        """Check what only the whole can show, and build the settings."""
        review, blocked = None, list[str]()
        if self.project is not None:
            for path, leaf in self.project.united.items():
                added = self._unite(path, leaf)
                blocked += added if path == BLOCKED_PATHS else ()
            own = [document.tree for document in self.own_documents]
            self.warnings += self.project.bind_keys(self.tree, own)
            review = self.project.review
        if not self.is_together:
            mark_alone(self.tree)
        self._drop_unfinished("providers", Endpoint)
        self._drop_unfinished("cli_agents", CliAgent)
        config = msgspec.convert(values_of(self.tree), decodable(Config))
        known = {".".join(path): leaf.origin for path, leaf in leaves_of(self.tree)}
        origins = {key: known.get(key, DEFAULT) for key in flatten(config)}
        if words := keys_left_behind(config):
            self.warnings.append(f"{visible(origins['llm.endpoint'].source)}: {words}")
        if planned := planned_in(config):
            self.warnings.append(
                f"{', '.join(planned)}: without effect, because this version does not have these features yet"
            )
        return Loaded(
            host=self.host,
            config=config,
            origins=origins,
            warnings=tuple(self.warnings),
            profile=self.profile,
            review=review,
            blocked_by_project=tuple(blocked),
        )

    def _unite(self, path: tuple[str, ...], leaf: Leaf) -> list[str]:
        """Add to a list, and return what is new in it."""
        current = list(current_of(self.tree, path))
        added = [each for each in leaf.value if each not in current]
        if added:
            put(self.tree, path, Leaf(list(dict.fromkeys(current + added)), leaf.origin))
        return added

    def _drop_unfinished(self, section: str, kind: type[Endpoint | CliAgent]) -> None:
        """Leave out, with a warning, the providers of a section that lack what they cannot do without."""
        providers: Tree = self.tree.get(section, {})
        filled = {
            name: {k: v for k, v in each.items() if not _is_empty(v)}
            for name, each in providers.items()
        }
        lacks = {name: missing_from(each, kind) for name, each in filled.items()}
        for name, missing in [(name, missing) for name, missing in lacks.items() if missing]:
            sources = {leaf.origin.source for _, leaf in leaves_of(providers.pop(name))}
            path = (section, name)
            files = [each for each in self.own_documents if find(each.tree, path) is not None]
            where = ", ".join([each.place(path) for each in files] or sorted(sources))
            self.warnings.append(
                f"{where}: {dotted(path)}: ignored, because it has no `{missing[0]}`"
            )


def _is_empty(value: Any) -> bool:
    return isinstance(value, Leaf) and value.value == []


def _add_text(
    layer: Tree,
    path: tuple[str, ...],
    value: Any,
    origin: ValueOrigin,
    tell: Callable[[str], None],
    *,
    name: str,
) -> None:
    """Put a value that may be written as text into a layer; `name` stands before a complaint about it."""

    def warn(_: object, words: str) -> str:
        warning = f"{visible(name)}: {words}"
        tell(warning)
        return warning

    if not is_setting(path):
        warn(path, "is not a setting" + suggest(path))
    elif path[-1] == "api_key":
        warn(path, _NO_KEY_HERE)
    else:
        fitted = Fitting(warn, is_text=True).value(value, annotation_at(path), path)
        if fits(fitted):
            put(layer, path, label(fitted, origin) if is_object(fitted) else Leaf(fitted, origin))


def _refuse(warning: str) -> None:
    raise ConfigError(warning.removesuffix(LEFT_OUT).removesuffix(NOTHING_SENT))


def _open_asked_for(path: Path) -> SettingsDocument:
    try:
        document = open_document(path, "own")
    except Unusable as error:
        raise ConfigError(
            f"{place_of(path, error)}: the requested configuration file {error}"
        ) from error
    asked_for.add(os.path.realpath(path))
    if document is None:
        raise ConfigError(f"{visible(str(path))}: the requested configuration file does not exist")
    return document


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


_IN_PROJECT = (
    *(f".ybs/{name}" for name in ("config.json", "settings.json", "config.toml", "config.yaml")),
    "ybs.json",
    ".ybs.toml",
    ".ybs.yaml",
)
_AT_HOME = (
    *(f".ybs/{name}" for name in ("config.json", "settings.json", "config.toml", "config.yaml")),
    *(f".config/ybs/{name}" for name in ("settings.json", "config.toml", "config.yaml")),
    ".ybs.toml",
    ".ybs.yaml",
)


def unread(project: Path, home: Path, known: Collection[str] = ()) -> list[str]:
    """Return a warning for settings that somebody wrote where nobody reads them: one for the project, one for the home.

    `known` are the files that were read: YBS_HOME may name any folder.
    """
    warnings: list[str] = []
    if project != home and (name := _first(project, _IN_PROJECT, known)):
        warnings.append(
            f"{name} is not read: the settings of a project are in {PROJECT_FILE}, as JSON."
        )
    if name := _first(home, _AT_HOME, known):
        warnings.append(
            f"~/{name} is not read: your own settings are in ~/.config/ybs/config.json, as JSON."
        )
    return warnings


def _first(folder: Path, names: tuple[str, ...], known: Collection[str]) -> str:
    there = (name for name in names if (folder / name).is_file())
    return next((name for name in there if str(folder / name) not in known), "")
