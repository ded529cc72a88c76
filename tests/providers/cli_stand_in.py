"""Programs that stand in for CLI agents: they note what they were given and print what a test scripted."""

import json
import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from ybs.config.host import Host
from ybs.config.schema import Config, LlmSettings
from ybs.config.sections import CliAgent, CliOutput
from ybs.core.events import Event
from ybs.core.messages import UserMessage
from ybs.core.ports import Request
from ybs.providers.cli import CLAUDE
from ybs.providers.cli.model import CliModel

#: Notes what it got, then prints its script: bytes as they are, and what is to happen between them.
STAND_IN = """
import json, os, subprocess, sys, time
here = os.path.dirname(os.path.abspath(__file__))
noted = {
    "argv": sys.argv[1:],
    "cwd": os.getcwd(),
    "listing": os.listdir(),
    "env": dict(os.environ),
    "stdin": sys.stdin.buffer.read().decode("utf-8", "replace"),
}
if "--system-prompt-file" in sys.argv:
    # As npm's launchers start the program itself: it inherits no descriptor.
    file = sys.argv[sys.argv.index("--system-prompt-file") + 1]
    noted["system"] = subprocess.check_output(["/bin/cat", file]).decode()
    noted["mode"] = os.stat(file).st_mode & 0o777
runs = os.path.join(here, "runs")
number = len(os.listdir(runs))
script = json.load(open(os.path.join(here, "script.json")))
script = script[min(number, len(script) - 1)]
with open(os.path.join(runs, f"{number}.tmp"), "w") as file:
    json.dump(noted, file)
os.rename(os.path.join(runs, f"{number}.tmp"), os.path.join(runs, f"{number:02}.json"))
for step in script:
    if isinstance(step, str):
        sys.stdout.buffer.write(step.encode("latin-1"))
        sys.stdout.flush()
    elif "stderr" in step:
        sys.stderr.write(step["stderr"])
    elif "huge" in step:
        for _ in range(step["huge"]):
            sys.stdout.write("x" * 1_000_000)
        sys.stdout.flush()
    elif "child" in step or "stray" in step:
        waits = [sys.executable, "-c", "import time; time.sleep(1000)"]
        child = subprocess.Popen(waits, start_new_session="stray" in step)
        with open(os.path.join(here, "child"), "w") as file:
            file.write(str(child.pid))
    elif "sleep" in step:
        time.sleep(step["sleep"])
    elif "exit" in step:
        sys.stdout.flush()
        os._exit(step["exit"])
"""
#: Whether the machine has a place in memory for what an incognito session may not keep on a disk.
HAS_MEMORY = os.path.ismount("/dev/shm")
#: A step: text that is printed, or what else happens.
Step: TypeAlias = str | dict[str, Any]
ASK = Request("Be brief.", [UserMessage.of("hi")])


class StandIn:
    """A program, the runs that it noted, and a model behind it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "runs").mkdir()
        self.program = folder / "agent"
        self.program.write_text(f"#!{sys.executable} -IS\n{STAND_IN}")
        self.program.chmod(0o755)
        self.models: list[CliModel] = []

    def plays(self, *runs: list[Step]) -> None:
        """Script the runs, the last one for all that follow."""
        (self.folder / "script.json").write_text(json.dumps(runs))

    def model(
        self, output: CliOutput = "claude", *, config: Config | None = None, model: str = "m"
    ) -> CliModel:
        command = (str(self.program), *CLAUDE.command[1:]) if output == "claude" else (
            str(self.program),
            "--model",
            "{model}",
        )  # fmt: skip
        agent = CliAgent(command=command, output=output, environment=("ANTHROPIC_*",))
        host = Host.of({"HOME": str(self.folder), "PATH": os.environ["PATH"], **SEEN, **HIDDEN})
        made = CliModel(
            host, config or Config(llm=LlmSettings(timeout_seconds=8)), "own", agent, model, ""
        )
        self.models.append(made)
        return made

    @property
    def runs(self) -> list[dict[str, Any]]:
        """What each run got."""
        return [
            msgspec.json.decode(path.read_bytes())
            for path in sorted((self.folder / "runs").glob("*.json"))
        ]


SEEN = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "LC_ALL": "C"}
HIDDEN = {"OPENAI_API_KEY": "sk-" + "a" * 12, "CLAUDECODE": "1", "SOME_TOKEN": "t" * 12}


async def collect(model: CliModel, request: Request = ASK) -> list[Event]:
    async with aclosing(model.stream(request)) as events:
        return [event async for event in events]
