"""The text of a first AGENTS.md: what the project's own files show, and nothing else."""

from collections.abc import Iterable, Iterator, Sequence

from ybs.context.detect import Project
from ybs.context.kinds.kind import VERBS
from ybs.context.kinds.table import SUFFIXES
from ybs.core.folder_names import ASIDE, OTHERS
from ybs.core.wording import plural

_MOST_PARTS, _MOST_FOLDERS, _MOST_CENTRAL, _MOST_CONVENTIONS = 8, 12, 6, 6
_LONGEST_PATH = 80
#: A folder with so much of all sources is told by the folders in it.
_MOST_SHARE = 0.4
_DEEPEST = 2
#: They say that there is C or C++, but not which.
_HEADERS: dict[str, str] = dict.fromkeys((".h", ".hh", ".hpp", ".hxx"), "C/C++ header")


def first_agents_file(
    project: Project,
    map_text: str,
    name: str,
    *,
    files: Sequence[str] = (),
    conventions: Sequence[str] = (),
) -> str:
    """Write down the project's kinds, commands, layout and style, and leave room for the person's own rules.

    `files` are the project's relative paths. A section of which nothing is known is left out.
    """
    title = name if _is_plain(name) else "This project"
    sections = [
        f"# {title}",
        _kinds(project),
        _section("Commands", _commands(project)),
        _section("Layout", [*_layout(files), *_central(map_text, files)]),
        _section("Conventions", [f"- {each}" for each in conventions[:_MOST_CONVENTIONS]]),
        "## Rules",
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def _section(title: str, lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    return f"## {title}\n\n{text}" if text else ""


def _kinds(project: Project) -> str:
    told = [
        ", ".join(kind.label for kind in part.kinds) + f" in `{part.folder}`" * bool(part.folder)
        for part in project.parts
        if part.kinds
    ]
    more = [f"{len(told) - _MOST_PARTS} more"] if len(told) > _MOST_PARTS else []
    kinds = "; ".join([*told[:_MOST_PARTS], *more])
    return f"{kinds}." if kinds else ""


def _commands(project: Project) -> Iterator[str]:
    for part in project.parts[:_MOST_PARTS]:
        told = [(verb, _quoted(part.commands[verb])) for verb in VERBS if verb in part.commands]
        if part.folder and told:
            yield f"- in `{part.folder}`: " + ", ".join(f"{verb} {each}" for verb, each in told)
        else:
            yield from (f"- {verb}: {each}" for verb, each in told)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _layout(files: Sequence[str]) -> list[str]:
    """Name the folders with most sources; one that holds a large part of them by the folders in it."""
    sources = [path for path in files if _language(path) and _is_plain(path) and path[0] != "."]
    folders = _folders(sources, "")
    top = [path for path in sources if "/" not in path]
    own = len(top) + sum(len(paths) for name, paths in folders.items() if not _is_closed(name))
    while folders:
        name = max(folders, key=lambda each: 0 if _is_closed(each) else len(folders[each]))
        paths = folders[name]
        below = _folders(paths, name)
        inside = sum(map(len, below.values()))
        if _is_closed(name) or len(paths) < _MOST_SHARE * own or inside * 2 < len(paths):
            break
        folders |= below
        folders[f"{name}*"] = [
            path for path in folders.pop(name) if path.count("/") == name.count("/")
        ]
    lines = [f"- at the top: {_content(top)}"] if len(top) > 1 else []
    largest = sorted(filter(folders.get, folders), key=lambda name: -len(folders[name]))[
        :_MOST_FOLDERS
    ]
    return lines + [f"- `{name}`: {_content(folders[name])}" for name in sorted(largest)]


def _is_closed(name: str) -> bool:
    """Return whether what is in the folder is of less interest: tests, examples, and what others made."""
    last = name.rstrip("/").rpartition("/")[2].lower()
    return last == "*" or last in ASIDE or last in OTHERS or name.count("/") > _DEEPEST


def _folders(paths: Iterable[str], prefix: str) -> dict[str, list[str]]:
    """Sort paths by the folder of the next level below the prefix."""
    found: dict[str, list[str]] = {}
    for path in paths:
        name, slash, _ = path[len(prefix) :].partition("/")
        if slash:
            found.setdefault(f"{prefix}{name}/", []).append(path)
    return found


def _content(paths: Sequence[str]) -> str:
    """Say how many sources there are, of the language that most are in."""
    count: dict[str, int] = {}
    for path in paths:
        count[_language(path)] = count.get(_language(path), 0) + 1
    language = max(count, key=lambda name: count[name])
    return plural(count[language], f"{language} file")


def _language(path: str) -> str:
    stem, dot, suffix = path.rpartition(".")
    return (SUFFIXES.get(dot + suffix) or _HEADERS.get(dot + suffix, "")) if stem else ""


def _central(map_text: str, files: Sequence[str]) -> list[str]:
    """Name the files that the map begins with: it ranks by use and by history."""
    known = {path for path in files if not any(map(_is_closed, path.split("/")[:-1]))}
    paths = [path for path in _mapped(map_text) if path in known and _language(path)]
    paths = [path for path in paths if _is_plain(path) and not _is_test(path)]
    if paths == sorted(paths):
        return []  # in the order of names: nothing is known of their worth
    return [f"- Used and changed most: {_quoted(paths[:_MOST_CENTRAL])}"]


def _mapped(map_text: str) -> Iterator[str]:
    """Yield the paths of a map: `path: names` and `folder/: file file`; what is indented belongs to a file."""
    for line in map_text.splitlines():
        if line[:1].strip():
            head, _, names = line.partition(": ")
            folder = "" if head == "./" else head
            yield from (f"{folder}{name}" for name in names.split()) if head[-1] == "/" else (head,)


def _is_test(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return name.startswith("test_") or any(each in name for each in ("_test.", ".test.", ".spec."))


def _is_plain(text: str) -> bool:
    """Return whether a name can stand in Markdown as it is; others are left out."""
    return 0 < len(text) <= _LONGEST_PATH and all(c.isalnum() or c in "_-.+@/ " for c in text)
