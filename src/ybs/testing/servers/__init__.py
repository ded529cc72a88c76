"""Scripted HTTP servers for the wire formats. Run one with `python -m ybs.testing.servers`."""

from ybs.testing.servers.http import RecordedRequest
from ybs.testing.servers.process import ServerProcess
from ybs.testing.servers.server import (
    AnthropicServer,
    GoogleServer,
    MistralServer,
    OllamaServer,
    OpenAIServer,
    ResponsesServer,
    ScriptedServer,
)

__all__ = [
    "AnthropicServer",
    "GoogleServer",
    "MistralServer",
    "OllamaServer",
    "OpenAIServer",
    "RecordedRequest",
    "ResponsesServer",
    "ScriptedServer",
    "ServerProcess",
]
