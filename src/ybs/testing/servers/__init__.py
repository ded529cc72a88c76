"""Scripted HTTP servers for the three wire formats. Run one with `python -m ybs.testing.servers`."""

from ybs.testing.servers.http import RecordedRequest
from ybs.testing.servers.process import ServerProcess
from ybs.testing.servers.server import (
    AnthropicServer,
    OllamaServer,
    OpenAIServer,
    ScriptedServer,
)

__all__ = [
    "AnthropicServer",
    "OllamaServer",
    "OpenAIServer",
    "RecordedRequest",
    "ScriptedServer",
    "ServerProcess",
]
