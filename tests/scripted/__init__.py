"""Scripted servers of the wire formats, and models that misbehave. Run a server with `python -m scripted`, in tests/."""

from scripted.chaos import ChaosModel
from scripted.faults import (
    Entry,
    Frames,
    HttpError,
    Interrupted,
    Joined,
    Recut,
    StreamingRefused,
    Whole,
    html_page,
    read_script,
)
from scripted.http import RecordedRequest
from scripted.picking import PickingModel
from scripted.process import ServerProcess
from scripted.server import (
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
    "ChaosModel",
    "Entry",
    "Frames",
    "GoogleServer",
    "HttpError",
    "Interrupted",
    "Joined",
    "MistralServer",
    "OllamaServer",
    "OpenAIServer",
    "PickingModel",
    "RecordedRequest",
    "Recut",
    "ResponsesServer",
    "ScriptedServer",
    "ServerProcess",
    "StreamingRefused",
    "Whole",
    "html_page",
    "read_script",
]
