"""The programs of examples/embedding: each one runs without a provider and prints what it promises."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "embedding"
PRINTED = {
    "commands": """\
Mode: plan (looks at anything, with commands too; changes nothing)
GOOD MORNING
Hello.
""",
    "confirm": """\
Create notes.txt (+1 -0)
Delete notes.txt
I may not delete it. Refused: 1
notes.txt says: milk

""",
    "guards": """\
the model read: This is your last step.
the turn ended: Three steps have to do.
""",
    "hooks": """\
the turn begins
write_file is about to write hello.txt
write_file is done
the turn is over
Written.
""",
    "hosts": """\
ann: 2 sessions, knows of tea
bob: 2 sessions, knows of coffee
""",
    "model": """\
You said: Hello.
in-process echo 32768
""",
    "toolboxes": """\
I am inside.
closed
offered: unlock enter enter
""",
    "tools": """\
the tool said: Sun in Bonn.
the model said: Leave the umbrella at home.
""",
}


def test_every_program_is_tested_and_short() -> None:
    programs = sorted(FOLDER.glob("*.py"))
    assert [program.stem for program in programs] == sorted(PRINTED)
    lengths = {program.name: len(program.read_text().splitlines()) for program in programs}
    assert {name: length for name, length in lengths.items() if length >= 40} == {}


@pytest.mark.integration
@pytest.mark.parametrize("name", PRINTED)
def test_a_program_prints_what_it_shows(name: str, project: Path) -> None:
    command = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py")]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert (done.stderr, done.stdout, done.returncode) == ("", PRINTED[name], 0)
