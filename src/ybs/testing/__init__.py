"""Public fakes for tests of code that uses ybs: a model, tools, a person, and what takes events.

They pass the same contract suites as the real things. `docs/testing.md` shows how to use them.
"""

from ybs.testing.events import RecordedEvents
from ybs.testing.model import Failing, ScriptedModel
from ybs.testing.script import ScriptedAnswer, ScriptOver, answer, broken_call, call, thought
from ybs.testing.toolbox import FakeTool, RecordedHook, ScriptedConfirm, ScriptedToolbox

__all__ = [
    "Failing",
    "FakeTool",
    "RecordedEvents",
    "RecordedHook",
    "ScriptOver",
    "ScriptedAnswer",
    "ScriptedConfirm",
    "ScriptedModel",
    "ScriptedToolbox",
    "answer",
    "broken_call",
    "call",
    "thought",
]
