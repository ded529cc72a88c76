"""Base classes for wrappers of a Model or a Toolbox."""

from collections.abc import Sequence

from ybs.core.events import Emit
from ybs.core.messages import ToolCall
from ybs.core.ports import Model, Toolbox, ToolSpec


class ModelWrapper(Model):
    """A Model around another one, whose name and window it has. A wrapper brings its own `stream`."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    @property
    def window(self) -> int:
        """The wrapped model's window."""
        return self._model.window


class ToolboxWrapper(Toolbox):
    """A Toolbox around another one, whose tools it has. A wrapper brings its own `run`."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    async def open(self, emit: Emit) -> None:
        """Open the wrapped toolbox."""
        await self._toolbox.open(emit)

    async def aclose(self) -> None:
        """Close the wrapped toolbox."""
        await self._toolbox.aclose()

    def specs(self) -> Sequence[ToolSpec]:
        """Return the wrapped toolbox's tools."""
        return self._toolbox.specs()

    def is_read_only(self, call: ToolCall) -> bool:
        """Return the result of the wrapped toolbox."""
        return self._toolbox.is_read_only(call)
