"""One skill: what its SKILL.md says of it, and what a model reads of it."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ybs.config.document import Unusable, open_own
from ybs.config.front_matter import (
    BadFrontMatter,
    Fork,
    fields,
    fork_of,
    is_yes,
    split,
    text_of,
    without_effect,
)
from ybs.config.review import PluginFolder, Review
from ybs.core.cutting import whole_words
from ybs.core.errors import ToolError
from ybs.core.lazy import lazy
from ybs.security.unicode import printable

FILE = "SKILL.md"
#: A longer SKILL.md is not a text that a model could read.
MOST_BYTES = 1_000_000
#: The front matter has to end within so many bytes; the rest is read when the skill is used.
HEAD_BYTES = 32_000
LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1_024
_MOST_FILES = 40
_DEEPEST = 3
_ROOM = 300  # characters for the note that it goes on
_ARGUMENT = lazy(r"\$(?:ARGUMENTS(?:\[(\d{1,2})\])?|(\d))(?!\w)")
_COMMAND = lazy(r"!`[^`\n]+`")


class BadSkill(Exception):
    """A skill that cannot be used; the text says why."""


class _NotOwn(BadSkill):
    """Its file is not the person's alone."""


class Skill(Struct, frozen=True, kw_only=True):
    """A skill as its front matter describes it.

    `place` is its folder as the person knows it. `data` is the file's content where it was trusted as that; else it is read when it is needed.
    `is_offered`: the model may use it by itself; `is_command`: the person may, by a command of its name, for which `hint` names the arguments.
    `plugin` is the folder of the plugin that it is a part of. `fork`: a sub-agent is to do what it says. `remarks` say what does not fit
    the format and does no harm, and what of it has no effect.
    """

    name: str
    description: str
    folder: Path
    place: str
    data: bytes | None = None
    is_offered: bool = True
    is_command: bool = True
    plugin: Path | None = None
    hint: str = ""
    fork: Fork | None = None
    allowed_tools: tuple[str, ...] = ()
    compatibility: str = ""
    license: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def opened(self) -> Path:
        """The folder that tools may read once it is used."""
        return self.plugin or self.folder

    @property
    def in_project(self) -> bool:
        """Whether it belongs to the project, whose files tools may read anyway."""
        return self.data is not None

    @property
    def is_own(self) -> bool:
        """Whether it is the person's own."""
        return not self.in_project and self.plugin is None

    def body(self) -> tuple[str, int]:
        """Return the words below the front matter, and the number of their first line. Raises ToolError."""
        try:
            data = self.data if self.data is not None else read(self.folder, MOST_BYTES)
            head, text = split(data.decode(errors="replace"))
        except (OSError, BadSkill, BadFrontMatter) as error:
            raise ToolError(f"The skill {self.name} cannot be read: {error}") from error
        words = text.strip()
        return words, head.count("\n") + 3 + text.partition(words[:1] or "\n")[0].count("\n")

    def instructions(self, given: str = "", *, most_chars: int) -> str:
        """Return the message with the skill: its text, the place of its files, and the words that were `given` with it.

        It has about `most_chars` at most; the rest is left in the file, which is named. Raises ToolError.
        """
        text, line = self.body()
        text = text.replace("${CLAUDE_SKILL_DIR}", str(self.folder))
        if self.plugin is not None:
            text = text.replace("${CLAUDE_PLUGIN_ROOT}", str(self.plugin))
        text, given = self._filled(text, given)
        note = f"[The skill {self.name} is in {self.folder}.{self._files(most_chars // 3)}]"
        text = self._cut(text, max(most_chars - len(note) - _ROOM, _ROOM), line)
        return f"{text}\n\n{note}\n\n{given}".rstrip()

    def _filled(self, text: str, given: str) -> tuple[str, str]:
        """Return the text with the words in their places, and the words where it has none. `$0` is one only where it says that it takes any."""
        has_places = "$ARGUMENTS" in text
        words = given.split()

        def value(found: "re.Match[str]") -> str:
            number = found[1] or found[2]
            if number is None:
                return given
            return words[int(number)] if int(number) < len(words) else ""

        if has_places or (self.hint and _ARGUMENT().search(text)):
            return _ARGUMENT().sub(value, text), ""
        return text, given

    def _cut(self, text: str, most_chars: int, line: int) -> str:
        if len(text) <= most_chars:
            return text
        text = text[:most_chars].rpartition("\n")[0] or whole_words(text, most_chars)
        line += text.count("\n") + 1
        return f"{text}\n[it goes on: read {self.folder / FILE} with read_file from line {line}]"

    def _files(self, most_chars: int) -> str:
        names = files_of(self.folder)
        shown = ", ".join(names[:_MOST_FILES])
        if len(shown) > most_chars or len(names) > _MOST_FILES:
            shown = shown[:most_chars].rpartition(", ")[0] + ", …"
        return f" Its files, read or run by their whole path: {shown}" if names else ""


def described(data: bytes, folder: Path, place: str, *, is_trusted_text: bool = False) -> Skill:
    """Return the skill whose SKILL.md begins with `data`. Raises BadSkill."""
    try:
        head, body = split(data.decode(errors="replace"))
        said = fields(head)
    except BadFrontMatter as error:
        raise BadSkill(f"{FILE} {error}") from error
    name = _line(text_of(said, "name"))
    description = _line(f"{text_of(said, 'description')} {text_of(said, 'when_to_use')}")
    if not description:
        raise BadSkill(f"{FILE} has no description, from which a model knows when to use it")
    remarks: list[str] = []
    if name != folder.name:
        remarks.append(f"its name {name!r} is not that of its folder")
    if not is_name(name):
        remarks.append("a name has lower-case letters, digits and single hyphens, 64 at most")
        name = folder.name
        if not is_name(name):
            raise BadSkill(f"neither its name nor its folder's is one: {remarks[-1]}")
    if len(description) > LONGEST_DESCRIPTION:
        remarks.append(f"its description is longer than {LONGEST_DESCRIPTION} characters")
    idle = without_effect(said) + ["!`commands`"] * bool(_COMMAND().search(body))
    if idle:
        remarks.append(f"without effect in ybs: {', '.join(idle)}")
    tools = said.get("allowed-tools", "")
    return Skill(
        name=name,
        description=description[:LONGEST_DESCRIPTION],
        folder=folder,
        place=place,
        data=data if is_trusted_text else None,
        is_offered=not is_yes(said, "disable-model-invocation"),
        is_command="user-invocable" not in said or is_yes(said, "user-invocable"),
        hint=_line(text_of(said, "argument-hint")),
        fork=fork_of(said),
        allowed_tools=tuple(tools if isinstance(tools, list) else tools.replace(",", " ").split()),
        compatibility=_line(text_of(said, "compatibility")),
        license=_line(text_of(said, "license")),
        remarks=tuple(remarks),
    )


def read(folder: Path, most_bytes: int) -> bytes:
    """Return the beginning of a folder's SKILL.md. Raises BadSkill, and OSError where there is none."""
    file = folder / FILE
    if file.is_symlink() and not file.resolve().is_relative_to(folder.resolve()):
        raise BadSkill(f"{FILE} is a link that leads out of the skill's folder")
    try:
        with open_own(file) as opened:
            if os.fstat(opened.fileno()).st_size > MOST_BYTES:
                raise BadSkill(f"{FILE} is larger than {MOST_BYTES // 1_000_000} MB")
            return opened.read(most_bytes)
    except Unusable as error:
        raise _NotOwn(f"{FILE} {error}") from error


def files_of(folder: Path) -> list[str]:
    """Return the names of a skill's other files, at most one more than are shown; links are not followed."""
    names: list[str] = []
    for path, folders, files in os.walk(folder):
        here = Path(path).relative_to(folder)
        is_deep = len(here.parts) >= _DEEPEST
        folders[:] = [] if is_deep else sorted(each for each in folders if _is_shown(each))
        shown = (str(here / each) for each in sorted(files) if _is_shown(each))
        names += [printable(each) for each in shown if each != FILE]
        if len(names) > _MOST_FILES:
            break
    return names[: _MOST_FILES + 1]


def _is_shown(name: str) -> bool:
    return not name.startswith((".", "__pycache__"))


def is_name(name: str) -> bool:
    """Return whether it can be the name of a skill."""
    is_plain = name.isascii() and name == name.lower() and len(name) <= LONGEST_NAME
    return is_plain and all(part.isalnum() for part in name.split("-"))


def _line(text: str) -> str:
    """Return a text of the front matter as one printable line."""
    return " ".join(printable(text).split())


MOST_SKILLS = 500  # of a folder


class UnusableFolder(Struct, frozen=True):
    """A folder that cannot be used as a skill, and why; of one whose file is not the person's alone they are told (`is_told`)."""

    place: str
    why: str
    is_told: bool = False


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
                unusable.append(UnusableFolder(place, str(error), isinstance(error, _NotOwn)))
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
