"""Options by which a program runs another one: `rg --pre`, `tar --to-command`, `git -c core.pager`."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ybs.core.lazy import lazy

#: Programs, and options whose value is a command. A long option may be abbreviated; `-O` may stand in a cluster.
_RUNNING_ROWS: tuple[tuple[str, str], ...] = (
    ("rg", "--pre --hostname-bin"),
    ("sort", "--compress-program"),
    ("split", "--filter"),
    ("tar bsdtar", "--to-command -I --use-compress-program --rsh-command --rmt-command -F"),
    ("tar bsdtar", "--info-script --new-volume-script --checkpoint-action"),
    ("man", "-P --pager -H --html -X --gxditview"),
    ("zip", "--unzip-command"),
    ("rsync", "-e --rsh --rsync-path"),
    ("ssh scp sftp", "-o -S"),
    ("ag ack bat batcat delta", "--pager"),
    ("go", "-exec -toolexec -vettool"),
    ("cargo", "--config"),
    ("npm pnpm", "--script-shell --node-options"),
    ("vi vim nvim view ex", "-c --cmd -S"),
    ("tcpdump", "-z"),
    ("sqlite3", "-cmd -init"),
    ("gdb lldb", "-ex --eval-command -x -o"),
    ("pytest", "-p"),
    ("make gmake", "--eval -E"),
    ("ctest", "--build-and-test --test-command --build-makeprogram -S --script -SP"),
    ("cmake", "-P -E"),
    ("tox", "-x --override"),
    ("bazel bazelisk", "--run_under --script_path --override_repository"),
    ("just", "--shell --shell-arg --chooser --command -c"),
    ("gradle gradlew", "-I --init-script"),
    ("git", "--open-files-in-pager --upload-pack --receive-pack --exec --extcmd --exec-path"),
    ("git", "--ext-diff --textconv --config-env --template"),
    ("date", ""),
    ("less more", ""),
    ("awk gawk mawk nawk", ""),
    ("sed gsed", ""),
)
#: `tar Ixf PROGRAM ARCHIVE`: options without a dash, whose values follow in order.
_OLD_STYLE = lazy(r"[A-Za-z]*[IF][A-Za-z]*")
_LETTER = re.compile(r"-[^-]$")


class Option(Struct, frozen=True):
    """An option as it was written, and its value if it has one."""

    name: str
    value: str = ""


def _table(rows: tuple[tuple[str, str], ...]) -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for programs, names in rows:
        for program in programs.split():
            table[program] = (*table.get(program, ()), *names.split())
    return table


RUNNING = _table(_RUNNING_ROWS)
_GIT_KEYS = lazy(
    r"(?:alias|filter|include|includeif|credential|url|remote|protocol)\.|"
    r"core\.(?:pager|editor|sshcommand|hookspath|fsmonitor|askpass|gitproxy|worktree|attributesfile)|"
    r"pager\.|diff\..*(?:command|textconv|external)|diff\.external|merge.*\.(?:cmd|driver|path)|"
    r".*tool\.|gpg\.|gpg.*program|sequence\.editor|sendemail\.|uploadpack|http\..*proxy|http\.ssl",
    re.IGNORECASE,
)
_GIT_LETTERS = {
    "grep": ("-O",),
    "rebase": ("-x",),
    "difftool": ("-x",),
    "clone": ("-u", "-c"),
    "archive": ("-o",),
}
_GIT_GLOBAL = frozenset({"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix"})


def running(words: list[str]) -> Iterator[Option]:
    """Yield the options by which a command runs what they say."""
    name = words[0]
    yield from _found(words, RUNNING.get(name, ()))
    if name == "git":
        yield from _running_by_git(words)
    elif name in ("tar", "bsdtar") and _OLD_STYLE().fullmatch("".join(words[1:2])):
        yield Option("-I")
    elif name in ("less", "more", "vi", "vim", "nvim", "view"):
        yield from (Option(word, word.lstrip("+!|")) for word in words[1:] if word[:1] == "+")


def operands_of(words: Sequence[str]) -> list[str]:
    """Return the words behind the program that are not options: also `-`, and all behind `--`."""
    place = words.index("--") if "--" in words else len(words)
    before = [word for word in words[1:place] if word == "-" or word[:1] != "-"]
    return [*before, *words[place + 1 :]]


def _found(words: list[str], names: tuple[str, ...]) -> Iterator[Option]:
    for place, word in enumerate(words) if names else ():
        if place and word[:1] == "-" and len(word) > 1:
            for name in names:
                if (value := _value(word, name)) is not None:
                    following = words[place + 1] if place + 1 < len(words) else ""
                    yield Option(name, value or following)


def _value(word: str, name: str) -> str | None:
    """Return the value glued to an option, empty where there is none; None where the word is another."""
    if name.startswith("--"):
        head, _, value = word.partition("=")
        return value if len(head) > 2 and name.startswith(head) else None
    if _LETTER.match(name):
        has_it = word[1] != "-" and name[1] in word
        return word.partition(name[1])[2] if has_it else None
    head, _, value = word.partition("=")
    return value if head == name else None


def git_verb(words: list[str]) -> int:
    """Return the place of the subcommand among the words of a git command, or how many words there are."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 1 + (words[place] in _GIT_GLOBAL)
    return min(place, len(words))


def _running_by_git(words: list[str]) -> Iterator[Option]:
    place = git_verb(words)
    verb = words[place] if place < len(words) else ""
    for number, word in enumerate(words[1:place], 1):
        if word == "-c":
            value = words[number + 1] if number + 1 < len(words) else ""
            yield Option("-c", value.partition("=")[2].lstrip("!"))
        elif word in ("-p", "--paginate"):
            yield Option(word)
    if verb in _GIT_LETTERS:
        yield from _found(words[place:], _GIT_LETTERS[verb])
    yield from (Option(word) for word in words[place:] if word.startswith("ext::"))
    if verb == "config":
        keys = [at for at in range(place + 1, len(words)) if _GIT_KEYS().match(words[at])]
        yield from (
            Option(words[at], words[at + 1].lstrip("!")) for at in keys if at + 1 < len(words)
        )
