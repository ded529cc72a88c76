"""A short conversation that shows a model how to work: it stands before the person's words and is the same in every session.

Its files and programs have names that no project has, and none of its wordings may be one of the task bench.
"""

from typing import Final

import msgspec

from ybs.core.messages import AssistantMessage, Message, Text, UserMessage

#: The tools in it; where one of them is not on offer, nothing is shown.
NAMES: Final = frozenset({"read_file", "write_file", "edit_file", "delete_file", "run_shell"})


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
    _said("Whose house is it, according to plans/house.txt?"),
    _called("read_file", path="plans/house.txt"),
    _result("read_file", "1\troof: red\n2\tdoor: green"),
    _answered("plans/house.txt does not say whose it is. It only names the roof and the door."),
    _said("plans/house.txt: the roof shall be black."),
    _called("edit_file", path="plans/house.txt", old_text="roof: red", new_text="roof: black"),
    _result("edit_file", "Edited plans/house.txt: 1 replacement."),
    _answered("The roof is black now."),
    _said("A round window is to come in too, below the others."),
    _called(
        "edit_file",
        path="plans/house.txt",
        old_text="door: green",
        new_text="door: green\nwindow: round",
    ),
    _result("edit_file", "Edited plans/house.txt: 1 replacement."),
    _answered("A round window stands below the door."),
    _said("plans/pond.txt is still to come; frogs is all that it says."),
    _called("write_file", path="plans/pond.txt", content="frogs\n"),
    _result("write_file", "Created plans/pond.txt: 6 bytes written."),
    _answered("plans/pond.txt is there now."),
    _said("teapot-check reports a mistake in kettle.py."),
    _called("read_file", path="kettle.py"),
    _result("read_file", "1\tdef boils(degrees):\n2\t    return degrees >= 90"),
    _called(
        "edit_file",
        path="kettle.py",
        old_text="    return degrees >= 90",
        new_text="    return degrees >= 100",
    ),
    _result("edit_file", "Edited kettle.py: 1 replacement."),
    _called("run_shell", command="teapot-check kettle.py"),
    _result("run_shell", "fine\n[exit code 0]"),
    _answered("Water boils at 100 degrees, not at 90. teapot-check is content."),
    _said("plans/barn.txt can go."),
    _called("delete_file", path="plans/barn.txt"),
    _result("delete_file", "Deleted plans/barn.txt."),
    _answered("plans/barn.txt is deleted."),
    _said("Now to another project, with other files."),
    _answered("I start afresh and look before I act."),
    # What the model knows by itself takes no tool.
    _said("Say good night in Latin."),
    _answered("Bonam noctem."),
    _said("Which sea lies between Sweden and Finland?"),
    _answered("The Baltic Sea."),
)
