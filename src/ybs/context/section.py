"""A section: one part of what the model is told of where it is."""

from msgspec import Struct


class Section(Struct, frozen=True, kw_only=True):
    """A part of the system prompt that is drawn from the machine, the project or the person's own files.

    `text` can be printed: it has no control or invisible characters. `source` is where it comes from, as the person
    writes the path ("" for facts). `is_cut`: there was more than its budget allows; the text says so at its end.
    """

    name: str
    text: str
    source: str = ""
    is_cut: bool = False
