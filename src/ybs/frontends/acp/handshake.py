"""The answer to `initialize`: what ybs can do in an editor, and which setup is missing. Nothing that takes long is loaded for it."""

from typing import Any, Final

from msgspec import Struct

from ybs import __version__
from ybs.config.tree import is_object
from ybs.core.errors import YbsError
from ybs.frontends.json_rpc import INVALID_PARAMS, RpcMessage
from ybs.session.options import Options

PROTOCOL_VERSION: Final = 1
HOW: Final = (
    "Run `ybs setup` in a terminal: it chooses the model, and saves a key where one is needed."
)
_CAPABILITIES: Final[RpcMessage] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {
        each: {} for each in ("list", "resume", "fork", "close", "additionalDirectories")
    },
}


class EditorOffer(Struct, frozen=True):
    """What the editor offers: to read and write its files, and to show forms."""

    reads: bool = False
    writes: bool = False
    forms: bool = False


class Handshake:
    """Answers `initialize`, and knows from then on what the editor offers."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.offer = EditorOffer()

    def __call__(self, params: RpcMessage) -> RpcMessage:
        """Return the part of the answer that is the result, or the error."""
        if not isinstance(params.get("protocolVersion"), int):
            return {"error": {"code": INVALID_PARAMS, "message": "protocolVersion is not a number"}}
        self.offer = EditorOffer(
            _given(params, "fs", "readTextFile") is True,
            _given(params, "fs", "writeTextFile") is True,
            is_object(_given(params, "elicitation", "form")),
        )
        methods = list[RpcMessage]()
        if (missing := missing_setup(self._options)) is not None:
            about = f"{str(missing).rstrip('.')}. {HOW}"
            methods.append({"id": "setup", "name": "Set up ybs", "description": about})
            if _given(params, "auth", "terminal") is True:  # it runs ybs with these words added
                methods[0] |= {"type": "terminal", "args": ["setup"]}
        return {
            "result": {
                "protocolVersion": PROTOCOL_VERSION,
                "agentInfo": {"name": "ybs", "title": "ybs", "version": __version__},
                "agentCapabilities": _CAPABILITIES,
                "authMethods": methods,
            }
        }


def _given(params: RpcMessage, *names: str) -> Any:
    """Return what stands in the editor's capabilities under these names; None where there is no such thing."""
    found: Any = params.get("clientCapabilities")
    for name in names:
        found = found.get(name) if is_object(found) else None
    return found


def missing_setup(options: Options) -> YbsError | None:
    """Return why no session could be opened: there is no model, or a key is missing. None where all is there."""
    from ybs.agent.model_choice import open_model
    from ybs.session.settings import ready_settings

    try:
        open_model(ready_settings(options), options.model)
    except YbsError as error:
        return error
    return None
