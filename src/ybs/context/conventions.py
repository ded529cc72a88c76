"""What a project's settings say of its style: only what stands there, in short sentences."""

from pathlib import Path

from ybs.context.kinds.folder import Budget, Folder, real_path
from ybs.context.kinds.glance import glance, value_of

_MOST_VALUE_CHARS = 20
_VALUE = frozenset("0123456789.,<>=~^!* ")
#: A number in a table of a file, and what it says.
_LENGTHS = (
    ("pyproject.toml", "tool.ruff", "line-length"),
    ("pyproject.toml", "tool.black", "line-length"),
    ("ruff.toml", "", "line-length"),
    (".ruff.toml", "", "line-length"),
    ("setup.cfg", "flake8", "max-line-length"),
    ("tox.ini", "flake8", "max-line-length"),
    (".flake8", "flake8", "max-line-length"),
    ("rustfmt.toml", "", "max_width"),
    (".rustfmt.toml", "", "max_width"),
    (".editorconfig", "*", "max_line_length"),
)
#: Words in a file that say something as they stand.
_STRICT = (
    ("pyproject.toml", 'typeCheckingMode = "strict"', "Types are checked strictly (pyright)."),
    ("pyproject.toml", "\nstrict = true", "Types are checked strictly (mypy)."),
    ("mypy.ini", "\nstrict = ", "Types are checked strictly (mypy)."),
    ("tsconfig.json", '"strict": true', "TypeScript is strict (tsconfig.json)."),
)
_FORMATTERS = (
    (".clang-format", "C and C++ are formatted by `clang-format`."),
    (".prettierrc", "`prettier` formats."),
    (".prettierrc.json", "`prettier` formats."),
    (".prettierrc.yaml", "`prettier` formats."),
    ("prettier.config.js", "`prettier` formats."),
    ("prettier.config.mjs", "`prettier` formats."),
    (".pre-commit-config.yaml", "`pre-commit` hooks check each commit."),
)


def conventions(folder: Path) -> list[str]:
    """Return what the settings in the project's own folder say."""
    top = real_path(str(folder)) or str(folder)
    root = Folder(top, "", Budget(top))
    found = [*_python(root), *_lengths(root), *_indents(root)]
    found += [words for name, sign, words in _STRICT if sign in root.text(name)]
    found += [words for name, words in _FORMATTERS if name in root.files]
    return list(dict.fromkeys(found))


def _python(root: Folder) -> list[str]:
    project = glance(root.text("pyproject.toml")).get("project", [])
    version = _plain(value_of(project, "requires-python"))
    return [f"Python {version} (pyproject.toml)."] if version else []


def _lengths(root: Folder) -> list[str]:
    for name, table, key in _LENGTHS:
        value = value_of(glance(root.text(name)).get(table, []), key)
        if value.isascii() and value.isdigit() and len(value) < 4:
            return [f"Lines have at most {value} columns ({name})."]
    return []


def _indents(root: Folder) -> list[str]:
    every = glance(root.text(".editorconfig")).get("*", [])
    match value_of(every, "indent_style"), value_of(every, "indent_size"):
        case ("tab", _):
            return ["Tabs indent (.editorconfig)."]
        case ("space", ("2" | "3" | "4" | "8") as size):
            return [f"{size} spaces indent (.editorconfig)."]
        case _:
            return []


def _plain(value: str) -> str:
    """Return a version such as `>=3.11`; "" for anything else that stands there."""
    return value if len(value) <= _MOST_VALUE_CHARS and _VALUE.issuperset(value) else ""
