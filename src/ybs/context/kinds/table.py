"""The kinds of project that a table can tell: by a file, with the commands that their tool has for all projects."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.context.kinds.folder import Folder
from ybs.context.kinds.glance import glance
from ybs.context.kinds.kind import Kind, picked


class KindRow(Struct, frozen=True):
    """A kind, its tool, the files that show it (`*.x`: any with that end), and what the tool is told."""

    name: str
    tool: str
    signs: tuple[str, ...]
    commands: dict[str, str] = {}


class Extra(Struct, frozen=True):
    """A command of a kind's that a file shows, or a word in a file."""

    name: str
    verb: str
    files: tuple[str, ...]
    command: str
    word: str = ""


ROWS = (
    KindRow(
        "Rust",
        "cargo",
        ("Cargo.toml",),
        {"test": "cargo test", "build": "cargo build"},
    ),
    KindRow(
        "Go",
        "",
        ("go.mod", "go.work"),
        {"setup": "go mod download", "test": "go test ./...", "build": "go build ./..."},
    ),
    KindRow(
        "Java",
        "Gradle",
        ("build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle"),
        {"test": "gradle test", "build": "gradle build"},
    ),
    KindRow("Java", "Maven", ("pom.xml",), {"test": "mvn test", "build": "mvn package"}),
    KindRow("Scala", "sbt", ("build.sbt",), {"test": "sbt test", "build": "sbt compile"}),
    KindRow(
        "C#",
        "dotnet",
        ("*.sln", "*.slnx", "*.csproj"),
        {"setup": "dotnet restore", "test": "dotnet test", "build": "dotnet build"},
    ),
    KindRow("F#", "dotnet", ("*.fsproj",), {"test": "dotnet test", "build": "dotnet build"}),
    KindRow("Ruby", "bundler", ("Gemfile", "*.gemspec", "Rakefile"), {"setup": "bundle install"}),
    KindRow("PHP", "composer", ("composer.json",), {"setup": "composer install"}),
    KindRow("Swift", "", ("Package.swift",), {"test": "swift test", "build": "swift build"}),
    KindRow("Swift", "Xcode", ("Podfile",)),
    KindRow(
        "Elixir",
        "mix",
        ("mix.exs",),
        {"setup": "mix deps.get", "test": "mix test", "build": "mix compile"},
    ),
    KindRow(
        "Erlang", "rebar3", ("rebar.config",), {"test": "rebar3 eunit", "build": "rebar3 compile"}
    ),
    KindRow("Dart", "Flutter", ("pubspec.yaml",), {"setup": "dart pub get", "test": "dart test"}),
    KindRow("Haskell", "stack", ("stack.yaml",), {"test": "stack test", "build": "stack build"}),
    KindRow("Haskell", "cabal", ("*.cabal",), {"test": "cabal test", "build": "cabal build"}),
    KindRow("Clojure", "lein", ("project.clj",), {"test": "lein test"}),
    KindRow("Clojure", "", ("deps.edn",)),
    KindRow("OCaml", "dune", ("dune-project",), {"test": "dune test", "build": "dune build"}),
    KindRow("Zig", "", ("build.zig",), {"build": "zig build"}),
    KindRow("Perl", "", ("cpanfile", "Makefile.PL"), {"test": "prove -l"}),
    KindRow("Lua", "luarocks", ("*.rockspec",)),
    KindRow("Julia", "", ("Project.toml",)),
    KindRow(
        "Terraform",
        "",
        ("*.tf",),
        {"setup": "terraform init", "lint": "terraform validate", "format": "terraform fmt"},
    ),
)

EXTRAS = (
    Extra("Rust", "lint", ("clippy.toml", ".clippy.toml"), "cargo clippy"),
    Extra("Rust", "lint", ("Cargo.toml",), "cargo clippy", "clippy]"),
    Extra("Rust", "format", ("rustfmt.toml", ".rustfmt.toml"), "cargo fmt"),
    Extra("Go", "lint", (".golangci.yml", ".golangci.yaml", ".golangci.toml"), "golangci-lint run"),
    Extra("Java", "lint", ("build.gradle.kts", "build.gradle"), "gradle spotlessCheck", "spotless"),
    Extra(
        "Java", "format", ("build.gradle.kts", "build.gradle"), "gradle spotlessApply", "spotless"
    ),
    Extra("Java", "lint", ("pom.xml",), "mvn spotless:check", "spotless"),
    Extra("Java", "format", ("pom.xml",), "mvn spotless:apply", "spotless"),
    Extra("Ruby", "test", (".rspec",), "bundle exec rspec"),
    Extra("Ruby", "lint", (".rubocop.yml",), "bundle exec rubocop"),
    Extra("PHP", "test", ("phpunit.xml", "phpunit.xml.dist"), "vendor/bin/phpunit"),
    Extra("PHP", "lint", ("phpstan.neon", "phpstan.neon.dist"), "vendor/bin/phpstan analyse"),
    Extra("PHP", "format", ("pint.json",), "vendor/bin/pint"),
    Extra(
        "PHP",
        "format",
        (".php-cs-fixer.php", ".php-cs-fixer.dist.php"),
        "vendor/bin/php-cs-fixer fix",
    ),
    Extra("Swift", "lint", (".swiftlint.yml",), "swiftlint"),
    Extra("Elixir", "lint", (".credo.exs",), "mix credo"),
    Extra("Elixir", "format", (".formatter.exs",), "mix format"),
    Extra("Dart", "lint", ("analysis_options.yaml",), "dart analyze"),
)

#: Suffixes of sources, for a project that has no manifest of its own.
SUFFIXES = {
    ".py": "Python", ".js": "JavaScript", ".mjs": "JavaScript", ".ts": "TypeScript", ".tsx": "TypeScript",
    ".go": "Go", ".rs": "Rust", ".java": "Java", ".kt": "Kotlin", ".c": "C", ".cc": "C++", ".cpp": "C++",
    ".cxx": "C++", ".cs": "C#", ".rb": "Ruby", ".php": "PHP", ".swift": "Swift", ".ex": "Elixir", ".sh": "Bash",
    ".bash": "Bash", ".bats": "Bash", ".lua": "Lua", ".pl": "Perl", ".R": "R", ".jl": "Julia", ".hs": "Haskell",
    ".scala": "Scala", ".dart": "Dart", ".zig": "Zig", ".ps1": "PowerShell", ".html": "HTML", ".tex": "LaTeX",
    ".cjs": "JavaScript", ".jsx": "JavaScript", ".mts": "TypeScript", ".cts": "TypeScript", ".vue": "Vue",
    ".svelte": "Svelte", ".tcl": "Tcl", ".erl": "Erlang", ".clj": "Clojure", ".ml": "OCaml", ".fs": "F#",
}  # fmt: skip


def tabled(folder: Folder, below: list[Folder]) -> list[Kind]:
    """Return the kinds that the folder's files show; of two tools for one language the first."""
    found: dict[str, Kind] = {}
    for row in ROWS:
        if row.name not in found and folder.first(*row.signs):
            kind = Kind(name=row.name, tool=row.tool, commands=row.commands | _extras(folder, row))
            fitted = FITTED.get(row.tool or row.name)
            found[row.name] = fitted(kind, folder, below) if fitted else kind
    return list(found.values())


def _extras(folder: Folder, row: KindRow) -> dict[str, str]:
    return {
        extra.verb: extra.command
        for extra in EXTRAS
        if extra.name == row.name
        and (extra.word in folder.text(*extra.files) if extra.word else folder.first(*extra.files))
    }


#: Every file name, and suffix, that a kind is known by: a folder without any of them needs no closer look.
SIGNS = frozenset(sign.removeprefix("*") for row in ROWS for sign in row.signs)


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
