"""Images from the clipboard: a program of this machine reads them, into a file for the person's eyes only."""

import stat
from pathlib import Path

import pytest

from ybs.frontends.terminal.clipboard import NoImage, readers, save_image

PNG = "printf '\\211PNG\\r\\n\\032\\nrest'"


@pytest.fixture(autouse=True)
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("ybs.security.launcher.SYSTEM_FOLDERS", ())


def own(folder: Path, **scripts: str) -> dict[str, str]:
    """Return an environment with these programs."""
    programs = folder / "own"
    programs.mkdir(mode=0o755)
    for name, script in scripts.items():
        file = programs / name.replace("_", "-")
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
    return {"PATH": f"{programs}:/usr/bin:/bin", "WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}


@pytest.mark.integration
async def test_the_first_program_with_an_image_is_taken(tmp_path: Path, project: Path) -> None:
    environ = own(tmp_path, wl_paste="exit 1", xclip=PNG)
    path = await save_image(environ)
    assert path.read_bytes() == b"\x89PNG\r\n\x1a\nrest"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_what_is_missing_is_said(tmp_path: Path, project: Path) -> None:
    with pytest.raises(NoImage, match="type or drop the path"):
        await save_image({"PATH": "/usr/bin"})
    with pytest.raises(NoImage, match="install wl-paste or xclip"):
        await save_image(own(tmp_path) | {"PATH": str(tmp_path)})


@pytest.mark.integration
async def test_a_clipboard_with_text_alone_has_no_image(tmp_path: Path, project: Path) -> None:
    with pytest.raises(NoImage, match="holds no image"):
        await save_image(own(tmp_path, wl_paste="echo words"))


def test_over_a_connection_the_clipboard_of_that_machine_is_not_the_persons() -> None:
    assert readers({"SSH_TTY": "x", "DISPLAY": ":0"}) == []
