"""docs/testing.md: every Python example on the page runs, and every name on it exists."""

import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import scripted
import ybs.testing
from rows import every_row
from scripted import read_script

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def functions_of(example: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(example, "docs/testing.md", "exec"), names)
    return {name: value for name, value in names.items() if name.startswith("test_")}


@pytest.mark.integration
@every_row("number", range(len(EXAMPLES)))
@pytest.mark.usefixtures("project")
def test_the_example_runs(number: int):
    found = functions_of(EXAMPLES[number])
    assert found
    for test in found.values():
        if inspect.iscoroutinefunction(test):
            asyncio.run(test())
        else:
            test()


def test_every_public_name_is_on_the_page_or_is_a_type_of_what_is():
    types = {
        "Entry",
        "PickingModel",
        "RecordedRequest",
        "ScriptedAnswer",
        "ScriptedServer",
        "read_script",
    }
    names = [*ybs.testing.__all__, *scripted.__all__]
    missing = [n for n in names if not re.search(rf"\b{n}\b", PAGE)]
    assert set(missing) <= types


def test_the_script_by_hand_is_a_script():
    (script,) = re.findall(r"echo '(.*?)' > script.json", PAGE)
    assert len(read_script(script.encode())) == 2
    inline = re.findall(r"`(\{\"type\".*?\})`", PAGE, re.DOTALL)
    assert len(read_script(f"[{','.join(inline)}]".encode())) == 2


def test_the_entries_in_the_table_say_what_they_are_called_in_json():
    kinds = ("HttpError", "StreamingRefused", "Whole", "Interrupted", "Recut", "Joined", "Frames")
    for kind in kinds:
        tag = getattr(scripted, kind).__struct_config__.tag
        assert tag == re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()
