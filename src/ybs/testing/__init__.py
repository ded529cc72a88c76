"""Public fakes for tests of code that uses ybs: models, tools, a person, and HTTP servers.

They pass the same contract suites as the real things. `docs/testing.md` shows how to use them.
"""

from ybs.testing.chaos import ChaosModel
from ybs.testing.events import RecordedEvents
from ybs.testing.model import Failing, ScriptedModel
from ybs.testing.picking import PickingModel
from ybs.testing.script import (
    Entry,
    Frames,
    HttpError,
    Interrupted,
    Joined,
    Recut,
    ScriptedAnswer,
    ScriptOver,
    StreamingRefused,
    Whole,
    answer,
    broken_call,
    call,
    html_page,
    read_script,
    thought,
)
from ybs.testing.servers import (
    AnthropicServer,
    GoogleServer,
    MistralServer,
    OllamaServer,
    OpenAIServer,
    RecordedRequest,
    ResponsesServer,
    ScriptedServer,
    ServerProcess,
)
from ybs.testing.toolbox import FakeTool, RecordedHook, ScriptedConfirm, ScriptedToolbox

__all__ = [
    "AnthropicServer",
    "ChaosModel",
    "Entry",
    "Failing",
    "FakeTool",
    "Frames",
    "GoogleServer",
    "HttpError",
    "Interrupted",
    "Joined",
    "MistralServer",
    "OllamaServer",
    "OpenAIServer",
    "PickingModel",
    "RecordedEvents",
    "RecordedHook",
    "RecordedRequest",
    "Recut",
    "ResponsesServer",
    "ScriptOver",
    "ScriptedAnswer",
    "ScriptedConfirm",
    "ScriptedModel",
    "ScriptedServer",
    "ScriptedToolbox",
    "ServerProcess",
    "StreamingRefused",
    "Whole",
    "answer",
    "broken_call",
    "call",
    "html_page",
    "read_script",
    "thought",
]
