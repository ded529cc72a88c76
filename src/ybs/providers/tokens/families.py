"""Families of models that share a tokenizer, and how each writes down what is not text."""

from typing import Final

from msgspec import Struct

#: What a picture weighs whose size cannot be read.
PICTURE_TOKENS: Final = 1_000


class Family(Struct, frozen=True, kw_only=True):
    """How a family counts. What stands around messages, calls, results and tools is in tokens.

    `encoding` is the name of its tokenizer in tiktoken; `with_tools` is what the first tool brings along.
    """

    name: str
    per_message: float = 4.0
    per_call: float = 14.0
    per_result: float = 6.0
    per_tool: float = 12.0
    with_tools: float = 0.0
    pixels_per_token: int = 784
    least_per_picture: int = 0
    most_per_picture: int = 4_096
    encoding: str = ""

    def picture_tokens(self, size: tuple[int, int] | None) -> int:
        """Estimate what a picture of that many pixels weighs."""
        if size is None:
            return PICTURE_TOKENS
        weight = self.least_per_picture + size[0] * size[1] // self.pixels_per_token
        return min(weight, self.most_per_picture)


#: Sources: https://developers.openai.com/api/docs/guides/images-vision,
#: https://platform.claude.com/docs/en/build-with-claude/vision, https://ai.google.dev/gemini-api/docs/tokens,
#: the chat templates of the open models.
FAMILIES: Final = {
    family.name: family
    for family in (
        Family(
            name="o200k",
            encoding="o200k_base",
            pixels_per_token=1_024,
            least_per_picture=85,
            most_per_picture=1_536,
        ),
        Family(
            name="cl100k",
            encoding="cl100k_base",
            pixels_per_token=1_024,
            least_per_picture=85,
            most_per_picture=1_536,
        ),
        Family(name="claude", with_tools=346.0, pixels_per_token=750, most_per_picture=1_600),
        Family(name="gemini", pixels_per_token=768 * 768 // 258, least_per_picture=258),
        Family(name="mistral", per_message=3.0),
        Family(name="llama3", per_message=5.0, with_tools=60.0),
        Family(name="qwen", per_message=5.0, per_call=18.0, with_tools=120.0),
        Family(name="deepseek", per_message=3.0),
        Family(name="default"),
    )
}
#: Beginnings of names, and what stands anywhere in one, in the order in which a name is compared.
_BEGINNINGS: Final = (
    (("gpt-3.5", "gpt-35", "gpt-4-"), "cl100k"),
    (("gpt-", "chatgpt-", "codex-", "o1-", "o3-", "o4-"), "o200k"),
)
_PARTS: Final = (
    (("claude",), "claude"),
    (("gemini", "gemma"), "gemini"),
    (("llama",), "llama3"),
    (("qwen", "qwq", "qvq"), "qwen"),
    (("deepseek",), "deepseek"),
    (
        ("mistral", "mixtral", "codestral", "devstral", "magistral", "ministral", "pixtral"),
        "mistral",
    ),
)
_PROVIDERS: Final = {
    "openai": "o200k",
    "anthropic": "claude",
    "google": "gemini",
    "mistral": "mistral",
}


def family_of(provider: str, model: str) -> Family:
    """Return the family of a model: by its own name, else by who provides it."""
    name = model.lower().rsplit("/", 1)[-1]
    for beginnings, family in _BEGINNINGS:
        if f"{name}-".startswith(beginnings):
            return FAMILIES[family]
    for parts, family in _PARTS:
        if any(part in name for part in parts):
            return FAMILIES[family]
    return FAMILIES[_PROVIDERS.get(provider, "default")]
