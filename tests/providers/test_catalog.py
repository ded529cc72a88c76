import pytest

from rows import every_row
from ybs.core.messages import Usage
from ybs.providers.catalog import ModelFacts, Price, billions_of, facts_of, window_of


def test_an_unknown_model_is_unknown():
    assert facts_of("my-own-model") == ModelFacts()
    assert window_of(ModelFacts(), is_local=True) == 32_768
    assert window_of(ModelFacts(), is_local=False) == 128_000


def test_the_longest_beginning_counts():
    assert facts_of("gpt-4.1-mini-2025-04-14").price == Price(0.4, 1.6, 0.1)
    assert facts_of("gpt-4.1-2025-04-14").price == Price(2, 8, 0.5)
    assert facts_of("gpt-4o").window == 128_000
    assert facts_of("gpt-4-0613").window == 8_192


def test_a_maker_in_front_and_capitals_do_not_matter():
    assert facts_of("OpenAI/GPT-4.1") == facts_of("models/gpt-4.1") == facts_of("gpt-4.1")


@every_row(
    ("model", "images", "thinks", "temperature"),
    [
        ("gpt-6-sol", True, True, False),
        ("gpt-4o", True, False, True),
        ("claude-sonnet-5-5", True, True, False),
        ("claude-sonnet-4-5", True, True, True),
        ("qwen2.5-coder:14b", False, False, True),
        ("deepseek-r1:8b", False, True, True),
    ],
)
def test_abilities(model: str, images: bool, thinks: bool, temperature: bool):
    facts = facts_of(model)
    assert (facts.sees_images, facts.thinks, facts.accepts_temperature) == (
        images,
        thinks,
        temperature,
    )


def test_a_local_window_is_not_larger_than_memory_allows_unasked():
    assert window_of(facts_of("llama3.1:8b"), is_local=True) == 32_768
    assert window_of(facts_of("llama3:8b"), is_local=True) == 8_192
    assert window_of(facts_of("llama3.1:8b"), is_local=False) == 131_072


def test_cost_counts_cache_reads_and_writes_apart():
    price = Price(2, 10, 0.2, 2.5)
    usage = Usage(
        input_tokens=1_000_000,
        cached_tokens=500_000,
        cache_write_tokens=100_000,
        output_tokens=10_000,
    )
    assert price.cost_of(usage) == pytest.approx(0.4 * 2 + 0.5 * 0.2 + 0.1 * 2.5 + 0.01 * 10)


def test_without_a_price_for_writing_it_costs_as_input():
    usage = Usage(input_tokens=1_000_000, cache_write_tokens=1_000_000)
    assert Price(3, 1, 1).cost_of(usage) == 3


def test_long_requests_cost_more():
    price = Price(1, 10, 0.1, None, 200_000)
    at_the_bound = price.cost_of(Usage(input_tokens=200_000, output_tokens=1000))
    beyond = price.cost_of(Usage(input_tokens=200_001, output_tokens=1000))
    assert at_the_bound == pytest.approx(0.21)
    assert beyond == pytest.approx(0.400002 + 0.015)


def test_counts_that_do_not_add_up_cost_nothing_negative():
    assert Price(1, 1, 0).cost_of(Usage(input_tokens=5, cached_tokens=50)) == 0


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
