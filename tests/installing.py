"""An environment of its own for ybs, in which packages are installed beside it."""

import os
import subprocess
import sysconfig
import tomllib
from pathlib import Path
from shutil import copy
from typing import Any
from venv import EnvBuilder

import ybs

PLUGIN = Path(__file__).parents[1] / "examples" / "plugin"


def install(project: Path, site: Path) -> None:
    """Install the one module of a project in a folder."""
    read = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    copy(project / f"{read['name'].replace('-', '_')}.py", site)
    declare(site, read["name"], read["entry-points"])


def declare(site: Path, name: str, groups: dict[str, dict[str, str]]) -> None:
    """Write down what a package offers."""
    folder = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
    folder.mkdir()
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()), "")
    ]
    (folder / "METADATA").write_text(f"Metadata-Version: 2.3\nName: {name}\nVersion: 0.1.0\n")
    (folder / "entry_points.txt").write_text("\n".join(lines))


class Environment:
    """A virtual environment that sees the packages of this one, ybs among them."""

    def __init__(self, folder: Path) -> None:
        EnvBuilder(symlinks=True).create(folder)
        self.command = (str(folder / "bin" / "python"), "-m", "ybs")
        (self.site,) = folder.glob("lib/python*/site-packages")
        seen = (Path(ybs.__file__).parents[1], sysconfig.get_path("purelib"))
        (self.site / "seen.pth").write_text("".join(f"{each}\n" for each in seen))

    def install(self, project: Path) -> None:
        """Install the one module of a project, as an installer would, without a network."""
        install(project, self.site)

    def declare(
        self, name: str, groups: dict[str, dict[str, str]], site: Path | None = None
    ) -> None:
        """Write down what a package offers, in this environment or in another folder."""
        declare(site or self.site, name, groups)

    def runs(self, *words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        """Run ybs in it."""
        return subprocess.run(
            [*self.command, *words], capture_output=True, text=True, env={**os.environ}, **options
        )
