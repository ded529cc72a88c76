"""How large a model is, by its name."""

from rows import every_row
from ybs.providers.catalog import billions_of


@every_row(
    "name, billions",
    [
        ("qwen2.5-coder-1.5b", 1.5),
        ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1.5),
        ("Llama-3.2-3B-Instruct", 3.0),
        ("qwen3:14b", 14.0),
        ("SmolLM2-135M-Instruct", 0.135),
        ("mixtral-8x7b", 56.0),
        ("qwen3-30b-a3b", 30.0),
        ("gemma3n:e4b", 4.0),
        ("meta-llama/Llama-3.3-70B-Instruct", 70.0),
        ("gpt-4.1", None),
        ("phi-3-mini-4k", None),
        ("claude-haiku-4-5", None),
        ("b", None),
    ],
)
def test_the_name_says_how_large_a_model_is(name: str, billions: float | None):
    assert billions_of(name) == billions
