"""The kinds of project that a table can tell: by a file, with the commands that their tool has for all projects."""

from msgspec import Struct

from ybs.context.kinds.fitting import FITTED
from ybs.context.kinds.folder import Folder
from ybs.context.kinds.kind import Kind


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
