"""The terminal's output: the cells that are drawn pass the gate too, such as what was pasted into the prompt."""

from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth

from ybs.security.unicode import has_suspects, replace_hidden


class GatedOutput(Vt100_Output):
    """Writes a sign of the same width in place of characters that nobody sees."""

    def write(self, data: str) -> None:
        """Write text; control characters have been made visible before, or are by prompt_toolkit."""
        if not data.isascii() and has_suspects(data):
            data = replace_hidden(data, lambda run: "?" * get_cwidth(run))
        super().write(data)
