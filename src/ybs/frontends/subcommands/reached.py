"""The part of `ybs models` that says which models can be reached now."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from msgspec import to_builtins

from ybs.commands.figures import amount
from ybs.frontends.layout import in_columns
from ybs.frontends.subcommands.reach import lack_of
from ybs.providers.catalog import FREE, Price
from ybs.providers.reachable import Reached, ReachedModel

T = TypeVar("T")
#: A model that Ollama passes on has a size too, of a few bytes.
_LEAST_BYTES = 50_000_000
_ABILITIES = {"sees_images": "sees pictures", "thinks": "thinks", "calls_tools": "calls tools"}


class _Unwaited(ThreadPoolExecutor):
    """Threads that nobody waits for at the end: looking up a name may take long, and cannot be stopped."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end by themselves."""
        del wait, cancel_futures
        super().shutdown(wait=False, cancel_futures=True)


def run_leaving_threads(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and return what it returns, without waiting for threads that it gave up on."""

    async def run() -> T:
        asyncio.get_running_loop().set_default_executor(_Unwaited(thread_name_prefix="models"))
        return await work

    return asyncio.run(run())


def reached_data(found: Reached) -> dict[str, Any]:
    """Return a provider and its models as plain data; what is not known is null, a price "unknown"."""
    models = [
        {
            "name": each.name,
            **to_builtins(each.facts),
            "price": "unknown" if each.facts.price is None else _price_data(each.facts.price),
            "size_bytes": each.size_bytes,
        }
        for each in found.models
    ]
    return {
        "provider": found.reach.provider,
        "endpoint": found.reach.endpoint,
        "state": found.reach.state,
        "reason": _reason(found),
        "models": models,
    }


def reached_lines(found: Sequence[Reached]) -> Iterator[str]:
    """Write providers that answer down with their models, then those that do not with the reason."""
    for each in found:
        if each.models:
            place = f" at {each.reach.endpoint}" if each.reach.endpoint else ""
            yield f"{each.reach.provider}{place}:"
            yield from (f"  {line}" for line in in_columns([_cells(one) for one in each.models]))
    for each in found:
        if not each.models:
            yield f"{each.reach.provider}: {_reason(each)}"


def _reason(found: Reached) -> str:
    """Say why a provider has no models here; empty where it has some."""
    if found.models:
        return ""
    if why := found.why or found.reach.complaint:
        return why
    return "it lists no models" if found.reach.is_ready else lack_of(found.reach)[0]


def _cells(model: ReachedModel) -> tuple[str, ...]:
    facts, size = model.facts, model.size_bytes or 0
    return (
        model.name,
        f"{amount(facts.window)} window" if facts.window else "window unknown",
        _price_words(facts.price),
        ", ".join(words for name, words in _ABILITIES.items() if getattr(facts, name)),
        f"{size / 1e9:.1f} GB" if size >= _LEAST_BYTES else "",
    )


def _price_data(price: Price) -> dict[str, Any]:
    """Return a price as plain data, with what long requests cost where that is another price."""
    data = to_builtins(price)
    return data if price.long_after else {k: v for k, v in data.items() if "long" not in k}


def _price_words(price: Price | None) -> str:
    """Say what a million tokens cost."""
    if price is None:
        return "price unknown"
    return "free" if price == FREE else f"${price.input:g} in, ${price.output:g} out"
