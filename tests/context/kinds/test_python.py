"""Python: who manages the packages, and which tests, checks and formats are set up."""

from pathlib import Path

import pytest

from context.kinds.trees import commands_of, told
from rows import every_row

PYTEST = "[tool.pytest.ini_options]\n"


@every_row(
    "files, label",
    [
        ({"uv.lock": "", "pyproject.toml": ""}, "uv"),
        ({"pyproject.toml": "[tool.uv]\ndev-dependencies = []"}, "uv"),
        ({"pyproject.toml": "[tool.poetry.dependencies]"}, "poetry"),
        ({"pyproject.toml": "", "pdm.lock": ""}, "pdm"),
        ({"Pipfile": ""}, "pipenv"),
        ({"pyproject.toml": "[tool.hatch.envs.default]"}, "hatch"),
        ({"pyproject.toml": "[tool.hatch.version]"}, "pip"),
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
        ({"setup.py": ""}, {"setup": "pip install -e ."}),
        ({"pyproject.toml": "[project]"}, {}),
        (
            {"requirements-dev.txt": "", "requirements.txt": ""},
            {"setup": "pip install -r requirements-dev.txt"},
        ),
        ({"Pipfile": "pytest", "test_a.py": ""}, {"setup": "pipenv install --dev", "test": "pipenv run pytest"}),
        ({"pyproject.toml": f"{PYTEST}[tool.poetry]"}, {"setup": "poetry install", "test": "poetry run pytest"}),
        ({"pyproject.toml": "[tool.pytest]"}, {"test": "pytest"}),
        ({"setup.cfg": "[tool:pytest]\n[flake8]\n[mypy]"}, {"test": "pytest", "lint": "flake8", "types": "mypy"}),
        ({"requirements.txt": "", "tests/conftest.py": ""}, {"setup": "pip install -r requirements.txt", "test": "pytest"}),
        ({"pyproject.toml": "[dependency-groups]\na = ['pytest>9', 'ruff']", "src/test_a.py": ""},
         {"test": "pytest", "lint": "ruff check"}),
        ({"pyproject.toml": "[tool.poetry.dev-dependencies]\nmypy = '1'\nruff = '1'\n[tool.mypy]"},
         {"setup": "poetry install", "lint": "poetry run ruff check", "types": "poetry run mypy"}),
        ({"pyproject.toml": "[tool.uv]\n[tool.ruff.format]\n[tool.mypy]", ".pre-commit-config.yaml": "id: ruff"},
         {"setup": "uv sync", "lint": "pre-commit run --all-files", "types": "mypy"}),
        ({"pyproject.toml": "[tool.mypy]", "tox.ini": "[testenv:mypy]"}, {"types": "tox -e mypy"}),
        ({"pyproject.toml": "[project]\nx = 'pytest'"}, {}),
        ({"pyproject.toml": "", "test_a.py": ""}, {}),
        ({"pyproject.toml": "", "noxfile.py": "def tests(session):\ndef lint(session):\n"}, {"test": "nox -s tests", "lint": "nox -s lint"}),
        ({"pyproject.toml": "", "tox.ini": "[testenv]\n[testenv:lint]\n"}, {"test": "tox", "lint": "tox -e lint"}),
        ({"pyproject.toml": "[tool.tox.env.style]\n"}, {"test": "tox", "lint": "tox -e style"}),
        ({"pyproject.toml": PYTEST, "tox.ini": "[testenv:typing]"}, {"test": "pytest", "types": "tox -e typing"}),
        ({"manage.py": "", "uv.lock": ""}, {"setup": "uv sync", "test": "uv run python manage.py test"}),
        ({"setup.cfg": "", "runtests.py": ""}, {"test": "python runtests.py"}),
        ({"pyproject.toml": "[tool.poe.tasks]\ntest = 'x'\nlint.cmd = 'y'"}, {"test": "poe test"}),
        ({"pyproject.toml": "[tool.poe.tasks.lint]\ncmd = 'y'\n[tool.uv]"}, {"setup": "uv sync", "lint": "uv run poe lint"}),
        ({"pyproject.toml": "[tool.pdm.scripts]\ntest = 'x'"}, {"setup": "pdm install", "test": "pdm run test"}),
        ({"pyproject.toml": "[tool.hatch.envs.default.scripts]\ntest = 'x'"}, {"test": "hatch run test"}),
        ({"pyproject.toml": "[tool.ruff.format]"}, {"lint": "ruff check", "format": "ruff format"}),
        ({"pyproject.toml": "[tool.black]", "ruff.toml": ""}, {"lint": "ruff check", "format": "black ."}),
        ({"pyproject.toml": "[tool.pyright]\n[tool.mypy]"}, {"types": "mypy"}),
        ({"pyproject.toml": "[tool.basedpyright]"}, {"types": "basedpyright"}),
        ({"setup.cfg": "", "pyrightconfig.json": ""}, {"types": "pyright"}),
        ({"pyproject.toml": "[tool.pytest] # here\n['tool.ruff'] x"}, {"test": "pytest"}),
        ({"setup.cfg": "", ".pre-commit-config.yaml": ""}, {"lint": "pre-commit run --all-files"}),
        ({"pyproject.toml": PYTEST, "justfile": "test *ARGS:\n"}, {"test": "just test"}),
    ],
)  # fmt: skip
def test_the_commands_that_the_settings_show(
    tmp_path: Path, files: dict[str, str], commands: dict[str, str]
):
    assert commands_of(tmp_path, files) == commands
