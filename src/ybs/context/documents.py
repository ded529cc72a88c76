"""Context documents: what the person and the project have written down for the model.

In the order in which the model reads them; where two say different things, the later one counts. The tokens are for
all files of one kind together.

    document          tokens  places, in order                       what it is for
    AGENT.md           1,000  ~/.config/ybs, .ybs                    the soul: character and principles
    IDENTITY.md          500  ~/.config/ybs                          what the model has noted about itself
    HUMAN.md             500  ~/.config/ybs                          who the person is
    FOCUS.md             300  ~/.config/ybs, .ybs                    what the work is about now (/focus)
    preferences.json     300  ~/.config/ybs, .ybs                    the person's likes, as names and values
    CODE.md            2,000  the repository's top down to here      how the code is laid out
    AGENTS.md          4,000  ~/.config/ybs, then the same folders   rules for agents; CLAUDE.md where a folder has none

`~/.config/ybs` stands for the person's configuration folder, `.ybs` for the one in the project's folder. The top is the
nearest folder upwards with `.git`, or the folder below it that git ignores: what lies in there is not the repository's work. A project cannot say who the person is or what the model thinks of itself, so IDENTITY.md
and HUMAN.md are read from the person's folder alone. All of it is data: it gives no permission.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from ybs.config.host import Host
from ybs.context import document_text as texts
from ybs.context.document_places import (
    DOCUMENTS,
    Beginning,
    DocumentKind,
    folders_of,
    read_in_project,
    read_own,
    top_of,
)
from ybs.context.document_text import without_hidden_characters
from ybs.context.prompt import Section
from ybs.core.decoding import decodable
from ybs.core.errors import ConfigError
from ybs.security.paths.second_names import identity

_LEAST_TOKENS = 60  # a budget never shrinks below this


class _Found(Struct, frozen=True, kw_only=True):
    """A document that was read: its file, how the person writes its path, and what it says."""

    name: str
    source: str
    text: str
    beginning: Beginning
    can_be_read: bool

    @property
    def tokens(self) -> int:
        """How many it needs, with a note where more is in the file."""
        needed = texts.tokens_of(self.text)
        return needed if self.beginning.is_whole else needed + texts.NOTE_TOKENS + 1


class _Reader:
    """Reads each file once, whatever its names."""

    def __init__(
        self, host: Host, folder: Path, top: Path | None, tell: Callable[[str], None]
    ) -> None:
        with suppress(OSError):  # a link that turned into a folder between two looks
            folder = folder.resolve()
        self._host, self._folder, self._tell = host, folder, tell
        self._top = top or top_of(self._folder)
        self._folders = folders_of(self._folder, self._top)
        self._seen: set[tuple[int, int]] = set()

    def find(self, document: DocumentKind) -> Iterator[_Found]:
        """Yield the documents of a kind, the nearest last."""
        if document.is_own and (found := self._own_one(document.name)):
            yield found
        folders = self._folders if document.within == "folders" else ()
        if document.within == ".ybs":
            folders = (self._folder / ".ybs",)
        for folder in folders:
            for name in filter(None, (document.name, document.instead)):
                found = self._project_one(folder / name)
                if found is not None:
                    yield found
                    break

    def _own_one(self, name: str) -> _Found | None:
        path = self._host.config_folder / name
        match read_own(path):
            case Beginning() as beginning:
                return self._found(self._host.short(str(path)), name, beginning, can_be_read=False)
            case str(problem):
                self._tell(f"{self._host.short(str(path))} was not read: {problem}.")
            case None:
                pass
        return None

    def _project_one(self, path: Path) -> _Found | None:
        beginning = read_in_project(path, self._top)
        if beginning is None and not (path.is_symlink() or any(identity(str(path)))):
            return None
        is_here = path.is_relative_to(self._folder)
        up = len(self._folder.parts) - len(path.parent.parts)
        source = str(path.relative_to(self._folder)) if is_here else "../" * up + path.name
        if beginning is None:
            why = "it is a link that leads out of the project, or to something other than a Markdown file, or a hard link"
            self._tell(f"{source} was not read: {why}.")
            return None
        return self._found(source, path.name, beginning, can_be_read=is_here)

    def _found(
        self, source: str, name: str, beginning: Beginning, *, can_be_read: bool
    ) -> _Found | None:
        if beginning.identity in self._seen:
            return None
        text = self._said(source, beginning) if name.endswith(".json") else _written(beginning)
        text = texts.framed(texts.tidied(text))
        if not text.strip():
            if beginning.data and not texts.decoded(beginning.data):
                self._tell(f"{source} is not used: it is not a text file.")
            return None
        self._seen.add(beginning.identity)
        return _Found(
            name=name, source=source, text=text, beginning=beginning, can_be_read=can_be_read
        )

    def _said(self, source: str, beginning: Beginning) -> str:

        try:
            return preferences_in(texts.decoded(beginning.data), is_whole=beginning.is_whole)
        except _Unfit as error:
            self._tell(f"{source} is not used: {error}.")
            return ""


def _written(beginning: Beginning) -> str:
    return texts.without_comments(texts.without_hidden_characters(texts.decoded(beginning.data)))


def read_documents(
    host: Host,
    folder: Path,
    *,
    top: Path | None = None,
    share: float = 1.0,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Section]:
    """Return a section for each document that says something; it never raises.

    Those of the person lie in the host's configuration folder. `top` is the folder at which the project begins, the repository's own top where it is not
    given; `share` shrinks all budgets alike. `tell` gets what the person should know once: a file
    that others can write, or preferences that are not JSON.
    """
    reader = _Reader(host, folder, top, tell)
    sections: list[Section] = []
    for document in DOCUMENTS:
        found = list(reader.find(document))
        budget = max(int(document.tokens * share), _LEAST_TOKENS)
        sizes = [each.tokens for each in found]
        parts = texts.fair_parts(sizes, budget)
        sections += [
            _section(each, part, keeps_end=document.keeps_end)
            for each, part in zip(found, parts, strict=True)
        ]
    return sections


def _section(found: _Found, tokens: int, *, keeps_end: bool) -> Section:
    text, size = found.text, found.beginning.size
    is_whole = found.beginning.is_whole
    is_cut = found.tokens > tokens or not is_whole
    if is_cut:
        text, left = texts.cut_to(text, tokens, keeps_end=keeps_end)
        more = "1 line" if left == 1 else f"{left:,} lines"
        what = (
            f"{more} of {found.source}" if is_whole else f"most of {found.source} ({size:,} bytes)"
        )
        where = " above" if keeps_end else ""
        how = "; read_file shows it" if found.can_be_read else ""
        text = f"{text}\n[left out{where}: {what}{how}]".lstrip("\n")
    return Section(name=found.name, text=text, source=found.source, is_cut=is_cut)


_Plain: TypeAlias = str | int | float | bool | None


class _Unfit(ConfigError):
    """The file holds no preferences; the text says why."""


def preferences_in(text: str, *, is_whole: bool) -> str:
    """Return a line `name: value` for each preference. Raises Unfit."""
    if not text.strip():
        return ""
    if not is_whole:
        raise _Unfit("it is too large")
    try:
        values = msgspec.json.decode(text, type=decodable(dict[str, _Plain | list[_Plain]]))
    except msgspec.ValidationError as error:
        raise _Unfit(
            "it must be a JSON object of texts, numbers, true, false and lists of them"
        ) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise _Unfit(f"it is not valid JSON ({error})") from error
    return without_hidden_characters(
        "\n".join(f"{_line(name)}: {_shown(value)}" for name, value in values.items())
    )


def _shown(value: _Plain | list[_Plain]) -> str:
    if isinstance(value, str):
        return _line(value)
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return msgspec.json.encode(value).decode()


def _line(text: str) -> str:
    return " ".join(text.split())
