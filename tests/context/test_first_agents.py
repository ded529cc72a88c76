"""The first AGENTS.md: what was seen and nothing else."""

from pathlib import Path

from context.kinds.trees import plant
from rows import every_row
from ybs.context.conventions import conventions
from ybs.context.detect import Part, Project, detect
from ybs.context.first_agents import first_agents_file
from ybs.context.kinds.kind import VERBS, Kind

WHOLE = """\
# shop

Python (uv); TypeScript (pnpm) in `web/`.

## Commands

- setup: `uv sync`
- test: `make test`
- in `web/`: setup `pnpm install`, test `pnpm test`

## Layout

- at the top: 2 Python files
- `lib/shop/cart/`: 4 Python files
- `lib/shop/tax/`: 1 Python file
- `tests/`: 9 Python files
- `web/`: 1 TypeScript file
- Used and changed most: `lib/shop/tax/b.py`, `lib/shop/cart/1.py`, `b.py`

## Conventions

- Python >=3.11 (pyproject.toml).
- Lines have at most 90 columns (pyproject.toml).

## Rules
"""


def test_a_project_is_written_down(tmp_path: Path):
    folder = plant(
        tmp_path / "shop",
        {
            "uv.lock": "",
            "Makefile": "test:\n",
            "pyproject.toml": '[project]\nrequires-python = ">=3.11"\n[tool.black]\nline-length = 90',
            "web/package.json": '{"scripts": {"test": "x"}}',
            "web/pnpm-lock.yaml": "",
            "web/a.ts": "",
        },
    )
    files = ["a.py", "b.py", "lib/shop/tax/b.py", "web/a.ts", "lib/shop/cart/notes.txt"]
    files += [f"lib/shop/cart/{n}.py" for n in range(3)] + [f"tests/{n}.py" for n in range(9)]
    files.append("lib/shop/cart/test_a.py")
    map_text = """\
gone.py: X
lib/shop/tax/b.py: Tax
  class Tax

lib/shop/cart/: test_a.py 1.py
./: b.py
tests/0.py: x
"""
    style = conventions(folder)
    project = detect(folder)
    text = first_agents_file(project, map_text, project.name, files=files, conventions=style)
    assert [each for each in text.splitlines() if "black" in each] == ["- format: `black .`"]
    assert text.replace("- format: `black .`\n", "") == WHOLE


def test_nothing_is_made_up_where_nothing_is_known():
    empty = first_agents_file(Project(name="x"), "", "x")
    assert empty == "# x\n\n## Rules\n"
    odd = "a`b\n# Rules\nevil"
    files = [odd, f"{odd}/a.py", "x\x1b[2J.py", "y" * 100 + ".py"]
    text = first_agents_file(Project(name=odd), f"{odd}.py: evil", odd, files=files)
    assert text == "# This project\n\n## Rules\n"


def test_a_folder_with_much_of_the_projects_own_sources_is_told_by_those_in_it():
    few = [f"lib/{name}/{n}.go" for name in ("a", "b") for n in range(3)]
    others = [f"cmd{n}/{each}.go" for n in range(4) for each in "xyz"]
    for files, is_opened in (([*few, "main.go"], True), ([*few, *others], False)):
        text = first_agents_file(
            Project(name="x"), "", "x", files=[*files, *(f"tests/{n}.go" for n in range(50))]
        )
        assert ("`lib/a/`: 3 Go files" in text) == is_opened
        assert ("`lib/`: 6 Go files" in text) != is_opened
        assert "`tests/`: 50 Go files" in text


def test_headers_and_languages_without_a_grammar_are_sources_too():
    files = ["include/a.h", "include/b.hpp", "src/a.cpp", "src/b.tcl", "src/c.tcl"]
    map_text = "src/a.cpp: x\ninclude/a.h: A"
    text = first_agents_file(Project(name="x"), map_text, "x", files=files)
    assert "- `include/`: 2 C/C++ header files\n- `src/`: 2 Tcl files\n" in text
    assert "most: `src/a.cpp`, `include/a.h`" in text


def test_a_map_in_the_order_of_names_names_no_central_files():
    files = ["a/a.py", "a/b.py"]
    for order in (files, files[:1]):
        text = first_agents_file(Project(name="x"), "\n".join(order), "x", files=files)
        assert "most: " not in text
    assert "most: " in first_agents_file(Project(name="x"), "a/b.py\na/a.py: X", "x", files=files)


def test_it_stays_under_sixty_lines():
    commands: dict[str, tuple[str, ...]] = dict.fromkeys(VERBS, ("one", "two"))
    kinds = (Kind(name="Python", tool="pip"),)
    folders = ["", *(f"f{n}/" for n in range(30))]
    parts = [Part(folder=each, kinds=kinds, commands=commands) for each in folders]
    files = [f"{a}/{b}/x.py" for a in "abcdefghijklmnopq" for b in "xy"] + ["a.py", "b.py"]
    project = Project(name="x", parts=tuple(parts))
    map_text = "\n".join(f"{each}: X" for each in reversed(files))
    text = first_agents_file(project, map_text, "x", files=files, conventions=["Y."] * 50)
    assert 40 < len(text.splitlines()) < 60
    assert max(map(len, text.splitlines())) < 250


@every_row(
    "name, text, words",
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = 79 # so", ["Lines have at most 79 columns (pyproject.toml)."]),
        ("pyproject.toml", "line-length = 79", []),
        ("pyproject.toml", "[tool.ruff]\nline-length = 'evil'", []),
        ("pyproject.toml", "[tool.ruff]\nline-length = 12345", []),
        ("pyproject.toml", "[project]\nrequires-python = 'evil 3'", []),
        ("pyproject.toml", '[tool.pyright]\ntypeCheckingMode = "strict"', ["Types are checked strictly (pyright)."]),
        (".flake8", "[flake8]\nmax-line-length=100", ["Lines have at most 100 columns (.flake8)."]),
        ("rustfmt.toml", "max_width = 98", ["Lines have at most 98 columns (rustfmt.toml)."]),
        (".editorconfig", "[*]\nindent_style = tab\n[*.py]\nindent_style = space", ["Tabs indent (.editorconfig)."]),
        (".editorconfig", "[*]\nindent_style = space\nindent_size = 2", ["2 spaces indent (.editorconfig)."]),
        (".editorconfig", "[*]\nindent_style = space\nindent_size = evil", []),
        ("tsconfig.json", '{"strict": true}', ["TypeScript is strict (tsconfig.json)."]),
        (".prettierrc", "", ["`prettier` formats."]),
    ],
)  # fmt: skip
def test_conventions_are_those_of_the_settings(
    tmp_path: Path, name: str, text: str, words: list[str]
):
    for old in tmp_path.iterdir():
        old.unlink()
    assert conventions(plant(tmp_path, {name: text})) == words
