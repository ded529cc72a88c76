"""What a table cannot tell of a kind: wrappers, workspaces, and the tasks that composer and rake know."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from ybs.context.kinds.folder import Folder
from ybs.context.kinds.glance import glance
from ybs.context.kinds.kind import Kind, picked


class _Composer(msgspec.Struct):
    """What counts of a composer.json."""

    scripts: dict[str, Any] = {}


def _cargo(kind: Kind, folder: Folder, _below: list[Folder]) -> Kind:
    if "workspace" not in glance(folder.text("Cargo.toml")):
        return kind
    every = {verb: f"{kind.commands[verb]} --workspace" for verb in ("test", "build")}
    return replace(kind, commands=kind.commands | every, is_workspace=True)


def _go(kind: Kind, folder: Folder, _below: list[Folder]) -> Kind:
    if "go.work" not in folder.files:
        return kind
    # From its folder `./...` reaches no module but the one there.
    commands = kind.commands if "go.mod" in folder.files else {}
    return replace(kind, tool="workspace", commands=commands)


def _jvm(kind: Kind, folder: Folder, _below: list[Folder]) -> Kind:
    text = folder.text("build.gradle.kts", "build.gradle", "pom.xml")
    is_kotlin = any(
        word in text for word in ("kotlin(", "org.jetbrains.kotlin", "kotlin.jvm", "kotlin.android")
    )
    commands: dict[str, str] = kind.commands
    for tool, wrapper in (("gradle ", "gradlew"), ("mvn ", "mvnw")):
        if wrapper in folder.files:
            commands = {v: c.replace(tool, f"./{wrapper} ") for v, c in commands.items()}
    return replace(kind, name="Kotlin" if is_kotlin else kind.name, commands=commands)


def _bundler(kind: Kind, folder: Folder, below: list[Folder]) -> Kind:
    names = _rake(folder.text("Rakefile"))
    commands = picked(names, lambda name: f"bundle exec rake {name}") | kind.commands
    if any(each.shown == f"{folder.shown}bin/" and "rails" in each.files for each in below):
        commands["test"] = "bin/rails test"
    if "Gemfile" in folder.files:
        return replace(kind, commands=commands)
    bare = {v: c.removeprefix("bundle exec ") for v, c in commands.items() if v != "setup"}
    return replace(kind, tool="", commands=bare)


def _rake(text: str) -> set[str]:
    """Return the tasks of a Rakefile that stand in no namespace."""
    found: set[str] = set()
    for line in text.splitlines():
        if line.startswith("task "):
            name = line[5:].lstrip(" :\"'").replace("=>", " ").replace(",", " ").split()
            found.update(each.rstrip(":\"'") for each in name[:1])
        elif "TestTask." in line[:40]:
            found.add(_named(line) or "test")
        elif "RSpec::Core::RakeTask" in line:
            found.add(_named(line) or "spec")
        elif "RuboCop::RakeTask" in line:
            found.add(_named(line) or "rubocop")
    return found


def _named(line: str) -> str:
    """Return the name that a line gives its task, as `.new(:name)`."""
    name = line.partition("(:")[2].partition(")")[0]
    return name if name.isidentifier() else ""


def _composer(kind: Kind, folder: Folder, _below: list[Folder]) -> Kind:
    try:
        scripts = msgspec.json.decode(folder.text("composer.json"), type=_Composer).scripts
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return kind
    commands = kind.commands
    if "artisan" in folder.files:
        commands = commands | {"test": "php artisan test"}
    found = picked(scripts, lambda name: f"composer {name}")
    found.pop("setup", None)  # composer's own words
    return replace(kind, commands=commands | found)


def _flutter(kind: Kind, folder: Folder, _below: list[Folder]) -> Kind:
    if "sdk: flutter" not in folder.text("pubspec.yaml"):
        return replace(kind, tool="")
    commands = {v: c.replace("dart ", "flutter ", 1) for v, c in kind.commands.items()}
    return replace(kind, commands=commands)


#: By the tool, or the kind where it has none.
FITTED: dict[str, Callable[[Kind, Folder, list[Folder]], Kind]] = {
    "cargo": _cargo,
    "Go": _go,
    "Gradle": _jvm,
    "Maven": _jvm,
    "bundler": _bundler,
    "composer": _composer,
    "Flutter": _flutter,
}
