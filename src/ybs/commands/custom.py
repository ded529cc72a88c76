"""Commands of the person's own: Markdown files whose text is sent to the model, with the arguments filled in.

The form is that of other agents: front matter with `description` and `argument-hint`, then words with `$ARGUMENTS`, `$1` to `$9`, `@files`, and
commands as !`git diff`, which run first, judged as the model's calls are.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from ybs.commands.command import Owner, Run, SlashCommand
from ybs.commands.mcp import prompts_of
from ybs.commands.skills import forked, skill_commands
from ybs.config.document import Unusable, open_own
from ybs.config.front_matter import (
    Fork,
    Value,
    fork_of,
    text_of,
    without_effect,
)
from ybs.config.host import Host
from ybs.config.layers import Loaded
from ybs.config.paths import PERSONS_COMMANDS
from ybs.config.review import PluginFolder
from ybs.config.template import (
    Argument,
    TemplateArguments,
    TemplateCommand,
    TemplatePart,
    arguments_in,
    parse,
    parts_of,
)
from ybs.core.cutting import shortened
from ybs.core.errors import Refused
from ybs.core.events import Noticed
from ybs.core.lazy import lazy
from ybs.core.messages import ToolCall, UserMessage
from ybs.session.injection import injection
from ybs.session.mentions import Mention, NamedInWords, mentions_in
from ybs.session.reply import CommandPrompt, NotAllowed, Reply
from ybs.session.session import Session

#: Of the project, once it is trusted; then the person's own, which come first where both have one name.
PROJECT_FOLDERS: Final = (".ybs/commands", ".claude/commands")
_SUFFIX = ".md"
_MOST_BYTES = 200_000
_MOST_FILES = 300
#: What begins with `mcp__` is a prompt of a server, also of one that has not started yet.
_NAME = re.compile(r"(?!mcp__)[a-z0-9][a-z0-9_-]{0,63}")
_MOST_SUMMARY = 100
#: Stands for the place of an argument while mentions are looked for; no file has it.
_PLACE = lazy("\0(\\d+)\0")
_ids = count(1)


class _Template(Struct, frozen=True, kw_only=True):
    """A command as its file says it. `place` is the file, as it is shown. `is_own`: the person wrote it."""

    name: str
    place: str
    summary: str
    arguments: str
    text: str
    plugin: PluginFolder | None = None
    is_own: bool = False
    fork: Fork | None = None
    #: Fields of its front matter that ybs does not go by.
    idle: tuple[str, ...] = ()

    @property
    def command(self) -> SlashCommand:
        """The command; a plugin's has a second name, `plugin:command`."""
        full = (f"{self.plugin.name}:{self.name}",) if self.plugin else ()
        return SlashCommand(
            names=(self.name, *full),
            arguments=self.arguments,
            summary=self.summary,
            run=_sending(self),
            waits=True,
            owner=Owner.PERSON if self.is_own else Owner.PLUGIN if self.plugin else Owner.PROJECT,
        )


def templates(
    loaded: Loaded, folder: Path, tell: Callable[[str], None] = lambda _: None
) -> Iterator[_Template]:
    """Yield the commands of the person's folders, then those of a trusted project, then those of plugins.

    `tell` gets a sentence for each that is left out because its file is not the person's alone.
    """
    review = loaded.review
    yield from _of_person(loaded.host, tell)
    for name in PROJECT_FOLDERS:
        for path in review.paths(name) if review is not None else ():
            if path.endswith(_SUFFIX) and review is not None:
                place = str(folder / path)
                yield from _template(Path(path).stem, place, review.data(path) or b"")
    for plugin in loaded.plugins:
        yield from _of_plugin(plugin)


def _of_person(host: Host, tell: Callable[[str], None]) -> Iterator[_Template]:
    for own in host.persons(PERSONS_COMMANDS):
        for file in sorted(own.rglob(f"*{_SUFFIX}"))[:_MOST_FILES]:
            try:
                with open_own(file) as opened:
                    data = opened.read(_MOST_BYTES + 1)
            except Unusable as error:
                tell(f"The command in {host.short(str(file))} is left out: it {error}.")
                continue
            except OSError:
                continue
            if len(data) <= _MOST_BYTES:
                yield from _template(file.stem, str(file), data, is_own=True)


def _of_plugin(plugin: PluginFolder) -> Iterator[_Template]:
    """Yield the commands of a plugin, which have its name as well."""
    for path in plugin.commands:
        try:
            data = (plugin.folder / path).read_bytes()
        except OSError:
            continue
        for found in _template(Path(path).stem, str(plugin.folder / path), data):
            yield replace(found, plugin=plugin)


_found: "WeakKeyDictionary[Session, list[SlashCommand]]" = WeakKeyDictionary()


def custom_of(session: Session, taken: Collection[str]) -> Mapping[str, SlashCommand]:
    """Return the commands of a session by name: the person's, then those of a trusted project, then those of plugins.

    Of each, files come before skills, and these before prompts of MCP servers. What is called like one that is `taken`, or like an
    earlier one, is left out. The files are read once.
    """
    if session not in _found:
        tell = session.environment.tell_left_out
        files = [each.command for each in templates(session.loaded, session.folder, tell)]
        skills = (replace(e, summary=_shortened(e.summary)) for e in skill_commands(session))
        _found[session] = [*files, *skills]
    made = dict[str, SlashCommand]()
    for command in sorted((*_found[session], *prompts_of(session)), key=lambda each: each.owner):
        names = tuple(name for name in command.names if name not in taken and name not in made)
        made.update(dict.fromkeys(names, replace(command, names=names)))
    return made


def each_once(commands: Mapping[str, SlashCommand]) -> list[SlashCommand]:
    """Return the commands of a mapping by their names; one that has several stands there once."""
    return [command for name, command in commands.items() if command.names[0] == name]


def forget_custom(session: Session) -> None:
    """Read the files again when a command is next looked for."""
    _found.pop(session, None)


def _sending(template: _Template) -> Run:
    async def run(session: Session, argument: str) -> Reply:
        folder = template.plugin.folder if template.plugin is not None else None
        if folder is not None:  # its commands run its own programs
            session.environment.open_skill(folder)
        pieces = parse(template.text)
        arguments = TemplateArguments(pieces, argument, str(folder or ""))
        filling = Filling(pieces, arguments, is_own=template.is_own)
        if template.fork is None:
            return Reply(prompt=CommandPrompt(filling.words, partial(_composed, session, filling)))
        line = f"/{template.name} {argument}".strip()
        make = partial(_handed_over, session, filling, line, template.fork)
        return Reply(prompt=CommandPrompt(line, make))

    return run


class Filling:
    """A template with its arguments. They are put into its pieces, and nothing is looked for in what came of that."""

    def __init__(
        self, pieces: tuple[TemplatePart, ...], arguments: TemplateArguments, *, is_own: bool
    ) -> None:
        self.pieces, self._arguments, self.is_own = pieces, arguments, is_own
        places = any(each.source != "${CLAUDE_PLUGIN_ROOT}" for each in arguments_in(pieces))
        #: What stands behind the words, as they name no place for it.
        self.rest = f"\n\n{arguments.given}" if arguments.given and not places else ""

    @property
    def words(self) -> str:
        """The words, with commands as the template has them."""
        return "".join(map(self.text, self.pieces)) + self.rest

    def text(self, piece: TemplatePart) -> str:
        """Return what stands for a piece before commands were run."""
        match piece:
            case Argument():
                return self._arguments.value(piece) or ""
            case TemplateCommand():
                return f"!`{piece.source}`"
            case _:
                return piece

    def line(self, command: TemplateCommand) -> str:
        """Return a command with its arguments, each of them one word. Raises Refused."""
        from ybs.commands.filling import Value, filled  # few templates run anything

        value = self._arguments.value
        parts = (
            each if isinstance(each, str) else Value(value(each), missing=each.source)
            for each in command.parts
        )
        return filled(tuple(parts))

    def named(self) -> NamedInWords:
        """Return the files that the template names. Outside of the folders of tools only the person's own words name any."""
        places = [each for each in self.pieces if isinstance(each, Argument)]
        numbers = iter(range(len(places)))
        marked = "".join(
            each
            if isinstance(each, str)
            else f"\0{next(numbers)}\0"
            if isinstance(each, Argument)
            else " "
            for each in self.pieces
        )

        def value(found: "re.Match[str]") -> str:
            return self.text(places[int(found[1])]).removeprefix("@")

        mentions = list[Mention]()
        for readings in mentions_in(marked):
            is_open = self.is_own and not _PLACE().search(readings[0].path)
            meant = (replace(each, path=_PLACE().sub(value, each.path)) for each in readings)
            if meant := tuple(each for each in meant if each.path):
                mentions.append(Mention(meant, is_confined=not is_open))
        return NamedInWords(tuple(mentions))


async def _composed(session: Session, filling: Filling) -> UserMessage:
    """Make the message: with what the commands printed, and the files that the template names."""
    parts = [
        await _output(session, filling, each)
        if isinstance(each, TemplateCommand)
        else filling.text(each)
        for each in filling.pieces
    ]
    message = UserMessage.of("".join(parts) + filling.rest)
    return await session.parts.composer.compose_naming(message, filling.named())


async def _handed_over(session: Session, filling: Filling, line: str, fork: Fork) -> UserMessage:
    """Have a sub-agent do what the template says: the conversation has the line, and what came of it."""
    from ybs.tools.builtin.delegate import task_of  # few ask for it

    message = await _composed(session, filling)
    return forked(session, line, task_of(message.words, fork, is_own=filling.is_own))


async def _output(session: Session, filling: Filling, command: TemplateCommand) -> str:
    """Return what a command printed, or why it was not run. Where nobody is there to be asked, nothing is sent without it: NotAllowed."""
    from ybs.security.policy.confirm import is_attended

    try:
        return await _run(session, filling.line(command))
    except Refused as error:
        shown = f"The command `{command.source}` of the template was not run. {error}"
        if not is_attended(session.confirm):
            raise NotAllowed(shown, remedies=error.remedies) from error
        session.emit(Noticed(level="warning", text=shown, remedies=error.remedies))
        return injection(command.source, str(error), has_run=False)


async def _run(session: Session, line: str) -> str:
    """Run a command as a call of the model is run: hooks, policy and person are asked, secrets are masked, and undo takes it back. Raises Refused."""
    arguments = Raw(json.encode({"command": line}))
    call = ToolCall(id=f"template_{next(_ids)}", name="run_shell", arguments=arguments)
    toolbox = session.environment.secrets.guarded(session.agent.toolbox)
    result = await toolbox.run(call, session.emit)
    if result.is_refused:
        raise Refused(result.output, remedies=result.remedies)
    return injection(line, result.output)


def _template(stem: str, place: str, data: bytes, *, is_own: bool = False) -> Iterator[_Template]:
    name = stem.lower().replace(" ", "-")
    said, body = parts_of(data)
    if not _NAME.fullmatch(name) or not (said or body):
        return
    first = next((line.strip("# ") for line in body.splitlines() if line.strip("# ")), "")
    takes = "[ARGUMENTS]"
    yield _Template(
        name=name,
        place=place,
        summary=_shortened(text_of(said, "description") or first),
        arguments=_shortened(_hint(said) or takes),
        text=body,
        is_own=is_own,
        fork=fork_of(said),
        idle=tuple(without_effect(said)),
    )


def _hint(said: Mapping[str, Value]) -> str:
    """Return what is said of the arguments: `[file]` is a list for YAML, and a hint for people."""
    hint = said.get("argument-hint", "")
    return hint if isinstance(hint, str) else f"[{', '.join(hint)}]"


def _shortened(text: str) -> str:
    return shortened(" ".join(text.split()), _MOST_SUMMARY)
