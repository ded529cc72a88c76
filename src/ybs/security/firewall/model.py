"""A model behind the firewall: nothing reaches it before secrets are masked.

A private key is asked about where somebody can answer; what cannot be masked for certain stops the request.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from operator import is_
from typing import Literal, TypeAlias, TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.conversation import Conversation
from ybs.core.errors import ModelError
from ybs.core.events import Event, Noticed
from ybs.core.memo import alike
from ybs.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from ybs.core.ports import Model, Request, ToolSpec
from ybs.core.wrapper import ModelWrapper
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.report import Masked
from ybs.security.firewall.rules import PRIVATE_KEY
from ybs.security.firewall.structs import has_rest_of_key, masked

_T = TypeVar("_T")
#: What is done about a secret that stands in a request: put a placeholder there, let it pass, or do not send.
Decision: TypeAlias = Literal["mask", "send", "stop"]

#: Where the person's own words stand.
PERSON = "your message"
_SYSTEM, _FORM = "the system prompt", "the form of the answer"
_NO_FORM = Request("", ())
_PLACES = {
    "guard": "a reminder",
    "shell": "a command's output",
    "summary": "the summary",
    "context": "what is known of the project",
}


class SecretFound(ModelError):
    """A request was not sent, because a secret stands in it."""


class Discovery(Struct, frozen=True, kw_only=True):
    """What the person is asked about: secrets in one place. A private key is never sent as it is: `can_send` is false."""

    place: str
    secrets: tuple[Masked, ...]
    can_send: bool

    @property
    def question(self) -> str:
        """One line for the person, without the value."""
        kinds = ", ".join(dict.fromkeys(secret.kind for secret in self.secrets))
        return f"There is a secret in {self.place}: {kinds}."


#: Asks the person. Where nobody can be asked there is none, and secrets are masked.
Ask: TypeAlias = Callable[[Discovery], Awaitable[Decision]]


class FirewallModel(ModelWrapper):
    """Wraps a Model. `ask` may be set later; a request is looked at once, and of the next only what is new.

    Once something more is known to be a secret, all that is remembered is masked again. `person` is the place where words of the
    person's stand: where it is another than `PERSON`, they were judged before, and are masked as everything else.
    """

    def __init__(
        self, model: Model, firewall: Firewall, ask: Ask | None = None, *, person: str = PERSON
    ) -> None:
        super().__init__(model)
        self.firewall, self.ask = firewall, ask
        self._places = {**_PLACES, "person": person}
        #: What somebody said and must not be sent: it would stop every later request too.
        self.refused: UserMessage | None = None
        self._messages: dict[int, tuple[Message, Message]] = {}
        #: The messages of the last request, and how they were sent: mostly the next one begins with them.
        self._said: tuple[list[Message], list[Message]] = ([], [])
        self._specs: dict[int, tuple[ToolSpec, ToolSpec]] = {}
        #: The tools of the last request, and how they were told of.
        self._told: tuple[Sequence[ToolSpec], Sequence[ToolSpec]] = ((), ())
        #: The names of tools that are not offered, as they may be shown.
        self._left_out = dict[str, str]()
        self._system = ("", "")
        #: What the last request said of its answer, the schema and the grammar, and how that was sent.
        self._form = (_NO_FORM, _NO_FORM)
        self._learned = firewall.vault.learned

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the answer to the masked request. Raises SecretFound where it must not be sent."""
        told = len(self._left_out)
        clean = await self.cleaned(request)
        for name in [*self._left_out.values()][told:]:
            yield Noticed(
                level="warning",
                text=f"The tool {name} is left out, because there is a secret in its name.",
            )
        async with aclosing(self._model.stream(clean)) as events:
            async for event in events:
                yield event

    def take_out_refused(self, conversation: Conversation) -> str:
        """Take a message that must not be sent out of the conversation; return the person's words in it."""
        refused, self.refused = self.refused, None
        if refused is None:
            return ""
        conversation.replace([each for each in conversation.messages if each is not refused])
        return refused.words if refused.origin == "person" else ""

    async def cleaned(self, request: Request) -> Request:
        """Return the request with placeholders in place of secrets. Raises SecretFound."""
        if request.system != self._system[0]:
            clean = await self._checked(request.system, _SYSTEM, is_said=False)
            self._system = (request.system, clean)
        await self._offer(request.tools)
        form = Request("", (), (), request.answer_schema, request.grammar)
        if form != self._form[0]:
            self._form = (form, masked(self.firewall, form, _FORM))
        (said, clean), known = self._said, self._messages
        count = alike(said, request.messages)
        new = [
            kept[1] if (kept := known.get(id(each))) is not None else await self._message(each)
            for each in request.messages[count:]
        ]
        messages = self._masked_again(found := [*clean[:count], *new])
        if messages is not found or len(self._messages) != len(messages):  # some are no longer said
            pairs = zip(request.messages, messages, strict=True)
            self._messages = {id(old): (old, new) for old, new in pairs}
        self._said = ([*request.messages], messages)
        system, specs = self._system[1], self._told[1]
        return replace(self._form[1], system=system, messages=[*messages], tools=specs)

    def _masked_again(self, messages: list[Message]) -> list[Message]:
        """Mask what is newly known to be a secret in all that was looked at before too; nobody is asked again."""
        while self._learned != self.firewall.vault.learned:
            self._learned = self.firewall.vault.learned
            messages = [masked(self.firewall, each, self._place(each)) for each in messages]
            self._system = (self._system[0], masked(self.firewall, self._system[1], _SYSTEM))
            self._form = (self._form[0], masked(self.firewall, self._form[1], _FORM))
            self._specs = {
                key: (old, masked(self.firewall, new, _place_of(new)))
                for key, (old, new) in self._specs.items()
                if not self._has_secret_name(new)
            }
            self._told = (self._told[0], [new for _, new in self._specs.values()])
        return messages

    async def _offer(self, tools: Sequence[ToolSpec]) -> None:
        """Mask the descriptions of tools; nothing is to be done for those of the last request, if none was left out of it."""
        told, specs = self._told
        if len(told) == len(tools) == len(specs) and all(map(is_, told, tools)):
            return
        self._pass_specs(tools)
        known = self._specs
        offered = [each for each in tools if id(each) in known or not self._has_secret_name(each)]
        specs = [await self._spec(spec) for spec in offered]
        self._specs = {id(old): (old, new) for old, new in zip(offered, specs, strict=True)}
        self._told = (tuple(tools), specs)

    def _pass_specs(self, specs: Sequence[ToolSpec]) -> None:
        """Let new descriptions pass that are clean, with one look at all of them."""
        new = [s for s in specs if id(s) not in self._specs and b"\\" not in bytes(s.parameters)]
        if not new:
            return
        parts = [
            part for s in new for part in (s.name, s.description, bytes(s.parameters).decode())
        ]
        if self.firewall.are_clean(parts):
            self._specs.update((id(spec), (spec, spec)) for spec in new)

    def _has_secret_name(self, spec: ToolSpec) -> bool:
        """Return whether a secret stands in a tool's name, where no placeholder can; it would stop every request."""
        if not self.firewall.find(spec.name):
            return False
        self._left_out.setdefault(spec.name, self.firewall.mask(spec.name))
        return True

    async def _spec(self, spec: ToolSpec) -> ToolSpec:
        known = self._specs.get(id(spec))
        if known is not None:
            return known[1]
        return await self._checked(spec, _place_of(spec), is_said=False)

    async def _message(self, message: Message) -> Message:
        for name in _names(message):
            self._check_name(name)
        place = self._place(message)
        try:
            clean = await self._checked(message, place, is_said=place == PERSON)
        except SecretFound:
            self.refused = message if isinstance(message, UserMessage) else None
            raise
        self._messages[id(message)] = (
            message,
            clean,
        )  # an answer holds although another part stops the request
        return clean

    def _place(self, message: Message) -> str:
        match message:
            case UserMessage():
                return self._places[message.origin]
            case AssistantMessage():
                return "the model's answer"
            case ToolResult():
                return f"the result of {message.name}"
            case _:
                assert_never(message)

    def _check_name(self, name: str) -> None:
        """Raise SecretFound for a secret in the name of a tool that was called, where no placeholder can stand."""
        if self.firewall.find(name):
            raise SecretFound("Not sent: there is a secret in the name of a tool. Rename the tool.")

    async def _checked(self, value: _T, place: str, *, is_said: bool) -> _T:
        """Mask one part of a request, and ask about what the person said and about private keys."""
        self.firewall.report.begin()
        clean = masked(self.firewall, value, place)
        if is_said and has_rest_of_key(clean):
            raise SecretFound(_not_certain(place))
        if clean is value:
            return value
        found = tuple(self.firewall.report.latest)
        has_key = any(row.kind == PRIVATE_KEY for row in found)
        if not (has_key or (is_said and self.ask)):
            return clean
        discovery = Discovery(place=place, secrets=found, can_send=not has_key)
        decision = "mask" if self.ask is None else await self.ask(discovery)
        if decision == "mask" and not (has_key and has_rest_of_key(clean)):
            return clean
        if decision == "send" and discovery.can_send:
            for row in found:
                self.firewall.allow(row.placeholder)
            return masked(self.firewall, value, place)
        if decision == "mask":
            raise SecretFound(_not_certain(place))
        raise SecretFound(
            f"Not sent. {discovery.question} Take it out, or answer that it may be sent masked."
        )


def _not_certain(place: str) -> str:
    return f"Not sent. There is a private key in {place}, and a part of it cannot be masked for certain. Take it out."


def _names(message: Message) -> list[str]:
    """Return the names of tools in a message."""
    match message:
        case UserMessage():
            return []
        case AssistantMessage():
            return [call.name for call in message.calls]
        case ToolResult():
            return [message.name]
        case _:
            assert_never(message)


def _place_of(spec: ToolSpec) -> str:
    return f"the description of {spec.name}"
