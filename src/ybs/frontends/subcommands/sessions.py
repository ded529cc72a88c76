"""`ybs sessions`: list, show, export, search and delete saved sessions."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw
from msgspec.structs import replace

from ybs.commands.figures import age
from ybs.core.errors import YbsError
from ybs.core.events import Compacted, Rewound
from ybs.core.wording import plural
from ybs.frontends.headless.output import (
    agrees,
    one_line,
    tell,
    warn,
    write,
    write_json,
    write_table,
)
from ybs.frontends.layout import clipped, in_columns
from ybs.frontends.serve.place import ServerPlace
from ybs.frontends.tty import columns
from ybs.security.gate import put_json, put_utf8
from ybs.security.unicode import printable
from ybs.session.settings import load_settings
from ybs.transcripts.store import PREFIX, SessionStore

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.security.firewall.masking import Firewall
    from ybs.security.paths.roots import Roots
    from ybs.session.options import Options
    from ybs.transcripts.reading import Saved, Transcript

#: Columns of a title.
_TITLE: Final = 48
#: Columns of the narrowest terminal, and of the shortest title that stands beside a count of messages.
_NARROWEST: Final = 40
_SHORT_TITLE: Final = 8
#: A confirmation was needed and not given.
_REFUSED: Final = 5
_NO_TERMINAL: Final = (
    "this needs a confirmation, and there is no terminal to ask on; --yes deletes without asking"
)


def sessions(arguments: "Namespace", options: "Options") -> int:
    """Do what the arguments ask for and return the exit code. Raises YbsError."""
    try:
        return _ACTIONS[arguments.action](Sessions(options), arguments)
    except OSError as error:
        if error.filename is None:  # it is about what is printed
            raise
        raise YbsError(f"{error.filename} cannot be used: {error.strerror}") from error


class Sessions:
    """The saved sessions, numbered from here: those of this folder first, the newest first."""

    def __init__(self, options: "Options") -> None:
        self._options = options
        self.loaded = load_settings(options)
        self.folder = options.folder.resolve()
        place = self.loaded.host.expand(self.loaded.config.session.storage_path, self.folder)
        self.store = SessionStore(place)

    def listed(self) -> "list[Saved]":
        """List the sessions of all folders, in the order of their numbers."""
        return [self.cleaned(saved) for saved in self.store.numbered(str(self.folder))]

    def find(self, word: str) -> "Saved":
        """Return the session that a number of the list, a name, a title or a beginning means. Raises YbsError."""
        return self.cleaned(self.store.find(word, project=str(self.folder)))

    def read(self, word: str) -> "tuple[Saved, Transcript]":
        """Read a session, and say what in it could not be read. Raises YbsError and OSError."""
        saved = self.find(word)
        transcript = self.store.read(saved.name)
        if transcript.damaged:
            lines = plural(transcript.damaged, "line")
            tell(f"ybs: {lines} of {saved.name} cannot be read; the rest is whole")
        return saved, transcript

    @cached_property
    def roots(self) -> "Roots":
        """The folders that tools may work in."""
        from ybs.session.settings import environment_of  # a list needs none

        return environment_of(self._options, self.loaded).roots

    @cached_property
    def firewall(self) -> "Firewall":
        """What masks secrets: also those that were written down before ybs knew them for such."""
        from ybs.agent.secrets import Secrets

        return Secrets(self.loaded, self.roots).firewall

    def cleaned(self, saved: "Saved") -> "Saved":
        """Mask the secrets in a title."""
        mask = self.firewall.mask
        return replace(saved, title=mask(saved.title), model=mask(saved.model))


def list_them(here: Sessions, arguments: "Namespace") -> int:
    """Print the sessions that are not empty, numbered as the other actions take them."""
    doing = _doing(here)
    listed = [
        (number, each)
        for number, each in enumerate(here.listed(), 1)
        if each.messages and (arguments.all or each.project == str(here.folder))
    ]
    if arguments.format == "json":
        write_json(
            [
                {**_facts(saved, number), "doing": doing.get(saved.name, "")}
                for number, saved in listed
            ]
        )
    elif not listed:
        where = "" if arguments.all else f" in {here.folder}; `ybs sessions list --all` shows all"
        write(f"There are no saved sessions{where}.")
    else:
        write_sections(listed, with_folder=arguments.all, doing=doing)
    warn(here.loaded.warnings)
    return 0


def _doing(here: Sessions) -> "Mapping[str, str]":
    """Return what the sessions of the server do; most people have none."""
    if not ServerPlace.of(here.loaded.host).path.exists():
        return {}
    from ybs.frontends.serve.background import running

    return running(here.loaded.host)


def write_sections(
    listed: "Sequence[tuple[int, Saved]]", *, with_folder: bool, doing: "Mapping[str, str]"
) -> None:
    """Print the conversations, and below them the one-shots."""
    once = [(number, saved) for number, saved in listed if saved.is_one_shot]
    rest = [(number, saved) for number, saved in listed if not saved.is_one_shot]
    if rest:
        write_rows(rest, with_folder=with_folder, doing=doing)
    if rest and once:
        write("")
    if once:
        write("One-shots (ybs --print):")
        write_rows(once, with_folder=with_folder, doing=doing)


def write_rows(
    listed: "Sequence[tuple[int, Saved]]",
    *,
    with_folder: bool,
    doing: "Mapping[str, str]" = MappingProxyType({}),
) -> None:
    """Print a line for each session; on a terminal that is too narrow for it, what people look for."""
    now = time.time()
    rows = [
        (*_row(saved, number, now, with_folder=with_folder), doing.get(saved.name) or _open(saved))
        for number, saved in listed
    ]
    room = columns()
    if max(map(len, in_columns(rows))) > room:
        rows = _narrowed(rows, max(room, _NARROWEST))
    write_table(rows)


def _narrowed(rows: "Sequence[tuple[str, ...]]", room: int) -> list[tuple[str, ...]]:
    """Keep number, title, age and whether it is open; the messages too, where a title has room beside them."""
    for last in (4, 3):
        short = [(row[0], *row[2:last], row[-1]) for row in rows]
        width = room - max(map(len, in_columns(short))) - len("  ")
        if width >= _SHORT_TITLE:
            break
    return [
        (row[0], clipped(old[1], width), *row[1:]) for old, row in zip(rows, short, strict=True)
    ]


def show(here: Sessions, arguments: "Namespace") -> int:
    """Print a conversation so that people can read it, or its events."""
    saved, transcript = here.read(arguments.words[0])
    if arguments.format == "json":
        events = [Raw(line) for line in events_of(transcript, here.firewall).splitlines()]
        write_json({**_facts(saved), "damaged": transcript.damaged, "events": events})
    else:
        put_utf8(text_of(saved, transcript, here.firewall), sys.stdout)
    return 0


def export(here: Sessions, arguments: "Namespace") -> int:
    """Write a conversation as Markdown, or its events as JSON lines: to standard output, or into a new file."""
    name, *files = arguments.words
    saved, transcript = here.read(name)
    is_data, firewall = arguments.format == "json", here.firewall
    data = events_of(transcript, firewall) if is_data else b""
    text = "" if is_data else text_of(saved, transcript, firewall)
    if files:
        from ybs.security.paths.new_file import find_place, write_new

        roots = here.roots
        place = find_place(roots, files[0], f"{saved.name}.{'jsonl' if is_data else 'md'}")
        write_new(roots, place, data or text.encode("utf-8", "replace"))
        write(f"Exported {saved.name}: {place}")
    elif is_data:
        put_json(data, sys.stdout)
    else:
        put_utf8(text, sys.stdout)
    return 0


def search(here: Sessions, arguments: "Namespace") -> int:
    """Print where words were said, in the sessions of all folders. The exit code is 1 where they were not."""
    hits = here.store.search(" ".join(arguments.words), clean=here.firewall.mask)
    hits = [replace(hit, saved=here.cleaned(hit.saved)) for hit in hits]
    if arguments.format == "json":
        write_json(
            [{**_facts(hit.saved), "line": hit.line, "excerpt": hit.excerpt} for hit in hits]
        )
        return 0 if hits else 1
    now, last = time.time(), ""
    for hit in hits:
        if hit.saved.name != last:
            write(f"{_title(hit.saved)}  ({hit.saved.name}, {age(now - hit.saved.changed_at)})")
            last = hit.saved.name
        if (excerpt := one_line(hit.excerpt)) != _title(hit.saved):  # it stands in the line above
            write(f"  {excerpt}")
    if not hits:
        tell("ybs: no saved session contains that")
    return 0 if hits else 1


def _unlearn(here: Sessions, names: Sequence[str]) -> None:
    """Delete the words of deleted sessions from what was learned of recurring tasks."""
    from ybs.learning.store import LearningStore

    store = LearningStore(here.loaded.host)
    if not names or not store.path.exists():
        return
    with store.changing() as learned:
        for name in names:
            learned.forget_session(name)


def delete(here: Sessions, arguments: "Namespace") -> int:
    """Delete sessions with what was kept for their undo. The person is asked, or has said --yes."""
    from ybs.session.cleaning import clean

    chosen = list({saved.name: saved for saved in map(here.find, arguments.words)}.values())
    if not arguments.yes:
        for saved in chosen:
            write(f"  {_title(saved)}  ({saved.name}, {plural(saved.messages, 'message')})")
        question = f"Delete {plural(len(chosen), 'session')}? This cannot be undone. [y/N] "
        if not agrees(question, _NO_TERMINAL):
            tell("Nothing was deleted.")
            return _REFUSED
    gone: list[str] = []
    for saved in chosen:
        try:
            here.store.delete(saved.name)
            gone.append(saved.name)
        except YbsError as error:  # some ybs has it open
            tell(f"ybs: {error}")
    clean(here.loaded.host, here.store)  # what was kept for an undo of what is gone
    _unlearn(here, gone)
    if arguments.format == "json":
        write_json({"deleted": gone})
    else:
        write(f"Deleted {plural(len(gone), 'session')}.")
    return 0 if len(gone) == len(chosen) else 1


def text_of(saved: "Saved", transcript: "Transcript", firewall: "Firewall") -> str:
    """Write a conversation down for people, with what a compaction has set aside."""
    from ybs.session.export import markdown_of
    from ybs.transcripts.replay import Replay

    replay = Replay()
    for envelope in transcript.events:  # what was rewound is not among them
        if not isinstance(envelope.event, Compacted | Rewound):
            replay.add(envelope.event, agent=envelope.agent)
    who = " ".join(filter(None, (saved.provider, saved.model))) or "An unknown model"
    where = f"in `{saved.project}`" if saved.project else ""
    about = ", ".join(filter(None, (who, where, _day(saved.changed_at))))
    return markdown_of(replay.messages, firewall, title=saved.title, about=about)


def events_of(transcript: "Transcript", firewall: "Firewall") -> bytes:
    """Write the events of a conversation down, one JSON object in a line."""
    from ybs.session.export import lines_of

    said = [
        (line.said, _time_of(line.timestamp), line.agent)
        for line in transcript.chain
        if line.said is not None
    ]
    return lines_of(said, firewall)


def _row(saved: "Saved", number: int, now: float, *, with_folder: bool) -> tuple[str, ...]:
    return (
        f"{number:>3}",
        _title(saved),
        age(now - saved.changed_at),
        plural(saved.messages, "message"),
        _size(saved.size),
        printable(saved.model),
        printable(saved.name.removeprefix(PREFIX)),
        *([printable(saved.project)] if with_folder else []),
    )


def _open(saved: "Saved") -> str:
    return "open" if saved.is_open else ""


def _facts(saved: "Saved", number: int | None = None) -> dict[str, Any]:
    changed = datetime.fromtimestamp(saved.changed_at, UTC).isoformat(timespec="milliseconds")
    return {
        **({} if number is None else {"number": number}),
        "session": saved.name,
        "title": saved.title,
        "folder": saved.project,
        "changed_at": f"{changed.removesuffix('+00:00')}Z",
        "messages": saved.messages,
        "size_bytes": saved.size,
        "is_open": saved.is_open,
        "is_one_shot": saved.is_one_shot,
        "provider": saved.provider,
        "model": saved.model,
        "file": str(saved.path),
    }


def _title(saved: "Saved") -> str:
    return clipped(printable(saved.title), _TITLE) or "(no words)"


def _day(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment):%Y-%m-%d}"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(round(count / 1000), 1)} kB"


def _time_of(timestamp: str) -> datetime:
    try:
        return datetime.fromisoformat(timestamp)
    except ValueError:  # a hand has spoiled it
        return datetime.fromtimestamp(0, UTC)


_ACTIONS: "dict[str, Callable[[Sessions, Namespace], int]]" = {
    "list": list_them,
    "show": show,
    "export": export,
    "search": search,
    "delete": delete,
}
