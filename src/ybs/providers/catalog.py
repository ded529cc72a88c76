"""Facts about well-known models: windows, prices and abilities, found by the beginning of a name.

Facts only, looked up in the month of `CATALOG_DATE`. Where a price could not be confirmed it is left out, and the cost of
an answer is then unknown. Sources: https://developers.openai.com/api/docs/models,
https://platform.claude.com/docs/en/about-claude/pricing, https://ai.google.dev/gemini-api/docs/pricing
"""

import re
from itertools import pairwise
from typing import Final

from msgspec import Struct

from ybs.core.lazy import lazy
from ybs.core.messages import Usage

#: Year and month in which the table below was looked up.
CATALOG_DATE: Final = "2026-11"
LOCAL_WINDOW: Final = 32_768
REMOTE_WINDOW: Final = 128_000
#: What the names of a provider's own models begin with.
_MAKERS: Final = {
    "openai": ("gpt-", "o1", "o3", "o4"),
    "anthropic": ("claude-",),
    "google": ("gemini-",),
    "mistral": ("mistral-", "codestral", "devstral", "magistral", "ministral"),
}


#: Models with these in their names do not answer in words.
_NO_WORDS: Final = (
    *("embed", "all-minilm", "bge-", "rerank", "whisper", "tts", "transcribe", "audio", "realtime"),
    *("dall-e", "image", "sora", "veo", "ocr", "moderation", "davinci", "babbage"),
)
_LONGEST_NAME: Final = 200


class Price(Struct, frozen=True):
    """US dollars per million tokens. `cache_write` None: as input.

    A request of more than `long_after` tokens costs `long_input` and `long_output` times as much.
    """

    input: float
    output: float
    cached: float
    cache_write: float | None = None
    long_after: int = 0
    long_input: float = 2.0
    long_output: float = 1.5

    def cost_of(self, usage: Usage) -> float:
        """Return the price of the tokens in US dollars."""
        fresh = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        write = self.input if self.cache_write is None else self.cache_write
        read = (
            max(0, fresh) * self.input
            + usage.cached_tokens * self.cached
            + usage.cache_write_tokens * write
        )
        written = usage.output_tokens * self.output
        if self.long_after and usage.input_tokens > self.long_after:
            read, written = read * self.long_input, written * self.long_output
        return (read + written) / 1_000_000


#: What a model on one's own machine costs.
FREE: Final = Price(0, 0, 0)


class ModelFacts(Struct, frozen=True, kw_only=True):
    """What is known of a model. None: not known."""

    window: int | None = None
    #: Its parameters, in billions.
    billions: float | None = None
    max_output: int | None = None
    price: Price | None = None
    sees_images: bool | None = None
    thinks: bool | None = None
    accepts_temperature: bool | None = None
    #: Whether it is told how hard to think as a budget in tokens, not as a level.
    takes_budget: bool | None = None
    #: Whether it calls tools as its server expects; one that does not writes calls as text.
    calls_tools: bool | None = None
    #: Whether its server takes a grammar for the answer, as llama.cpp's does.
    takes_grammar: bool | None = None


def over(*facts: ModelFacts) -> ModelFacts:
    """Return the facts of several sources merged; the first source that knows a fact wins."""
    names = ModelFacts.__struct_fields__
    known = (
        (name, [v for each in facts if (v := getattr(each, name)) is not None]) for name in names
    )
    return ModelFacts(**{name: values[0] for name, values in known if values})


def facts_of(model: str) -> ModelFacts:
    """Return the catalog's facts about a model; names may have a maker in front (`openai/gpt-4.1`)."""
    name = model.lower().rsplit("/", 1)[-1]
    known = [row for row in _TABLE if name.startswith(row[0])]
    if not known:
        return ModelFacts()
    _, window, most, price, abilities = max(known, key=lambda row: len(row[0]))
    return ModelFacts(
        window=window,
        max_output=most,
        price=price,
        sees_images="i" in abilities,
        thinks="t" in abilities,
        accepts_temperature="-" not in abilities,
        takes_budget="b" in abilities,
        calls_tools="x" not in abilities,
    )


def known_models(provider: str) -> list[str]:
    """List well-known models of a maker, the newest families first; none for an unknown maker."""
    beginnings = _MAKERS.get(provider, ())
    return [row[0] for row in _TABLE if row[3] is not None and row[0].startswith(beginnings)]


def answers_in_words(model: str) -> bool:
    """Return whether a name that a server gave can be shown, and belongs to a model that writes text."""
    is_name = bool(model.strip()) and len(model) <= _LONGEST_NAME and model.isprintable()
    return is_name and not any(part in model.lower() for part in _NO_WORDS)


def window_of(facts: ModelFacts, *, is_local: bool) -> int:
    """Return the window to use for a model of which these facts are known, in tokens.

    A local server takes memory for every token of its window, so a local model gets no large one unasked.
    """
    if is_local:
        return min(facts.window or LOCAL_WINDOW, LOCAL_WINDOW)
    return facts.window or REMOTE_WINDOW


_Row = tuple[str, int, int | None, Price | None, str]

#: A name's beginning (the longest that fits counts), window, longest answer, price (see Price), and
#: abilities: i sees images, t thinks, b by a budget in tokens, - takes no temperature, x writes calls as text whatever its template says. Reasoning models of OpenAI and Claude from
#: Opus 4.7 on refuse a temperature.
_TABLE: Final[tuple[_Row, ...]] = (
    ("gpt-6.2-astra", 1_050_000, 128_000, Price(8, 40, 0.4, 10, 272_000), "it-"),
    ("gpt-6.2-sol", 1_050_000, 128_000, Price(2, 10, 0.1, 2.5, 272_000), "it-"),
    ("gpt-6.1-sol", 1_050_000, 128_000, Price(2, 10, 0.1, 2.5, 272_000), "it-"),
    ("gpt-6.1-terra", 1_050_000, 128_000, Price(1, 5, 0.05, 1.25, 272_000), "it-"),
    ("gpt-6-astra", 1_050_000, 128_000, Price(10, 50, 1, 12.5, 272_000), "it-"),
    ("gpt-6-sol", 1_050_000, 128_000, Price(2, 10, 0.2, 2.5, 272_000), "it-"),
    ("gpt-6-luna", 1_050_000, 128_000, Price(0.1, 0.5, 0.01, 0.125, 272_000), "it-"),
    ("gpt-6", 1_050_000, 128_000, None, "it-"),
    ("gpt-5.6", 1_050_000, 128_000, None, "it-"),
    ("gpt-5.5", 1_050_000, 128_000, Price(5, 30, 0.5, None, 272_000), "it-"),
    ("gpt-5.5-pro", 1_050_000, 128_000, None, "it-"),
    ("gpt-5.4", 1_050_000, 128_000, Price(2.5, 15, 0.25, None, 272_000), "it-"),
    ("gpt-5.4-pro", 1_050_000, 128_000, None, "it-"),
    ("gpt-5.4-mini", 400_000, 128_000, Price(0.75, 4.5, 0.075), "it-"),
    ("gpt-5.4-nano", 400_000, 128_000, Price(0.2, 1.25, 0.02), "it-"),
    ("gpt-5.3", 400_000, 128_000, Price(1.75, 14, 0.175), "it-"),
    ("gpt-5.2", 400_000, 128_000, Price(1.75, 14, 0.175), "it-"),
    ("gpt-5.2-pro", 400_000, 128_000, None, "it-"),
    ("gpt-5.1", 400_000, 128_000, Price(1.25, 10, 0.125), "it-"),
    ("gpt-5.1-mini", 400_000, 128_000, None, "it-"),
    ("gpt-5", 400_000, 128_000, Price(1.25, 10, 0.125), "it-"),
    ("gpt-5-pro", 400_000, 128_000, None, "it-"),
    ("gpt-5-mini", 400_000, 128_000, Price(0.25, 2, 0.025), "it-"),
    ("gpt-5-nano", 400_000, 128_000, Price(0.05, 0.4, 0.005), "it-"),
    ("gpt-4.1", 1_047_576, 32_768, Price(2, 8, 0.5), "i"),
    ("gpt-4.1-mini", 1_047_576, 32_768, Price(0.4, 1.6, 0.1), "i"),
    ("gpt-4.1-nano", 1_047_576, 32_768, Price(0.1, 0.4, 0.025), "i"),
    ("gpt-4o", 128_000, 16_384, Price(2.5, 10, 1.25), "i"),
    ("gpt-4o-mini", 128_000, 16_384, Price(0.15, 0.6, 0.075), "i"),
    ("gpt-4-turbo", 128_000, 4_096, Price(10, 30, 10), "i"),
    ("gpt-4", 8_192, 4_096, Price(30, 60, 30), ""),
    ("gpt-3.5-turbo", 16_385, 4_096, Price(0.5, 1.5, 0.5), ""),
    ("gpt-oss", 131_072, None, None, "t"),
    ("o1", 200_000, 100_000, Price(15, 60, 7.5), "it-"),
    ("o3", 200_000, 100_000, Price(2, 8, 0.5), "it-"),
    ("o3-mini", 200_000, 100_000, Price(1.1, 4.4, 0.55), "t-"),
    ("o3-pro", 200_000, 100_000, None, "it-"),
    ("o4-mini", 200_000, 100_000, Price(1.1, 4.4, 0.275), "it-"),
    ("claude-fable-5-2", 1_000_000, 128_000, None, "it-"),
    ("claude-fable-5-1", 1_000_000, 128_000, Price(10, 50, 0.25, 12.5), "it-"),
    ("claude-fable-5", 1_000_000, 128_000, Price(10, 50, 1, 12.5), "it-"),
    ("claude-mythos-5-2", 1_000_000, 128_000, None, "it-"),
    ("claude-mythos-5-1", 1_000_000, 128_000, Price(10, 50, 0.25, 12.5), "it-"),
    ("claude-mythos-5", 1_000_000, 128_000, Price(10, 50, 1, 12.5), "it-"),
    ("claude-opus-5-5", 1_000_000, 128_000, Price(4, 20, 0.2, 5), "it-"),
    ("claude-opus-5", 1_000_000, 128_000, Price(5, 25, 0.5, 6.25), "it-"),
    ("claude-opus-4-8", 1_000_000, 128_000, Price(5, 25, 0.5, 6.25), "it-"),
    ("claude-opus-4-7", 1_000_000, 128_000, Price(5, 25, 0.5, 6.25), "it-"),
    ("claude-opus-4-6", 1_000_000, 128_000, Price(5, 25, 0.5, 6.25), "it"),
    ("claude-opus-4-5", 200_000, 64_000, Price(5, 25, 0.5, 6.25), "itb"),
    ("claude-opus-4", 200_000, 32_000, Price(15, 75, 1.5, 18.75), "itb"),
    ("claude-sonnet-5-5", 1_000_000, 128_000, Price(2, 10, 0.1, 2.5), "it-"),
    ("claude-sonnet-5", 1_000_000, 128_000, Price(2, 10, 0.2, 2.5), "it-"),
    ("claude-sonnet-4-6", 1_000_000, 64_000, Price(3, 15, 0.3, 3.75), "it"),
    ("claude-sonnet-4", 200_000, 64_000, Price(3, 15, 0.3, 3.75), "itb"),
    ("claude-haiku-5-5", 1_000_000, 128_000, Price(0.1, 0.5, 0.01, 0.125, 100_000, 5, 5), "it-"),
    ("claude-haiku-4-5", 200_000, 64_000, Price(1, 5, 0.1, 1.25), "itb"),
    ("claude-3-5-haiku", 200_000, 8_192, Price(0.8, 4, 0.08, 1), "i"),
    ("claude-3-5-sonnet", 200_000, 8_192, Price(3, 15, 0.3, 3.75), "i"),
    ("claude-3-7-sonnet", 200_000, 64_000, Price(3, 15, 0.3, 3.75), "itb"),
    ("claude", 200_000, 8_192, None, "it"),
    ("gemini-3.8-flash", 1_048_576, 65_536, Price(0.75, 3.75, 0.075), "it"),
    ("gemini-3.5-flash", 1_048_576, 65_536, Price(1.5, 9, 0.15), "it"),
    ("gemini-3.5-flash-lite", 1_048_576, 65_536, Price(0.3, 2.5, 0.03), "it"),
    ("gemini-3.1-pro", 1_048_576, 65_536, Price(2, 12, 0.2, None, 200_000), "it"),
    ("gemini-3.1-flash-lite", 1_048_576, 65_536, Price(0.25, 1.5, 0.025), "it"),
    ("gemini-3-flash", 1_048_576, 65_536, Price(0.5, 3, 0.05), "it"),
    ("gemini-2.5-pro", 1_048_576, 65_536, Price(1.25, 10, 0.125, None, 200_000), "itb"),
    ("gemini-2.5-flash", 1_048_576, 65_536, Price(0.3, 2.5, 0.03), "itb"),
    ("gemini-2.5-flash-lite", 1_048_576, 65_536, Price(0.1, 0.4, 0.01), "itb"),
    ("gemini", 1_048_576, 65_536, None, "it"),
    ("mistral-large-4", 1_048_576, None, None, "it"),
    ("mistral-large", 131_072, None, None, "i"),
    ("mistral-medium", 131_072, None, None, "i"),
    ("mistral-medium-latest", 256_000, None, Price(1.5, 7.5, 1.5), "it"),
    ("mistral-medium-3-5", 256_000, None, Price(1.5, 7.5, 1.5), "it"),
    ("mistral-small", 131_072, None, None, "it"),
    ("mistral-nemo", 131_072, None, None, ""),
    ("mistral", 32_768, None, None, ""),
    ("codestral", 256_000, None, None, ""),
    ("devstral", 131_072, None, None, ""),
    ("devstral-medium-latest", 262_144, None, None, ""),
    ("magistral", 131_072, None, None, "t"),
    ("ministral", 131_072, None, None, ""),
    ("deepseek-v4", 1_000_000, None, None, "t"),
    ("deepseek", 131_072, None, None, "t"),
    ("qwen3-coder", 262_144, None, None, ""),
    ("qwen3-vl", 262_144, None, None, "i"),
    ("qwen3", 40_960, None, None, "t"),
    ("qwen2.5-coder", 32_768, None, None, "x"),
    ("qwen2.5", 32_768, None, None, ""),
    ("qwq", 131_072, None, None, "t"),
    ("llama-4", 1_048_576, None, None, "i"),
    ("llama4", 1_048_576, None, None, "i"),
    ("llama-3.2-vision", 131_072, None, None, "i"),
    ("llama3.2-vision", 131_072, None, None, "i"),
    ("llama-3", 131_072, None, None, ""),
    ("llama3.1", 131_072, None, None, ""),
    ("llama3.2", 131_072, None, None, ""),
    ("llama3.3", 131_072, None, None, ""),
    ("llama3", 8_192, None, None, ""),
    ("gemma3", 131_072, None, None, "ix"),
    ("gemma-3", 131_072, None, None, "ix"),
    ("phi4", 16_384, None, None, ""),
    ("kimi-k2", 131_072, None, None, "t"),
)


#: A model of at most so many billion parameters is a small one wherever it runs.
SMALL_BILLIONS: Final = 4.5
#: One of at most so many is told what it may write next, where its server takes that and where it is sure,
GUIDED_BILLIONS: Final = 2.0
#: and of at most so many always: it makes one change in a turn.
TINY_BILLIONS: Final = 1.0

#: `7b`, `1.5B`, `135M`, `8x7b`, `e4b`: a number that no other word goes into.
_SIZE = lazy(r"(?i)(?<![a-z0-9.])(?:(\d+)x)?e?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")


def billions_of(model: str) -> float | None:
    """Return the parameters in billions that a model's name gives (`qwen2.5-coder:1.5b`), the most of several; else None."""
    if not any(sign.isdigit() and unit in _UNITS for sign, unit in pairwise(model.lower())):
        return None  # most names say nothing
    found = re.findall(_SIZE(), model)
    sizes = [
        int(times or 1) * float(number) * _UNITS[unit.lower()] for times, number, unit in found
    ]
    return max(sizes, default=None)


_UNITS = {"b": 1.0, "m": 0.001}
