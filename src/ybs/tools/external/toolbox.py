"""The external tools as an agent has them: behind the checks that every call passes."""

from collections.abc import Sequence

from ybs.core.events import Emit, Noticed
from ybs.core.ports import ToolSpec
from ybs.tools.behind_checks import BehindChecks
from ybs.tools.external.catalogue import Catalogue
from ybs.tools.toolbox import LocalToolbox


class ExternalToolbox(BehindChecks):
    """The tools of a catalogue. `local` is empty and runs the calls; `is_short` offers them as to a small model."""

    def __init__(
        self, catalogue: Catalogue, local: LocalToolbox, *, is_short: bool = False
    ) -> None:
        super().__init__(local)
        self._catalogue, self._is_short = catalogue, is_short
        self._offered: Sequence[object] = ()
        self._told = set[str]()
        self._emit: Emit | None = None

    async def open(self, emit: Emit) -> None:
        """Find the tools, and say which of those that the person has put there cannot be used."""
        self._emit = emit
        await self._local.open(emit)
        await self._catalogue.load()
        self.specs()

    async def aclose(self) -> None:
        """Stop asking programs what they do."""
        self._emit = None
        await self._catalogue.aclose()

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools that are known by now."""
        tools = self._catalogue.tools
        if tools is not self._offered:
            self._offered = tools
            self._local.offer((), foreign=tools, is_short=self._is_short)
        self._tell()
        return self._local.specs()

    def _tell(self) -> None:
        if self._emit is None:
            return
        for each in self._catalogue.unusable:
            text = f"The tool {each.shown} cannot be used: {each.why}."
            if each.is_expected and text not in self._told:
                self._told.add(text)
                self._emit(Noticed(level="warning", text=text))
