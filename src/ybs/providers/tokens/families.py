"""How families of models count what is not text: pictures, and what stands around messages, calls and tools."""

from typing import Final

from msgspec import Struct

#: What a picture weighs whose size cannot be read.
PICTURE_TOKENS: Final = 1_000


class Family(Struct, frozen=True, kw_only=True):
    """How a family counts. What stands around messages, calls, results and tools is in tokens.

    `with_tools` is what the first tool brings along.
    """

    per_message: float = 4.0
    per_call: float = 14.0
    per_result: float = 6.0
    per_tool: float = 12.0
    with_tools: float = 0.0
    pixels_per_token: int = 784
    least_per_picture: int = 0
    most_per_picture: int = 4_096

    def picture_tokens(self, size: tuple[int, int] | None) -> int:
        """Estimate what a picture of that many pixels weighs."""
        if size is None:
            return PICTURE_TOKENS
        weight = self.least_per_picture + size[0] * size[1] // self.pixels_per_token
        return min(weight, self.most_per_picture)


#: Sources: https://developers.openai.com/api/docs/guides/images-vision,
#: https://platform.claude.com/docs/en/build-with-claude/vision, https://ai.google.dev/gemini-api/docs/tokens.
OPENAI: Final = Family(pixels_per_token=1_024, least_per_picture=85, most_per_picture=1_536)
CLAUDE: Final = Family(with_tools=346.0, pixels_per_token=750, most_per_picture=1_600)
GEMINI: Final = Family(pixels_per_token=768 * 768 // 258, least_per_picture=258)
#: The chat templates of the open models write tools in instructions of their own.
OTHER: Final = Family(with_tools=60.0)
_OPENAI_NAMES: Final = ("gpt-", "chatgpt-", "codex-", "o1-", "o3-", "o4-")
_PROVIDERS: Final = {"openai": OPENAI, "anthropic": CLAUDE, "google": GEMINI}


def family_of(provider: str, model: str) -> Family:
    """Return how a model counts: by its own name, else by who provides it."""
    name = model.lower().rsplit("/", 1)[-1]
    if f"{name}-".startswith(_OPENAI_NAMES):
        return OPENAI
    if "claude" in name:
        return CLAUDE
    if "gemini" in name or "gemma" in name:
        return GEMINI
    return _PROVIDERS.get(provider, OTHER)
