"""Apple Foundation Models as a provider: the model of Apple Intelligence, on a Mac, by the package apple-fm-sdk.

https://apple.github.io/python-apple-fm-sdk. The SDK streams snapshots of the whole answer and blocks its thread while it waits, so
it runs in a thread of its own. Its tools would run inside of a request; those of ybs are called in the answer's text.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from importlib import import_module
from importlib.util import find_spec
from threading import Event as Flag
from threading import Thread
from typing import Any, Final

from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import ConfigError, ContextTooLong, ModelError, ProviderDown, RateLimited
from ybs.core.events import AssistantSaid, Event, TextStreamed
from ybs.core.messages import AssistantMessage, Text, Usage
from ybs.core.ports import Request
from ybs.core.remedies import Remedy
from ybs.core.time_limits import time_limit
from ybs.providers.cli.prompt import as_text
from ybs.providers.facts import stated
from ybs.providers.http.failures import NotServed, clean
from ybs.providers.registry import Provider, ProviderModel
from ybs.providers.text_calls import TextCalls

NAME: Final = "apple"
MODEL: Final = "foundation"
ADVICE: Final = "on macOS 26 or newer, install ybs with its extra `apple`, or `pip install apple-fm-sdk` beside it"
#: Where the SDK does not say how large the window is.
_WINDOW: Final = 4096
_OTHER: Final = (Remedy("change_provider"),)
_REASONS: Final = {
    "APPLE_INTELLIGENCE_NOT_ENABLED": "Apple Intelligence is switched off; switch it on in the system settings",
    "DEVICE_NOT_ELIGIBLE": "this Mac cannot run it",
    "MODEL_NOT_READY": "it is still being downloaded; try again later",
}
#: The SDK's errors, and what they mean.
_ERRORS: Final[tuple[tuple[str, type[ModelError], str], ...]] = (
    (
        "ExceededContextWindowSizeError",
        ContextTooLong,
        "The conversation is too long for Apple's model",
    ),
    ("RateLimitedError", RateLimited, "Apple's model takes no more requests for now"),
    ("ConcurrentRequestsError", RateLimited, "Apple's model still answers another request"),
    ("AssetsUnavailableError", NotServed, "Apple's model is not there"),
    ("GuardrailViolationError", NotServed, "Apple's guardrails refuse this request"),
    ("RefusalError", NotServed, "Apple's model refuses this request"),
    ("UnsupportedLanguageOrLocaleError", NotServed, "Apple's model does not know this language"),
)
_REMEDIES: Final[dict[type[ModelError], tuple[Remedy, ...]]] = {
    ContextTooLong: (Remedy("begin_anew"), Remedy("change_model")),
    NotServed: _OTHER,
}


def platform() -> str:
    """Return the system that this is, as `sys.platform` names it."""
    return sys.platform


class AppleModel(ProviderModel):
    """The model of Apple Intelligence. Each request is a session of its own."""

    def __init__(self, sdk: Any, config: Config) -> None:
        self._sdk, self._config = sdk, config
        self.provider = NAME
        self._model = sdk.SystemLanguageModel()
        self._calls = TextCalls()

    @property
    def name(self) -> str:
        """The model's name."""
        return MODEL

    @property
    def window(self) -> int:
        """The tokens that a request and its answer may have together."""
        own = stated(self._config, NAME, self.name).window
        window = own or getattr(self._model, "context_size", 0) or _WINDOW
        return min(window, self._config.context.max_tokens or window)

    @property
    def max_tokens(self) -> int:
        """The longest answer, in tokens: a quarter of the window at most."""
        return max(1, min(self._config.llm.max_tokens, self.window // 4))

    async def list_models(self) -> list[str]:
        """Return the one name that there is. Raises ModelError where the model cannot be used."""
        self._check()
        return [MODEL]

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Answer a request. See `core.ports.Model`."""
        self._check()
        stream = self._answer(request)
        if request.tools:
            stream = self._calls.read(stream, request)
        async with aclosing(stream) as events:
            async for event in events:
                yield event

    async def _answer(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield what each snapshot adds. One that changes what was shown shows in the whole message alone."""
        written = self._calls.written(request, self.window) if request.tools else request
        shown = whole = ""
        async with aclosing(self._snapshots(written)) as snapshots:
            async for whole in snapshots:
                if added := whole.removeprefix(shown) if whole.startswith(shown) else "":
                    shown = whole
                    yield TextStreamed(text=added)
        content = (Text(text=whole),) if whole else ()
        usage = Usage(cost_usd=0.0)
        yield AssistantSaid.of(AssistantMessage(content=content, model=self.name, usage=usage))

    async def _snapshots(self, request: Request) -> AsyncGenerator[str, None]:
        """Have the SDK answer in a thread. What is given up goes on there, unheard: the SDK cannot stop it."""
        found: asyncio.Queue[str | BaseException | None] = asyncio.Queue()
        given_up, seconds = Flag(), self._config.llm.timeout_seconds
        self._start(request, found, given_up)
        try:
            while True:
                async with time_limit(seconds):
                    item = await found.get()
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise self._error_of(item) from item
                yield item
        except TimeoutError as error:
            why = f"Apple's model did not answer: nothing came for {seconds:g} s."
            raise ProviderDown(why, remedies=(Remedy("try_again"),)) from error
        finally:
            given_up.set()

    def _start(
        self,
        request: Request,
        found: "asyncio.Queue[str | BaseException | None]",
        given_up: Flag,
    ) -> None:
        """Begin to answer in a thread: snapshots are put into `found`, then None or an error."""
        loop = asyncio.get_running_loop()

        def put(item: str | BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(found.put_nowait, item)

        def work() -> None:
            try:
                asyncio.run(self._read(request, put, given_up))
            except BaseException as error:  # it is raised where somebody waits
                put(error)
            else:
                put(None)

        Thread(target=work, name="apple-fm-sdk", daemon=True).start()

    async def _read(self, request: Request, put: Callable[[str], None], given_up: Flag) -> None:
        session = self._sdk.LanguageModelSession(
            instructions=request.system or None, model=self._model
        )
        options: dict[str, Any] = {}
        if make := getattr(self._sdk, "GenerationOptions", None):  # the first release has none
            llm = self._config.llm
            options["options"] = make(
                temperature=llm.temperature, maximum_response_tokens=self.max_tokens
            )
        prompt = as_text("", request.messages)
        async with aclosing(session.stream_response(prompt, **options)) as snapshots:
            async for snapshot in snapshots:
                if given_up.is_set():
                    return
                put(snapshot)

    def _check(self) -> None:
        """Raise NotServed where the system does not let the model be used."""
        is_available, reason = self._model.is_available()
        if not is_available:
            name = getattr(reason, "name", "")
            why = _REASONS.get(name, "macOS does not say why")
            raise NotServed(f"Apple's model cannot be used: {why}.", remedies=_OTHER)

    def _error_of(self, error: BaseException) -> ModelError:
        said = clean(str(error)) or type(error).__name__
        for name, kind, words in _ERRORS:
            if isinstance(error, getattr(self._sdk, name, ())):
                return kind(f"{words}: {said}", remedies=_REMEDIES.get(kind, ()))
        return ProviderDown(
            f"Apple's model gave no whole answer: {said}", remedies=(Remedy("try_again"), *_OTHER)
        )


def _make(_host: Host, config: Config, model: str | None) -> AppleModel:
    """Make the model. Raises ConfigError on another system, without the package, and for another name."""
    if platform() != "darwin":
        raise ConfigError("Apple Foundation Models run on macOS only.", remedies=_OTHER)
    if model not in (None, MODEL):
        raise ConfigError(f"apple has one model, {MODEL}, and not {model!r}.")
    try:
        sdk = import_module("apple_fm_sdk")
    except ImportError as error:
        raise ConfigError(
            f"The package apple-fm-sdk cannot be used ({error}).",
            remedies=(Remedy("do", ADVICE), *_OTHER),
        ) from error
    return AppleModel(sdk, config)


#: The model of Apple Intelligence on this Mac.
PROVIDER: Final = Provider(
    name=NAME,
    wire="openai",  # none that it speaks: the SDK is called
    endpoint="http://localhost",  # words do not leave this machine
    model=MODEL,
    needs_key=False,
    start_advice=ADVICE,
    make=_make,
    is_installed=lambda _host: platform() == "darwin" and find_spec("apple_fm_sdk") is not None,
)
