"""A double of the package apple-fm-sdk: its names and signatures, as its documentation and source have them in 2026.

https://apple.github.io/python-apple-fm-sdk/api/session.html
"""

import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import ModuleType
from typing import Any


class SystemLanguageModelUnavailableReason(IntEnum):
    APPLE_INTELLIGENCE_NOT_ENABLED = 0
    DEVICE_NOT_ELIGIBLE = 1
    MODEL_NOT_READY = 2
    UNKNOWN = 0xFF


class FoundationModelsError(Exception):
    pass


class GenerationError(FoundationModelsError):
    pass


class ExceededContextWindowSizeError(GenerationError):
    pass


class GuardrailViolationError(GenerationError):
    pass


class RateLimitedError(GenerationError):
    pass


@dataclass
class GenerationOptions:
    sampling: Any | None = None
    temperature: float | None = None
    maximum_response_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.maximum_response_tokens is not None and self.maximum_response_tokens <= 0:
            raise ValueError("'maximum_response_tokens' must be positive")


class Script:
    """What the double plays, and what it was asked."""

    def __init__(self, *snapshots: str | Exception, reason: int | None = None) -> None:
        self.snapshots: Sequence[str | Exception] = snapshots
        self.reason = reason
        self.asked: list[tuple[str | None, str, GenerationOptions | None]] = []
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.has_ended = threading.Event()


class _SystemLanguageModel:
    script: Script

    def __init__(self, use_case: int = 0, guardrails: int = 0, _ptr: Any = None) -> None:
        self.use_case, self.guardrails = use_case, guardrails

    def is_available(self) -> tuple[bool, SystemLanguageModelUnavailableReason | None]:
        if self.script.reason is None:
            return True, None
        return False, SystemLanguageModelUnavailableReason(self.script.reason)

    @property
    def context_size(self) -> int:
        return 4096


class _LanguageModelSession:
    script: Script

    def __init__(
        self,
        instructions: str | None = None,
        model: _SystemLanguageModel | None = None,
        tools: list[Any] | None = None,
        _ptr: Any = None,
    ) -> None:
        assert isinstance(model, _SystemLanguageModel)
        self.instructions = instructions

    async def stream_response(
        self, prompt: str, options: GenerationOptions | None = None
    ) -> AsyncIterator[str]:
        script = self.script
        script.asked.append((self.instructions, prompt, options))
        try:
            for each in script.snapshots:
                script.goes_on.wait(9)  # as the real one, which blocks its thread
                if isinstance(each, Exception):
                    raise each
                yield each
        finally:
            script.has_ended.set()


def package(script: Script) -> ModuleType:
    """Return a module that plays a script."""
    made: Any = ModuleType("apple_fm_sdk")
    for kind in (_SystemLanguageModel, _LanguageModelSession):
        name = kind.__name__.removeprefix("_")
        setattr(made, name, type(name, (kind,), {"script": script}))
    for each in (
        *(SystemLanguageModelUnavailableReason, FoundationModelsError, GenerationError),
        *(ExceededContextWindowSizeError, GuardrailViolationError, RateLimitedError),
        GenerationOptions,
    ):
        setattr(made, each.__name__, each)
    return made
