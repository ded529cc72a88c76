"""Detection: hostile files first, then the line of the prompt and the projects in a project."""

import os
from pathlib import Path

import pytest

from context.kinds.trees import detected, plant, told
from rows import every_row
from ybs.context.detect import MAX_LINE_BYTES, Part, Project, detect
from ybs.context.kinds import folder as looking
from ybs.context.kinds.kind import Kind

NODE = '{"scripts": {"test": "vitest", "build": "vite build"}}'
DEEP = "[" * 100_000


@every_row(
    "name, text, line",
    [
        ("package.json", '{"scripts": {"test": "x"', ""),
        ("package.json", f'{{"a": {DEEP}', ""),
        ("package.json", '{"scripts": {"test": ["x"]}}', ""),
        ("package.json", '{"scripts": "test", "packageManager": 5}', ""),
        ("package.json", '["test"]', ""),
        ("package.json", "\0\0\0", ""),
        ("package.json", "", ""),
        ("composer.json", '{"scripts": ["test"]}', "PHP (composer)"),
        ("composer.json", DEEP, "PHP (composer)"),
        ("pyproject.toml", 'a = """\n[tool.pytest]\n', "Python (pip)"),
        ("pyproject.toml", 'a = """\n[tool.pytest]\n"""\n[tool.uv]', "Python (uv)"),
        ("pyproject.toml", "[tool.pytest", "Python (pip)"),
        ("pyproject.toml", "[tool.pytest] x", "Python (pip)"),
        ("Makefile", "x = test: y\ntest := 5\ntest ::= 5\n\ttest: z\n.test: q\n#test: w\n", ""),
        ("Makefile", ":" * 5000, ""),
        ("Taskfile.yml", "tasks\n  test:\n", ""),
        ("justfile", "  test:\ntest := 'x'\n", ""),
    ],
)
def test_what_is_broken_or_says_something_else_names_no_command(
    tmp_path: Path, name: str, text: str, line: str
):
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
    assert detect(inside).line == 'Project: lint "make lint"'


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
    kind = Kind(name="TypeScript", tool="pnpm")
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
            'Go (workspace); a/: Go: test "go test ./...", build "go build ./..."; '
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
        ({"a.sh": "", "b.sh": "", "x.py": "", "config.yml": ""}, "Bash"),
        (
            {"package.json": NODE, "nvm.sh": "", "b.bash": ""},
            'Bash: test "npm test", build "npm run build"',
        ),
        ({"lib/a.py": "", "b.md": ""}, ""),
        ({"lib/a.py": "", ".git/HEAD": ""}, "Python"),
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
