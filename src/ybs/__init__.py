"""ybs: a coding agent for the terminal, for any LLM, local or remote."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ybs.config.host import Host
    from ybs.session.session import Session
    from ybs.tools.function import tool

__version__ = "0.1.0"
__all__ = ["Host", "Session", "__version__", "tool"]


def __getattr__(name: str) -> Any:
    # `import ybs` must stay cheap: the command starts by it. The Python frontend loads on first use.
    if name == "Session":
        from ybs.session.session import Session

        return Session
    if name == "Host":
        from ybs.config.host import Host

        return Host
    if name == "tool":
        from ybs.tools.function import tool

        return tool
    raise AttributeError(f"module 'ybs' has no attribute {name!r}")
