"""Models on this machine, as the settings say it."""

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from ybs.config.network import NotEmpty

Minutes: TypeAlias = Annotated[float, Meta(gt=0, le=100_000)]


class Local(Struct, frozen=True, kw_only=True):
    """Models that run on this machine, in a server that ybs starts."""

    server: Annotated[
        NotEmpty | None,
        Meta(
            description="The absolute path of llama.cpp's `llama-server`. Unset: that of the extra `local`, or the one in "
            "`PATH` where this machine has a graphics processor or the extra is not installed."
        ),
    ] = None
    hub: Annotated[
        NotEmpty,
        Meta(
            description="Where models are downloaded from when you ask for one: a hub with the addresses of Hugging Face, "
            "or a mirror's pattern with `{file}`, and `{repository}` where it is needed."
        ),
    ] = "https://huggingface.co"
    keep_minutes: Annotated[
        Minutes | None,
        Meta(
            description="How long a model stays in memory after its last use, in Ollama too. Unset: 15, and Ollama's own."
        ),
    ] = None
