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

    endpoint: Annotated[
        str,
        Meta(
            description="Its address. A query (`?api-version=…`) goes with each request.",
            min_length=1,
        ),
    ]
    wire: Annotated[
        str,
        Meta(
            description="The wire format that it speaks: openai (chat completions), openai-responses, anthropic, google, mistral, ollama, or one that an installed package brings.",
            min_length=1,
        ),
    ] = "openai"
    api_key: Annotated[str | None, Meta(description="Its key. Better: `api_key_env`.")] = None
    api_key_env: Annotated[str | None, Meta(description="The variable that holds its key.")] = None
    model: Annotated[str | None, Meta(description="The model used when none is named.")] = None
    window: Annotated[Tokens | None, Meta(description="Its context window, in tokens.")] = None
    headers: Annotated[
        dict[str, HeaderText], Meta(description="Headers sent with each request.")
    ] = {}
    extra_body: Annotated[
        dict[str, Any],
        Meta(description="Fields of the body of each request; objects are laid over ybs's own."),
    ] = {}
    quirks: Annotated[
        dict[str, Any], Meta(description="How the server differs from the format's norm.")
    ] = {}

    def __repr__(self) -> str:
        # No key, header, field of the body or password in an address must reach a log by way of a representation.
        return f"Endpoint(wire={self.wire!r}, model={self.model!r})"


class CliAgent(Struct, frozen=True, kw_only=True):
    """A provider of your own that is a program: the command line of another agent, with its own login and its own tools off."""

    command: Annotated[
        tuple[str, ...],
        Meta(
            description="The program and its options. `{model}` is replaced by the model; `{system_file}` by the path of a file with the system prompt, "
            "which else stands before the conversation on its standard input.",
        ),
    ]
    output: Annotated[CliOutput, Meta(description="What it prints.")] = "text"
    model: Annotated[str | None, Meta(description="The model used when none is named.")] = None
    window: Annotated[Tokens | None, Meta(description="Its context window, in tokens.")] = None
    environment: Annotated[
        tuple[str, ...],
        Meta(
            description="Variables that it may see besides the usual ones, such as `OPENAI_*`. It sees no others."
        ),
    ] = ()


class ModelEntry(Struct, frozen=True, kw_only=True):
    """What you state of a model. It goes before what its server tells and before what ybs knows."""

    window: Annotated[Tokens | None, Meta(description="Its context window, in tokens.")] = None
    max_output: Annotated[Tokens | None, Meta(description="Its longest answer, in tokens.")] = None
    input_price: Annotated[
        Rate | None,
        Meta(description="What a million tokens of requests cost, in US dollars."),
    ] = None
    output_price: Annotated[
        Rate | None, Meta(description="What a million tokens of answers cost, thinking included.")
    ] = None
    cached_price: Annotated[
        Rate | None,
        Meta(description="The same, read from the provider's cache. Unset: as `input_price`."),
    ] = None
    cache_write_price: Annotated[
        Rate | None,
        Meta(description="The same, written to that cache. Unset: as `input_price`."),
    ] = None
    sees_images: Annotated[bool | None, Meta(description="Whether it sees pictures.")] = None
    thinks: Annotated[
        bool | None, Meta(description="Whether it can be told how hard to think.")
    ] = None
    accepts_temperature: Annotated[
        bool | None, Meta(description="Whether it takes a temperature.")
    ] = None
    calls_tools: Annotated[
        bool | None,
        Meta(description="Whether it calls tools; one that does not writes its calls as text."),
    ] = None
