"""A short conversation that shows a model how to work: it stands before the person's words and is the same in every session.

Its files and programs have names that no project has, and none of its wordings may be one of the task bench.
"""

from typing import Final

import msgspec

from ybs.core.messages import AssistantMessage, Message, Text, UserMessage

#: The tools in it; where one of them is not on offer, nothing is shown.
NAMES: Final = frozenset(
    {"read_file", "edit_file", "delete_file", "list_files", "search_files", "run_shell"}
)


def _said(text: str) -> UserMessage:
    return UserMessage.of(text, origin="context")


def _answered(text: str) -> AssistantMessage:
    return AssistantMessage(content=(Text(text=text),))


def _called(name: str, **arguments: str) -> AssistantMessage:
    call = msgspec.json.encode({"name": name, "arguments": arguments}).decode()
    return _answered(f"```json\n{call}\n```")


def _result(name: str, text: str) -> UserMessage:
    return _said(f"Result of {name}:\n{text}")


EXAMPLES: Final[tuple[Message, ...]] = (
    _said("Which colour is the door of the house?"),
    _called("search_files", pattern="door"),
    _result("search_files", "plans/house.txt:2:door: green"),
    _answered("It is green, says plans/house.txt."),
    _said("plans/house.txt: the roof shall be black."),
    _called("read_file", path="plans/house.txt"),
    _result("read_file", "1\troof: red\n2\tdoor: green"),
    _called("edit_file", path="plans/house.txt", old_text="roof: red", new_text="roof: black"),
    _result("edit_file", "Edited plans/house.txt: 1 replacement."),
    _answered("The roof is black now."),
    _said("A window is to come in too, below the others."),
    _called(
        "edit_file",
        path="plans/house.txt",
        old_text="door: green",
        new_text="door: green\nwindow: round",
    ),
    _result("edit_file", "Edited plans/house.txt: 1 replacement."),
    _answered("A round window stands below the door."),
    _said("teapot-check reports a mistake in kettle.py."),
    _called("read_file", path="kettle.py"),
    _result("read_file", "1\tdef boils(degrees):\n2\t    return degrees >= 90"),
    _called("edit_file", path="kettle.py", old_text="degrees >= 90", new_text="degrees >= 100"),
    _result("edit_file", "Edited kettle.py: 1 replacement."),
    _called("run_shell", command="teapot-check kettle.py"),
    _result("run_shell", "fine\n[exit code 0]"),
    _answered("Water boils at 100 degrees; kettle.py had 90. teapot-check is content."),
    _said("plans/barn.txt can go."),
    _called("delete_file", path="plans/barn.txt"),
    _result("delete_file", "Deleted plans/barn.txt."),
    _answered("plans/barn.txt is deleted."),
    _said("And what about plans/shed.txt?"),
    _called("list_files", pattern="**/shed.txt"),
    _result("list_files", "No files match."),
    _answered("There is no file shed.txt."),
    _said("Thank you. Now to another project, with other files."),
    _answered("I start afresh and look before I act."),
)
