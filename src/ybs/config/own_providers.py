"""Providers of the person's own, as the settings describe them."""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

Tokens: TypeAlias = Annotated[int, Meta(ge=1, le=100_000_000)]
Rate: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]
HeaderText: TypeAlias = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]*$")]

#: What a CLI agent prints; `text` is the answer and nothing else.
CliOutput: TypeAlias = Literal["claude", "codex", "gemini", "pi", "text"]


class Endpoint(Struct, frozen=True, kw_only=True):
    """A provider of your own: any server that speaks a wire format which ybs knows."""

    endpoint: Annotated[str, Meta(min_length=1)]
    """Its address. A query (`?api-version=…`) goes with each request."""
    wire: Annotated[str, Meta(min_length=1)] = "openai"
    """The wire format that it speaks: openai (chat completions), openai-responses, anthropic, google,
    mistral, ollama, or one that an installed package brings."""
    api_key: str | None = None
    """Its key. Better: `api_key_env`."""
    api_key_env: str | None = None
    """The variable that holds its key."""
    model: str | None = None
    """The model used when none is named."""
    window: Tokens | None = None
    """Its context window, in tokens."""
    headers: dict[str, HeaderText] = {}
    """Headers sent with each request."""
    extra_body: dict[str, Any] = {}
    """Fields of the body of each request; objects are laid over ybs's own."""
    quirks: dict[str, Any] = {}
    """How the server differs from the format's norm."""

    def __repr__(self) -> str:
        # No key, header, field of the body or password in an address must reach a log by way of a representation.
        return f"Endpoint(wire={self.wire!r}, model={self.model!r})"


class CliAgent(Struct, frozen=True, kw_only=True):
    """A provider of your own that is a program: the command line of another agent, with its own login and its own tools off."""

    command: tuple[str, ...]
    """The program and its options. `{model}` is replaced by the model; `{system_file}` by the path of a file
    with the system prompt, which else stands before the conversation on its standard input."""
    output: CliOutput = "text"
    """What it prints."""
    model: str | None = None
    """The model used when none is named."""
    window: Tokens | None = None
    """Its context window, in tokens."""
    environment: tuple[str, ...] = ()
    """Variables that it may see besides the usual ones, such as `OPENAI_*`. It sees no others."""


class ModelEntry(Struct, frozen=True, kw_only=True):
    """What you state of a model. It goes before what its server tells and before what ybs knows."""

    window: Tokens | None = None
    """Its context window, in tokens."""
    max_output: Tokens | None = None
    """Its longest answer, in tokens."""
    input_price: Rate | None = None
    """What a million tokens of requests cost, in US dollars."""
    output_price: Rate | None = None
    """What a million tokens of answers cost, thinking included."""
    cached_price: Rate | None = None
    """The same, read from the provider's cache. Unset: as `input_price`."""
    cache_write_price: Rate | None = None
    """The same, written to that cache. Unset: as `input_price`."""
    sees_images: bool | None = None
    """Whether it sees pictures."""
    thinks: bool | None = None
    """Whether it can be told how hard to think."""
    accepts_temperature: bool | None = None
    """Whether it takes a temperature."""
    calls_tools: bool | None = None
    """Whether it calls tools; one that does not writes its calls as text."""
