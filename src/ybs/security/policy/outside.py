"""Reading outside of the folders that ybs works in: the model asks for it, and the person decides."""

import os

from ybs.core.messages import ToolCall
from ybs.core.ports import Preview, Question
from ybs.security.paths.roots import OutsideRoots

#: Folders of which not all is allowed by one key.
_WIDE = "it would allow reading too much"


class Reading:
    """A path outside that a call wants to read. What is blocked was refused before."""

    def __init__(self, call: ToolCall, refused: OutsideRoots) -> None:
        self._call, self._refused = call, refused
        path = refused.path
        self._folder = path if os.path.isdir(path) else os.path.dirname(path)  # noqa: PTH112, PTH120

    @property
    def is_open(self) -> bool:
        """Whether it may be read by now."""
        return self._refused.roots.may_read(self._refused.path)

    @property
    def question(self) -> Question:
        """What the person is asked."""
        is_wide = self._folder in ("/", os.path.realpath(self._refused.roots.host.home))
        return Question(
            call=self._call,
            effect="read",
            preview=Preview(
                title="Read outside of the folders that ybs works in", body=self._refused.path
            ),
            grant="" if is_wide else f"reading in {self._folder}",
            withheld=_WIDE if is_wide else "",
        )

    def open(self, *, is_lasting: bool) -> None:
        """Let it be read within the `with`; where it is to last, all of its folder for the rest of the session."""
        if is_lasting:
            self._refused.roots.add_reading(self._folder)
        self._refused.roots.add_reading(self._refused.path)

    def __enter__(self) -> None:
        """Nothing more is to be done."""

    def __exit__(self, *_: object) -> None:
        """End what was allowed for one call."""
        self._refused.roots.forget_reading(self._refused.path)
