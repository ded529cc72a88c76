"""Completion in the page: commands and their arguments behind `/`, files of the session's folders behind `@`."""

from collections.abc import Iterator, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from ybs.commands.registry import command_at, commands_of
from ybs.frontends.terminal.prompt.file_index import FileIndex
from ybs.frontends.web.drawing import Record
from ybs.security.paths.names import shown_name
from ybs.security.unicode import printable
from ybs.session.mentions import mention_of, open_mention
from ybs.session.session import Session
from ybs.tools.workspace import Workspace

MOST_ITEMS: Final = 12
#: How long the first look at the disk is waited for.
_FIRST_SECONDS: Final = 0.4


class Completions:
    """Offers what fits; keeps an index of the files of each session that was asked about."""

    def __init__(self) -> None:
        self._indexes: WeakKeyDictionary[Workspace, FileIndex] = WeakKeyDictionary()

    async def of(self, session: Session, text: str) -> Sequence[Record]:
        """Return what may take the place of the last `cut` characters of a text."""
        if text.startswith("/") and "\n" not in text:
            return list(_commands(session, text))[:MOST_ITEMS]
        found = open_mention(text.rpartition("\n")[2])
        if found is None:
            return []
        query, length = found
        workspace = session.environment.workspace
        if workspace not in self._indexes:
            self._indexes[workspace] = FileIndex(workspace.roots, workspace.reads.recent)
        index = self._indexes[workspace]
        index.refresh()
        if not index.find("", 1):
            await index.settle(_FIRST_SECONDS)
        return [_file(path, length) for path in index.find(query, MOST_ITEMS)]


def _file(path: str, length: int) -> Record:
    mention = mention_of(shown_name(path))
    is_folder = path.endswith("/")
    text = mention.removesuffix('"') if is_folder else f"{mention} "
    return {"text": text, "cut": length, "label": printable(shown_name(path)), "detail": ""}


def _commands(session: Session, text: str) -> Iterator[Record]:
    name, space, argument = text[1:].partition(" ")
    if not space:
        typed = name.lower()
        fitting = [each for each in commands_of(session) if any(typed in n for n in each.names)]
        for command in sorted(fitting, key=lambda each: _rank(each.names, typed)):
            shown = f"/{command.names[0]}"
            label = f"{shown} {command.arguments}".rstrip()
            end = " " if command.arguments else ""
            yield {"text": shown + end, "cut": len(text), "label": label, "detail": command.summary}
        return
    command = command_at(f"/{name}", session)
    for choice in command.choices(session) if command and command.choices else ():
        if argument.lower() in choice.lower() and choice != argument:
            yield {"text": choice, "cut": len(argument), "label": printable(choice), "detail": ""}


def _rank(names: Sequence[str], typed: str) -> int:
    return 0 if typed in names else 1 if names[0].startswith(typed) else 2
