"""What a first request costs: its size is paid by every user, with every request of a session."""

import json
import subprocess
from pathlib import Path

import pytest

#: Bytes of a first request with the default tools and no document of the project.
MOST_BYTES = 5_700
#: The folder of a test is longer than most people's.
FOLDER = "/home/someone/projects/example"


def git(project: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    subprocess.run(["git", "-C", str(project), *who, *words], check=True)


@pytest.mark.integration
async def test_a_first_request_has_at_most_5700_bytes(project, playing):
    for name in ("src", "tests"):
        (project / name).mkdir()
    (project / "src" / "app.py").write_text("VALUE = 1\n")
    (project / "README.md").write_text("# Example\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "Begin with an example")
    async with playing(["Done."]) as (session, _, server):
        await session.send("Change VALUE from 1 to 2 in src/app.py, then run the checks.")
    body = json.dumps(server.requests[0].body, ensure_ascii=False, separators=(",", ":"))
    assert str(project) in body
    size = len(body.replace(str(project), FOLDER).encode())
    assert size <= MOST_BYTES, (
        f"{size} bytes: what a new tool or sentence takes has to be saved elsewhere"
    )
