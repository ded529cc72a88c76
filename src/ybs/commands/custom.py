"""Commands of the person's own: Markdown files whose text is sent to the model, with the arguments filled in.

The form is that of other agents: front matter with `description` and `argument-hint`, then words with `$ARGUMENTS`, `$1` to `$9`, `@files`, and
commands as !`git diff`, which run in the sandbox first.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct, structs

from ybs.commands.command import Run, SlashCommand
from ybs.commands.skills import forked, skill_commands
from ybs.config.front_matter import (
    BadFrontMatter,
    Fork,
    Value,
    fields,
    fork_of,
    split,
    text_of,
    without_effect,
)
from ybs.config.layers import Loaded
from ybs.config.plugin import PluginFolder
from ybs.session.reply import Reply
from ybs.session.session import Session

#: Of the project, once it is trusted; then the person's own, which come first where both have one name.
PROJECT_FOLDERS: Final = (".ybs/commands", ".claude/commands")
_SUFFIX = ".md"
_MOST_BYTES = 200_000
_MOST_FILES = 300
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ARGUMENT = re.compile(r"\$(ARGUMENTS|[1-9])(?!\w)")
_COMMAND = re.compile(r"!`([^`\n]+)`")
_MOST_SUMMARY = 100


class Template(Struct, frozen=True, kw_only=True):
    """A command as its file says it. `place` is the file, as it is shown."""

    name: str
    place: str
    summary: str
    arguments: str
    text: str
    plugin: PluginFolder | None = None
    fork: Fork | None = None
    #: Fields of its front matter that ybs does not go by.
    idle: tuple[str, ...] = ()

    def names(self, taken: Collection[str]) -> tuple[str, ...]:
        """Return its names without those that are taken; a plugin's has a second one, `plugin:command`."""
        full = (f"{self.plugin.name}:{self.name}",) if self.plugin else ()
        return tuple(each for each in (self.name, *full) if each not in taken)

    def filled(self, given: str) -> str:
        """Return the words with the arguments in their places, or behind them where the words name no place."""
        words = given.split()

        def value(found: re.Match[str]) -> str:
            place = found[1]
            if place == "ARGUMENTS":
                return given
            return words[int(place) - 1] if int(place) <= len(words) else ""

        if given and not _ARGUMENT.search(self.text):
            return f"{self.text}\n\n{given}"
        return _ARGUMENT.sub(value, self.text)


def templates(loaded: Loaded, folder: Path) -> Iterator[Template]:
    """Yield the commands of the person's folders, then those of a trusted project, then those of plugins."""
    host, review = loaded.host, loaded.review
    for own in (host.config_folder / "commands", host.home / ".claude/commands"):
        for file in sorted(own.rglob(f"*{_SUFFIX}"))[:_MOST_FILES]:
            try:
                data = file.read_bytes() if file.stat().st_size <= _MOST_BYTES else b""
            except OSError:
                continue
            yield from _template(file.stem, str(file), data)
    for name in PROJECT_FOLDERS:
        for path in review.paths(name) if review is not None else ():
            if path.endswith(_SUFFIX) and review is not None:
                place = str(folder / path)
                yield from _template(Path(path).stem, place, review.data(path) or b"")
    for plugin in loaded.plugins:
        yield from _of_plugin(plugin)


def _of_plugin(plugin: PluginFolder) -> Iterator[Template]:
    """Yield the commands of a plugin, which have its name as well."""
    for path in plugin.commands:
        try:
            data = (plugin.folder / path).read_bytes()
        except OSError:
            continue
        for found in _template(Path(path).stem, str(plugin.folder / path), data):
            text = found.text.replace("${CLAUDE_PLUGIN_ROOT}", str(plugin.folder))
            yield structs.replace(found, text=text, plugin=plugin)


_found: "WeakKeyDictionary[Session, dict[str, SlashCommand]]" = WeakKeyDictionary()


def custom_of(session: Session, taken: Collection[str]) -> Mapping[str, SlashCommand]:
    """Return the commands of a session by name; their files are read once.

    What is called like one that is `taken`, or like an earlier one, is left out.
    """
    if session not in _found:
        made = _found[session] = {}
        for template in templates(session.loaded, session.folder):
            names = template.names({*taken, *made})
            command = SlashCommand(
                names=names,
                arguments=template.arguments,
                summary=template.summary,
                run=_sending(template),
                waits=True,
            )
            made.update(dict.fromkeys(names, command))
        for skill in skill_commands(session):
            names = tuple(name for name in skill.names if name not in {*taken, *made})
            command = structs.replace(skill, names=names, summary=_shortened(skill.summary))
            made.update(dict.fromkeys(names, command))
    return _found[session]


def each_once(commands: Mapping[str, SlashCommand]) -> list[SlashCommand]:
    """Return the commands of a mapping by their names; one that has several stands there once."""
    return [command for name, command in commands.items() if command.names[0] == name]


def forget_custom(session: Session) -> None:
    """Read the files again when a command is next looked for."""
    _found.pop(session, None)


def _sending(template: Template) -> Run:
    async def run(session: Session, argument: str) -> Reply:
        if template.plugin is not None:  # its commands run its own programs
            session.environment.open_skill(template.plugin.folder)
        text = await _with_outputs(session, template.filled(argument))
        message = await session.composer.compose(text)
        if template.fork is not None:
            line = f"/{template.name} {argument}".strip()
            message = forked(session, line, message.words, template.fork)
        return Reply(shared=message)

    return run


async def _with_outputs(session: Session, text: str) -> str:
    """Run the commands that stand in the words, in the sandbox, and put what they print in their places."""
    if not _COMMAND.search(text):
        return text
    from ybs.session.shell import TypedCommands

    runner = TypedCommands(session.environment, session.recorder, session.emit)
    pieces, at = list[str](), 0
    for found in _COMMAND.finditer(text):
        message = await runner.injected(found[1])
        pieces += [text[at : found.start()], message.words]
        at = found.end()
    return "".join([*pieces, text[at:]])


def _template(stem: str, place: str, data: bytes) -> Iterator[Template]:
    name = stem.lower().replace(" ", "-")
    text = data.decode(errors="replace")
    if not _NAME.fullmatch(name) or not text.strip():
        return
    said, body = _parts(text)
    first = next((line.strip("# ") for line in body.splitlines() if line.strip("# ")), "")
    takes = "[ARGUMENTS]"
    yield Template(
        name=name,
        place=place,
        summary=_shortened(text_of(said, "description") or first),
        arguments=_shortened(_hint(said) or takes),
        text=body,
        fork=fork_of(said),
        idle=tuple(without_effect(said)),
    )


def _parts(text: str) -> tuple[dict[str, Value], str]:
    """Return the front matter and the words below it; what cannot be read as front matter is part of the words."""
    try:
        head, body = split(text)
        return fields(head), body.strip()
    except BadFrontMatter:
        return {}, text.strip()


def _hint(said: Mapping[str, Value]) -> str:
    """Return what is said of the arguments: `[file]` is a list for YAML, and a hint for people."""
    hint = said.get("argument-hint", "")
    return hint if isinstance(hint, str) else f"[{', '.join(hint)}]"


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_SUMMARY else text[: _MOST_SUMMARY - 1] + "…"
