"""Programs that are given goals: `mvn test deploy` does two things, so being allowed `mvn test` allows only one."""

from collections.abc import Iterator, Sequence

from ybs.security.commands.options import operands_of

#: Programs whose operands each name something else to do, by their name without folder.
_BY_GOALS = frozenset(
    ("make", "gmake", "ninja", "mvn", "mvnw", "gradle", "gradlew", "ant", "rake", "just", "grunt", "gulp", "sbt")
) | {"lein", "mage", "doit", "invoke", "inv", "fab", "scons", "waf", "tox", "nox", "bazel", "bazelisk", "msbuild"}  # fmt: skip
#: Options that choose what is done, by program.
_CHOOSING = {
    "tox": ("-e", "--env", "-m", "-c", "--conf", "--workdir", "--root", "-x", "--override", "--devenv"),
    "nox": ("-s", "--session", "-t", "--tags", "-f", "--noxfile", "-k", "--keywords", "-p", "--python"),
    "dotnet": ("-t", "--target", "-target", "-p"),
    "ninja": ("-t", "-f", "-C"),
    "mvn": ("-f", "--file", "-P", "-D", "-s", "-gs", "-t"),
    "go": ("-ldflags", "--ldflags", "-gcflags", "--gcflags", "-asmflags", "-gccgoflags", "-pkgdir", "-exec"),
    "pytest": ("--pdbcls", "--pastebin", "--pyargs"),
    "cargo": ("-Z",),
    "rspec": ("-r", "--require", "-O", "--options", "-o", "--out"),
}  # fmt: skip


def is_by_goals(words: Sequence[str]) -> bool:
    """Return whether the operands of the program each name something to do."""
    return words[0].rpartition("/")[2] in _BY_GOALS


def chosen(words: Sequence[str]) -> Iterator[str]:
    """Yield the options that choose what is done."""
    name = words[0].rpartition("/")[2]
    for beginning in _CHOOSING.get(name, ()):
        is_long = beginning.startswith("--") or len(beginning) > 2
        for word in words[1:]:
            if word == beginning or word.startswith(beginning + "=" * is_long):
                yield beginning


def goals_beyond(words: Sequence[str], pattern: str) -> list[str]:
    """Return the goals that a pattern does not name which names one itself; a star alone stands for all of them."""
    named = [word for word in pattern.split()[1:] if "*" not in word]
    if not is_by_goals(words) or not any(word[:1] != "-" for word in named):
        return []
    return [word for word in operands_of(words) if word not in named]
