"""Detection: hostile files first, then the line of the prompt and the projects in a project."""

import json
import os
from itertools import count
from pathlib import Path

import pytest

from rows import every_row
from ybs.context import detect as looking
from ybs.context.detect import MAX_LINE_BYTES, Part, Project, _Kind, detect

_numbers = count()


def plant(folder: Path, files: dict[str, str]) -> Path:
    """Write the files; a path may have folders."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def detected(tmp_path: Path, files: dict[str, str]) -> Project:
    """Detect what a fresh folder with these files is."""
    folder = tmp_path / f"project-{next(_numbers)}"
    folder.mkdir()
    return detect(plant(folder, files))


def told(tmp_path: Path, files: dict[str, str]) -> str:
    """Return the project's line without its first word."""
    return detected(tmp_path, files).line.removeprefix("Project: ")


def commands_of(tmp_path: Path, files: dict[str, str]) -> dict[str, str]:
    """Return the commands of the project's own folder."""
    parts = detected(tmp_path, files).parts
    return {verb: " and ".join(each) for verb, each in parts[0].commands.items()} if parts else {}


NODE = '{"scripts": {"test": "vitest", "build": "vite build"}}'
DEEP = "[" * 100_000


@every_row(
    "name, text, line",
    [
        ("package.json", '{"scripts": {"test": "x"', ""),
        ("package.json", f'{{"a": {DEEP}', ""),
        ("package.json", '{"scripts": "test", "packageManager": 5}', ""),
        ("package.json", '["test"]', ""),
        ("package.json", "\0\0\0", ""),
        ("package.json", "", ""),
        ("composer.json", '{"scripts": ["test"]}', "PHP (composer)"),
        ("composer.json", DEEP, "PHP (composer)"),
        ("pyproject.toml", "[tool.", "Python (pip)"),
        ("Makefile", "x = test: y\ntest := 5\ntest ::= 5\n\ttest: z\n.test: q\n#test: w\n", ""),
        ("Makefile", ":" * 5000, ""),
        ("justfile", "  test:\ntest := 'x'\n", ""),
    ],
)
def test_what_is_broken_or_says_something_else_names_no_command(tmp_path, name, text, line):
    assert told(tmp_path, {name: text}) == line


def test_no_text_of_a_script_reaches_the_line(tmp_path: Path):
    evil = 'rm -rf ~ # "; test "evil'
    files = {
        "package.json": '{"name": "evil", "scripts": {"test": "evil", "evil": "evil"}}',
        "Makefile": "evil:\n\tevil\nlint: evil\n\tevil\n",
        "pyproject.toml": f"[project]\nname = '{evil}'\n[tool.evil]\n[tool.poe.tasks]\nevil = 'evil'\n",
        "evil sh; test/package.json": NODE,
        'x"; test "evil/package.json': NODE,
        "new\nline/package.json": NODE,
        "esc\x1b[2J/package.json": NODE,
        "\u202eevil/package.json": NODE,
        "e" * 41 + "/package.json": NODE,
    }
    line = told(tmp_path, files)
    assert line == 'Python (pip), JavaScript (npm): test "npm test", lint "make lint"'


def test_names_that_are_no_text_are_passed_over(tmp_path: Path):
    plant(tmp_path / "p", {"go.mod": "", "\udcff.mod": "", "\udcff\udcfe/go.mod": ""})
    assert detect(tmp_path / "p").line.startswith("Project: Go:")


def test_only_regular_files_of_the_project_count(tmp_path: Path):
    outside = plant(tmp_path / "outside", {"package.json": NODE, "Makefile": "test:\n"})
    inside = plant(tmp_path / "inside", {"etc/real.mk": "lint:\n", "Cargo.lock": ""})
    os.mkfifo(inside / "pyproject.toml")
    (inside / "go.mod").mkdir()
    (inside / "package.json").symlink_to(outside / "package.json")
    (inside / "composer.json").symlink_to("gone")
    (inside / "mix.exs").symlink_to("mix.exs")
    (inside / "frontend").symlink_to(outside)
    (inside / "Gemfile").symlink_to("/dev/zero")
    (inside / "Makefile").symlink_to("etc/real.mk")
    assert detect(inside).line == ""


@pytest.mark.integration
def test_little_of_much_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(looking, "MAX_NAMES", 20)
    files = {f"d{a}/e{b}/package.json": NODE for a in range(5) for b in range(8)}
    files["package.json"] = " " * looking.MAX_BYTES + NODE
    files["Makefile"] = "x" * (looking.MAX_BYTES - 10) + "\nlint:\ntest:\n"
    files["big/Makefile"] = "x\n" * looking.MAX_BYTES
    folder = plant(tmp_path / "much", files)
    opened: list[str] = []
    real = os.open

    def counted(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if not flags & os.O_DIRECTORY:
            opened.append(path)
        return real(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(looking.os, "open", counted)
    monkeypatch.setattr(looking, "MAX_FILES", 20)
    line = detect(folder).line
    assert len(opened) == 20
    assert 'Project: lint "make lint"; d0/e0/' in line
    assert len(line.encode()) <= MAX_LINE_BYTES


def test_nothing_is_known_of_a_folder_that_is_not_there_or_empty(tmp_path: Path):
    assert detect(tmp_path).line == ""
    assert detect(tmp_path / "gone") == Project(name="gone")


@pytest.mark.integration
@every_row("count", [1, 4, 12, 60, 300])
def test_the_line_has_an_end(count: int):
    kind = _Kind(name="TypeScript", tool="pnpm")
    commands = {"test": ("pnpm test",), "build": ("pnpm build",), "setup": ("pnpm install",)}
    parts = [Part(folder=f"größe{n}/", kinds=(kind,), commands=commands) for n in range(count)]
    line = Project(name="x", parts=tuple(parts)).line
    assert len(line.encode()) <= MAX_LINE_BYTES
    assert line.startswith("Project: größe0/: TypeScript (pnpm)")
    assert line.count('"pnpm test"') == (count if count < 5 else 1)
    assert line.endswith(" more") == (count > 6)


@every_row(
    "files, line",
    [
        (
            {
                "Makefile": "test: x\n\tpytest\ncheck:\n",
                "uv.lock": "",
                "pyproject.toml": "",
                "frontend/package.json": NODE,
                "frontend/pnpm-lock.yaml": "",
                "frontend/tsconfig.json": "",
            },
            'Python (uv): test "make test", lint "make check"; '
            'frontend/: TypeScript (pnpm): test "pnpm test", build "pnpm build"',
        ),
        (
            {"apps/web/package.json": NODE, "apps/api/go.mod": ""},
            'apps/api/: Go: test "go test ./...", build "go build ./..."; '
            'apps/web/: JavaScript (npm): test "npm test", build "npm run build"',
        ),
        (  # members of a workspace are its own
            {
                "package.json": '{"workspaces": ["packages/*"], "packageManager": "yarn@4.1.0"}',
                "packages/a/package.json": NODE,
                "server/pom.xml": "",
            },
            'JavaScript (yarn workspace); server/: Java (Maven): test "mvn test", build "mvn package"',
        ),
        (  # a package.json for tools alone reaches nothing below it
            {"package.json": "{}", "web/package.json": NODE, "web/yarn.lock": ""},
            'JavaScript (npm); web/: JavaScript (yarn): test "yarn test", build "yarn build"',
        ),
        (
            {"Cargo.toml": "[workspace]\n", "crates/a/Cargo.toml": "", "fuzz/Cargo.toml": ""},
            'Rust (cargo workspace): test "cargo test --workspace", build "cargo build --workspace"',
        ),
        (
            {"go.work": "", "a/go.mod": "", "b/go.mod": ""},
            'Go; a/: Go: test "go test ./...", build "go build ./..."; '
            'b/: Go: test "go test ./...", build "go build ./..."',
        ),
        (
            {"pyproject.toml": "[tool.uv.workspace]", "a/pyproject.toml": ""},
            "Python (uv workspace)",
        ),
        (  # examples, tests and what others made are not the project
            {
                "go.mod": "",
                "examples/x/package.json": NODE,
                "node_modules/x/package.json": NODE,
                "vendor/composer.json": "{}",
                ".hidden/package.json": NODE,
            },
            'Go: test "go test ./...", build "go build ./..."',
        ),
        ({"main.tf": "", "infra/x.tf": ""}, 'Terraform: lint "terraform validate"'),
        ({"lib/a.py": "", "b.md": ""}, ""),
        ({"LICENSE": "", "docs/Makefile": "test:\n"}, ""),
        ({"backend/requirements.txt": "flask"}, ""),
    ],
)
def test_projects_in_a_project(tmp_path: Path, files: dict[str, str], line: str):
    assert told(tmp_path, files) == line


def test_two_kinds_in_one_folder_each_have_their_commands(tmp_path: Path):
    files = {"pytest.ini": "", "setup.py": "", "package.json": NODE, ".pre-commit-config.yaml": ""}
    part = detected(tmp_path, files).parts[0]
    assert part.commands["test"] == ("pytest", "npm test")
    assert part.commands["lint"] == ("pre-commit run --all-files",)


@every_row(
    "files, line",
    [
        ({"Cargo.toml": "[lints.clippy]"}, 'Rust (cargo): test "cargo test", lint "cargo clippy", build "cargo build"'),
        ({"go.mod": "", ".golangci.yml": ""}, 'Go: test "go test ./...", lint "golangci-lint run", build "go build ./..."'),
        ({"build.gradle": "", "gradlew": "", "pom.xml": ""}, 'Java (Gradle): test "./gradlew test", build "./gradlew build"'),
        ({"pom.xml": "", "mvnw": ""}, 'Java (Maven): test "./mvnw test", build "./mvnw package"'),
        ({"A.sln": "", "b/B.csproj": ""}, 'C# (dotnet): test "dotnet test", build "dotnet build"'),
        ({"Gemfile": "", "Rakefile": "Rake::TestTask"}, 'Ruby (bundler): test "bundle exec rake test"'),
        ({"Gemfile": "", ".rspec": "", ".rubocop.yml": ""},
         'Ruby (bundler): test "bundle exec rspec", lint "bundle exec rubocop"'),
        ({"composer.json": '{"scripts": {"test": "x", "lint": ["y"], "setup": "z"}}'},
         'PHP (composer): test "composer test", lint "composer lint"'),
        ({"composer.json": "{}", "phpunit.xml.dist": "", "phpstan.neon": ""},
         'PHP (composer): test "vendor/bin/phpunit", lint "vendor/bin/phpstan analyse"'),
        ({"composer.json": "{}", "artisan": ""}, 'PHP (composer): test "php artisan test"'),
        ({"Package.swift": ""}, 'Swift: test "swift test", build "swift build"'),
        ({"mix.exs": "", ".credo.exs": ""}, 'Elixir (mix): test "mix test", lint "mix credo", build "mix compile"'),
        ({"pubspec.yaml": "sdk: flutter"}, 'Dart: test "flutter test"'),
        ({"pubspec.yaml": ""}, 'Dart: test "dart test"'),
        ({"CMakeLists.txt": "enable_testing()", "src/a.cpp": ""},
         'C/C++ (CMake): test "ctest --test-dir build", build "cmake -B build && cmake --build build"'),
        ({"CMakeLists.txt": "project(x)"}, 'C/C++ (CMake): build "cmake -B build && cmake --build build"'),
        ({"meson.build": ""}, 'C/C++ (Meson): build "meson setup build && meson compile -C build"'),
        ({"meson.build": "test('a')", "a.c": "", "lib/meson.build": ""},
         'C/C++ (Meson): test "meson test -C build", build "meson setup build && meson compile -C build"'),
        ({"configure.ac": "", "CMakeLists.txt": ""},
         'C/C++ (Autotools): build "autoreconf -fi && ./configure && make"'),
    ],
)  # fmt: skip
def test_a_kind_is_told_with_the_commands_of_its_tool(tmp_path, files, line):
    assert told(tmp_path, files) == line


@every_row(
    "files, commands",
    [
        ({"Makefile": ".PHONY: test\ntest lint: x\nbuild::\n"}, "make build|make lint|make test"),
        ({"Makefile": "check:\nbuild: x"}, "make build|make check"),
        ({"justfile": "@test a='b': x\n[no-cd]\nlint:\n# build:\n"}, "just lint|just test"),
        ({"Taskfile.yml": "tasks:\n # a\n  test:\n    cmds:\n      - build:\n  lint: x\n"}, "task lint|task test"),
        ({"Makefile": "lint:", ".pre-commit-config.yaml": ""}, "make lint"),
        ({"Makefile": "test:", "justfile": "test:\nlint:"}, "just lint|make test"),
    ],
)  # fmt: skip
def test_runners_come_first_whatever_the_language(tmp_path, files, commands):
    assert (
        "|".join(command for _, command in sorted(commands_of(tmp_path, files).items())) == commands
    )


PYTEST = "[tool.pytest.ini_options]\n"


@every_row(
    "files, label",
    [
        ({"uv.lock": "", "pyproject.toml": ""}, "uv"),
        ({"pyproject.toml": "[tool.uv]\ndev-dependencies = []"}, "uv"),
        ({"pyproject.toml": "[tool.poetry.dependencies]"}, "poetry"),
        ({"pyproject.toml": "", "pdm.lock": ""}, "pdm"),
        ({"Pipfile": ""}, "pipenv"),
        ({"requirements.txt": ""}, "pip"),
        ({"setup.cfg": ""}, "pip"),
    ],
)
def test_the_manager_of_the_packages(tmp_path: Path, files: dict[str, str], label: str):
    assert told(tmp_path, files).startswith(f"Python ({label})")


@pytest.mark.integration
@every_row(
    "files, commands",
    [
        ({"setup.py": ""}, {}),
        ({"pyproject.toml": "[project]"}, {}),
        ({"pyproject.toml": "", "test_a.py": ""}, {}),
        ({"Pipfile": "pytest"}, {"test": "pipenv run pytest"}),
        ({"pyproject.toml": f"{PYTEST}[tool.poetry]"}, {"test": "poetry run pytest"}),
        ({"setup.cfg": "[tool:pytest]\n[flake8]\n[mypy]"}, {"test": "pytest", "lint": "flake8", "types": "mypy"}),
        ({"pyproject.toml": "[dependency-groups]\na = ['pytest>9', 'ruff']"}, {"test": "pytest", "lint": "ruff check"}),
        ({"pyproject.toml": "[tool.uv]\n[tool.ruff.format]\n[tool.mypy]"}, {"lint": "uv run ruff check", "types": "uv run mypy"}),
        ({"pyproject.toml": "", "noxfile.py": ""}, {"test": "nox"}),
        ({"pyproject.toml": "", "tox.ini": "[testenv]"}, {"test": "tox"}),
        ({"manage.py": "", "uv.lock": ""}, {"test": "uv run python manage.py test"}),
        ({"pyproject.toml": "[tool.pyright]\n[tool.mypy]"}, {"types": "mypy"}),
        ({"pyproject.toml": "[tool.basedpyright]", "ruff.toml": ""}, {"types": "basedpyright", "lint": "ruff check"}),
        ({"setup.cfg": "", ".pre-commit-config.yaml": ""}, {"lint": "pre-commit run --all-files"}),
        ({"pyproject.toml": PYTEST, "justfile": "test *ARGS:\n"}, {"test": "just test"}),
    ],
)  # fmt: skip
def test_the_commands_that_the_settings_show(tmp_path, files, commands):
    assert commands_of(tmp_path, files) == commands


BARE = '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'


@every_row(
    "files, label",
    [
        ({}, "JavaScript (npm)"),
        ({"package-lock.json": ""}, "JavaScript (npm)"),
        ({"yarn.lock": ""}, "JavaScript (yarn)"),
        ({"bun.lock": "", "tsconfig.json": ""}, "TypeScript (bun)"),
        ({"pnpm-lock.yaml": "", "package-lock.json": ""}, "JavaScript (pnpm)"),
        ({"pnpm-workspace.yaml": ""}, "JavaScript (pnpm workspace)"),
        ({"package.json": '{"packageManager": "pnpm@9.1.0"}', "yarn.lock": ""}, "JavaScript (pnpm)"),
        ({"package.json": '{"packageManager": "evil@9"}', "yarn.lock": ""}, "JavaScript (yarn)"),
        ({"package.json": '{"devDependencies": {"typescript": "5"}}'}, "TypeScript (npm)"),
        ({"package.json": '\ufeff{"workspaces": {"packages": ["a"]}}'}, "JavaScript (npm workspace)"),
    ],
)  # fmt: skip
def test_the_language_and_the_manager(tmp_path: Path, files: dict[str, str], label: str):
    assert told(tmp_path, {"package.json": "{}"} | files) == label


@every_row(
    "lock, names, commands",
    [
        ("", "test lint build", "npm test|npm run lint|npm run build"),
        ("pnpm-lock.yaml", "spec format", "pnpm spec"),
        ("yarn.lock", "test type-check check", "yarn test|yarn check|yarn type-check"),
        ("bun.lock", "test unit", "bun run test"),
        ("", "start dev pretest", ""),
    ],
)
def test_scripts_are_named_as_their_manager_runs_them(tmp_path, lock, names, commands):
    scripts = json.dumps({"scripts": dict.fromkeys(names.split(), "x")})
    files = {"package.json": scripts} | ({lock: ""} if lock else {})
    assert "|".join(commands_of(tmp_path, files).values()) == commands


def test_what_npm_init_writes_is_no_test(tmp_path: Path):
    assert commands_of(tmp_path, {"package.json": BARE}) == {}
