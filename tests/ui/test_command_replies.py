"""What a command hands over beside its text reaches the screen."""

from collections.abc import Sequence
from typing import Any

from stage import staged

from fake_session import FakeSession
from ybs.session.reply import Outcome, Reply


class Changed(FakeSession):
    """Answers every command with a diff of two files."""

    async def handle(self, line: str, images: Sequence[Any] = ()) -> Reply | Outcome:
        diff = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x\x1b[2J\n+y\n--- /dev/null\n+++ b.py\n@@ -0,0 +1 @@\n+z"
        return Reply(text="The session changed:\n  a.py  +1 -1", diff=diff)


async def test_a_diff_is_drawn_below_the_text_with_the_names_of_its_files() -> None:
    async with staged(Changed()) as stage:
        stage.keys("/diff\r")
        await stage.sees("+z")
        shown = stage.screen
    places = [
        shown.index(part)
        for part in ("The session changed:", "--- a.py", "-x␛[2J", "+y", "+++ b.py", "+z")
    ]
    assert places == sorted(places)
