"""Options by which a program runs another one (`rg --pre`, `git -c core.pager`) and words that say what is done (`mvn deploy`)."""

import re
from collections.abc import Iterator, Sequence

from ybs.core.lazy import lazy
from ybs.security.commands.command import words_in

_ROWS: tuple[tuple[str, str], ...] = (
    ("rg", "--pre --hostname-bin"),
    ("sort", "--compress-program"),
    ("split", "--filter"),
    ("tar bsdtar", "--to-command -I --use-compress-program --rsh-command --rmt-command -F --info-script --new-volume-script --checkpoint-action"),
    ("man", "-P --pager -H --html -X --gxditview"),
    ("zip", "-TT --unzip-command"),
    ("gcc g++ cc c++ clang clang++ gfortran", "-wrapper -B -fplugin -fuse-ld -specs --specs"),
    ("rsync", "-e --rsh --rsync-path"),
    ("ssh scp sftp", "-o -S"),
    ("ag ack bat batcat delta", "--pager"),
    ("go", "-exec -toolexec -vettool"),
    ("cargo", "--config"),
    ("npm pnpm", "--script-shell --node-options"),
    ("vi vim nvim view ex", "-c --cmd -S"),
    ("tcpdump", "-z"),
    ("sqlite3", "-cmd -init"),
    ("install ginstall", "--strip-program"),
    ("gdb lldb", "-ex --eval-command -x -o"),
    ("pytest", "-p"),
    ("make gmake", "--eval -E"),
    ("ctest", "--build-and-test --test-command --build-makeprogram -S --script -SP"),
    ("cmake", "-P -E"),
    ("tox", "-x --override"),
    ("bazel bazelisk", "--run_under --script_path --override_repository"),
    ("just", "--shell --shell-arg --chooser --command -c"),
    ("gradle gradlew", "-I --init-script"),
    ("git", "--open-files-in-pager --upload-pack --receive-pack --exec --extcmd --exec-path --ext-diff --textconv --config-env --template --strategy"),
    ("less more", ""),  # `+!command`
)  # fmt: skip
#: Programs, and options whose value is a command. A long option may be abbreviated; `-O` may stand in a cluster.
RUNNING = {program: names.split() for programs, names in _ROWS for program in programs.split()}
#: `tar Ixf PROGRAM ARCHIVE`: options without a dash, whose values follow in order.
_OLD_STYLE = lazy(r"[A-Za-z]*[IF][A-Za-z]*")
_GIT_KEYS = lazy(
    r"(?:alias|filter|include|includeif|credential|url|remote|protocol)\.|"
    r"core\.(?:pager|editor|sshcommand|hookspath|fsmonitor|askpass|gitproxy|worktree|attributesfile)|"
    r"pager\.|diff\..*(?:command|textconv|external)|diff\.external|merge.*\.(?:cmd|driver|path)|"
    r".*tool\.|gpg\.|gpg.*program|sequence\.editor|sendemail\.|uploadpack|http\..*proxy|http\.ssl",
    re.IGNORECASE,
)
_GIT_LETTERS = {"grep": "-O", "rebase": "-x -s", "pull": "-s", "difftool": "-x", "clone": "-u -c", "archive": "-o"}  # fmt: skip
#: Options of git before its verb: those that have a value, and all. Behind any other one the verb is not certain.
GIT_GLOBAL = words_in("-c -C --git-dir --work-tree --namespace --super-prefix --config-env --attr-source --shallow-file")  # fmt: skip
GIT_OWN = GIT_GLOBAL | words_in("-p -P --paginate --no-pager --bare --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --literal-pathspecs --no-literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --exec-path --html-path --man-path --info-path -h --help -v --version")  # fmt: skip
#: Programs whose operands each name something else to do.
_TAKES_TARGETS = words_in("make gmake ninja mvn mvnw gradle gradlew ant rake just grunt gulp sbt lein mage doit invoke inv fab scons waf tox nox bazel bazelisk msbuild task turbo npm-run-all run-s run-p pants buck2")  # fmt: skip
#: Options by which other programs are told what to do, or with what.
_CHOOSING = {
    "dotnet": ("-t", "--target", "-target", "-p"),
    "go": ("-ldflags", "--ldflags", "-gcflags", "--gcflags", "-asmflags", "-gccgoflags", "-pkgdir"),
    "pytest": ("--pdbcls", "--pastebin", "--pyargs"),
}
#: Names of options that say that the value is a program.
_NAMES_PROGRAM = lazy(
    r"--?(?!no-)(?:\w+-)*(?:program|command|cmd|exec|wrapper|preprocessor|pager|interpreter)"
)
#: Names of options that say that the value is an address, or where settings are that say one.
_NAMES_ADDRESS = lazy(
    r"--?(?!no-)(?:\w+-)*(?:addr|address|endpoint|host|hostname|index|links|mirror|proxy|registry|repo|repository|server|ur[il]"
    r"|channel|source|config|(?:config|gem)file|(?:user|global)config|prefix|project|directory)|-[cCi]"
)
#: Options by which a program with targets, or scripts, works on another project or by another file.
_ELSEWHERE = {
    "make": "-f --file --makefile -C --directory",
    "gmake": "-f --file --makefile -C --directory",
    "ninja": "-f -C",
    "just": "-f --justfile -d --working-directory",
    "npm": "-C --prefix",
    "pnpm": "-C --dir --prefix",
    "yarn": "--cwd",
    "bun": "--cwd",
}


def running(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options by which a command runs what they say, each with its value, empty where it has none."""
    name = "".join(words[:1])
    yield from _found(words, RUNNING.get(name, ()))
    if name == "git":
        yield from _running_by_git(words)
    elif name in ("tar", "bsdtar") and _OLD_STYLE().fullmatch("".join(words[1:2])):
        yield "-I", ""
    elif name in ("less", "more", "vi", "vim", "nvim", "view"):
        yield from ((word, word.lstrip("+!|")) for word in words[1:] if word[:1] == "+")


def naming_programs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options whose name says that the value is a program, each with it: `--diff-program=X`, `-wrapper X`."""
    return _naming(words, _NAMES_PROGRAM())


def naming_addresses(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options whose name says that the value is an address, each with it: `--proxy X`, `-cX`."""
    return _naming(words, _NAMES_ADDRESS())


def _naming(words: Sequence[str], names: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    for word, following in zip(words[1:], [*words[2:], ""], strict=False):
        head, _, value = word.partition("=")
        value = value or (following if following[:1] != "-" else "")
        if value and names.fullmatch(head):
            yield head, value
        elif word[2:] and names.fullmatch(word[:2]):
            yield word[:2], word[2:]


def operands_of(words: Sequence[str]) -> list[str]:
    """Return the words behind the program that are not options: also `-`, and all behind `--`."""
    place = words.index("--") if "--" in words else len(words)
    before = [word for word in words[1:place] if word == "-" or word[:1] != "-"]
    return [*before, *words[place + 1 :]]


def _found(words: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for place, word in enumerate(words) if names else ():
        if not place or word[:1] != "-" or len(word) < 2:
            continue
        following = words[place + 1] if place + 1 < len(words) else ""
        head, _, value = word.partition("=")
        for name in names:
            if len(name) == 2:
                is_meant, given = word[1] != "-" and name[1] in word, word.partition(name[1])[2]
            else:
                is_long = name.startswith("--") and len(head) > 2
                is_meant, given = head == name or (is_long and name.startswith(head)), value
                if name.isupper() and word.startswith(name) and not value:  # `-TTsh`
                    is_meant, given = True, word.removeprefix(name)
            if is_meant:
                yield name, given or following


def values_of(words: Sequence[str], names: str) -> list[str]:
    """Return the values of these options: `-o x`, `-ox`, `--output x`, `--output=x`."""
    return [value.removeprefix("=") for _, value in _found(words, names.split()) if value]


def git_verb(words: list[str]) -> int:
    """Return the place of the subcommand among the words of a git command, or how many words there are."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 1 + (words[place] in GIT_GLOBAL)
    return min(place, len(words))


def _running_by_git(words: list[str]) -> Iterator[tuple[str, str]]:
    place = git_verb(words)
    verb = words[place] if place < len(words) else ""
    for word, following in zip(words[1:place], [*words[2:], ""], strict=False):
        if word == "-c":
            yield "-c", following.partition("=")[2].lstrip("!")
        elif word in ("-p", "--paginate"):
            yield word, ""
    yield from _found(words[place:], _GIT_LETTERS.get(verb, "").split())
    yield from ((word, "") for word in words[place:] if word.startswith("ext::"))
    if verb == "config":
        for key, value in zip(words[place + 1 :], words[place + 2 :], strict=False):
            if _GIT_KEYS().match(key):
                yield key, value.lstrip("!")


def takes_targets(words: Sequence[str]) -> bool:
    """Return whether the operands of the program each name something to do."""
    return words[0].rpartition("/")[2] in _TAKES_TARGETS


def chooses(words: Sequence[str]) -> bool:
    """Return whether an option of a program with a verb says what else is done."""
    return any(_found(words, _CHOOSING.get(words[0].rpartition("/")[2], ())))


def targets_of(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the targets in a command, each behind nothing, and where else it finds them, behind the option that says so."""
    yield from (("", word) for word in operands_of(words) if takes_targets(words))
    names = _ELSEWHERE.get(words[0].rpartition("/")[2], "").split()
    yield from ((name, value.removeprefix("=")) for name, value in _found(words, names))
