"""The clients of examples/serve, as programs of their own beside a real server."""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from served import EXAMPLES, Serving, served, short_home
from ybs.testing import call

pytestmark = pytest.mark.integration
CLIENTS = {"client.py": sys.executable, "client.mjs": shutil.which("node")}


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_client_asks_and_says_no_to_a_question(name: str, project: Path):
    program = CLIENTS[name]
    if program is None:
        pytest.skip("NOT TESTED: node is not installed")
    (project / "a").write_text("text")
    deleting = call("delete_file", path="a")
    with short_home() as home:
        async with served(home, project, deleting, "it stays") as serving:
            printed = await _printed(serving, program, str(EXAMPLES / name), "delete it")
    assert printed.endswith("it stays\n[done]\n"), printed
    assert ("Delete a [y/N]" in printed) is (name == "client.py")
    assert (project / "a").exists()


async def _printed(serving: Serving, *words: str) -> str:
    model = {"YBS_PROVIDER": "openai", "YBS_MODEL": "m", "YBS_ENDPOINT": serving.model.url}
    process = await asyncio.create_subprocess_exec(
        *words,
        env={**serving.environ, **model, "YBS_SOCKET": str(serving.socket)},
        cwd=serving.project,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await asyncio.wait_for(process.communicate(b"n\n"), 30)
    return printed.decode()


def test_the_clients_are_short():
    lines = {name: len((EXAMPLES / name).read_text().splitlines()) for name in CLIENTS}
    assert lines["client.py"] <= 100
    assert lines["client.mjs"] <= 40
