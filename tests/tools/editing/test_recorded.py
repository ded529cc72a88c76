"""Small edits told wrong in many ways, each with what became of it: the file as it was meant, or a refusal.

`recorded.json` was chosen so that a change of any decision of the matcher shows in it. Where such a change is meant,
look at every edit that comes out otherwise, and put the new outcome there.
"""

from pathlib import Path

import msgspec

from ybs.tools.editing.matcher import EditMatch, find


class Recorded(msgspec.Struct, frozen=True):
    """An edit and its outcome: the text after it, or the reason for the refusal, with lines and what is shown."""

    text: str
    old: str
    new: str
    for_all: bool
    made: str
    how: list[str]
    lines: list[int]
    shown: str


def outcome(edit: Recorded) -> Recorded:
    """Return the edit with what becomes of it now."""
    found = find(edit.text, edit.old, edit.new, replace_all=edit.for_all)
    if not isinstance(found, EditMatch):
        shown = found.nearest or found.placeholder
        return msgspec.structs.replace(
            edit, made=found.reason, how=[], lines=[*found.lines], shown=shown
        )
    text = edit.text
    for place in reversed(found.places):
        text = text[: place.start] + place.new + text[place.stop :]
    return msgspec.structs.replace(edit, made=text, how=[*found.how], lines=[found.count], shown="")


def test_recorded_edits_come_out_as_they_did():
    path = Path(__file__).with_name("recorded.json")
    edits = msgspec.json.decode(path.read_bytes(), type=list[Recorded])
    assert len(edits) > 50
    wrong = [(edit, outcome(edit)) for edit in edits if outcome(edit) != edit]
    told = "\n\n".join(f"recorded {one}\nnow      {other}" for one, other in wrong)
    assert not wrong, told
