"""Find skills in the person's own folders and, once the project is trusted, in those of the project."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ybs.config.review import PluginFolder, Review
from ybs.security.unicode import printable
from ybs.tools.skills.skill import FILE, HEAD_BYTES, MOST_BYTES, BadSkill, Skill, described, read

MOST_SKILLS = 500  # of a folder


class UnusableFolder(Struct, frozen=True):
    """A folder that cannot be used as a skill, and why."""

    place: str
    why: str


class Skills(Struct, frozen=True):
    """What was found: the skills by name, and what cannot be used."""

    by_name: dict[str, Skill]
    unusable: Sequence[UnusableFolder]

    @property
    def usable(self) -> list[Skill]:
        """Those that the person may use by a command of their name."""
        return [skill for skill in self.by_name.values() if skill.is_command]

    def find(self, name: str) -> Skill | None:
        """Return the skill of this name; one of a plugin has its name without the plugin's as well, where no other skill has it."""
        return named(self.by_name.values(), name)

    @property
    def offered(self) -> list[Skill]:
        """Those that a model may use by itself."""
        return [skill for skill in self.by_name.values() if skill.is_offered]


def named(skills: Iterable[Skill], name: str) -> Skill | None:
    """Return the skill of this name, or the first one of a plugin that is called so without the plugin's name."""
    wanted = name.strip().lower().replace("_", "-")
    skills = list(skills)
    exact = (each for each in skills if each.name.replace("_", "-") == wanted)
    return next(exact, None) or next(
        (each for each in skills if each.name.endswith(f":{wanted}")), None
    )


class Folder(Struct, frozen=True):
    """A folder of skills, and how the person knows it. `is_projects`: it belongs to the project; `plugin`: to that plugin."""

    path: Path
    shown: str
    is_projects: bool = False
    plugin: PluginFolder | None = None


def find_skills(
    folders: Sequence[Folder],
    review: Review | None,
    *,
    only: Sequence[str] = (),
    may_open: Callable[[Path], bool] = lambda _: True,
) -> Skills:
    """Look through the folders in their order; of two skills with one name the first one is used. Those of plugins are called `PLUGIN:NAME`.

    `only` names the skills to use, where not all are meant. `may_open` says whether tools may read a folder that a link leads to.
    """
    by_name: dict[str, Skill] = {}
    unusable: list[UnusableFolder] = []
    seen = set[Path]()
    for folder in folders:
        for path, real in _folders_in(folder.path):
            place = f"{folder.shown}/{printable(path.name)}"
            if real in seen:  # often a link of one agent's folder into another one's
                continue
            seen.add(real)
            try:
                if folder.is_projects:
                    skill = _of_project(path, place, review)
                else:
                    skill = _of_plugin(_own(path, real, place, may_open), folder.plugin)
            except BadSkill as error:
                unusable.append(UnusableFolder(place, str(error)))
                continue
            first = by_name.setdefault(skill.name, skill)
            if first is not skill:
                unusable.append(
                    UnusableFolder(place, f"{first.place} has the same name, and is used")
                )
    if only:
        by_name = {
            name: skill
            for name, skill in by_name.items()
            if name in only or name.rpartition(":")[2] in only
        }
    return Skills(by_name, unusable)


def _folders_in(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the folders that hold a SKILL.md, by name, and where they really are."""
    try:
        real = folder.resolve()
        with os.scandir(folder) as entries:
            found = sorted((each for each in entries if each.name[0] != "."), key=_name_of)
    except OSError:
        return
    for each in found[:MOST_SKILLS]:
        if os.path.lexists(f"{each.path}/{FILE}"):
            path = folder / each.name
            yield path, path.resolve() if each.is_symlink() else real / each.name


def _name_of(entry: "os.DirEntry[str]") -> str:
    return entry.name


def _own(path: Path, real: Path, place: str, may_open: Callable[[Path], bool]) -> Skill:
    is_elsewhere = path.is_symlink() and real.parent != path.parent.resolve()
    if is_elsewhere and not may_open(real):
        raise BadSkill(f"it is a link to {printable(str(real))}, which tools may not read")
    try:
        data = read(real, HEAD_BYTES)
    except OSError as error:
        raise BadSkill(f"{FILE} cannot be read: {error.strerror or error}") from error
    return msgspec.structs.replace(described(data, path, place), folder=real)


def _of_plugin(skill: Skill, plugin: PluginFolder | None) -> Skill:
    if plugin is None:
        return skill
    name = f"{plugin.name}:{skill.name}"
    return msgspec.structs.replace(skill, name=name, plugin=plugin.folder)


def _of_project(path: Path, place: str, review: Review | None) -> Skill:
    if review is None or not review.is_trusted:
        raise BadSkill("this project is not trusted")
    data = review.data(str(path.relative_to(review.folder) / FILE))
    if data is None:
        size = f"is larger than {MOST_BYTES // 1_000_000} MB"
        raise BadSkill(f"{FILE} is a link, {size} or came later than the trust in this project")
    return described(data, path, place, is_trusted_text=True)
