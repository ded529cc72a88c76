import pytest

from rows import every_row
from ybs.core.errors import ConfigError
from ybs.providers.wire import quirks
from ybs.providers.wire.quirks import Quirks, adjust, learn, refuses_tools


def test_an_unknown_quirk_is_refused_and_the_known_ones_are_named():
    with pytest.raises(ConfigError, match=r"providers\.mine\.quirks.*(?s:.)*max_tokens_field"):
        adjust(Quirks(), {"max_token_field": "x"}, where="providers.mine.quirks")


def test_a_quirk_of_the_wrong_type_is_refused():
    with pytest.raises(ConfigError, match="sees_images"):
        adjust(Quirks(), {"sees_images": "maybe"}, where="w")


def test_a_refusal_that_speaks_of_no_tool_is_not_searched_for_one(monkeypatch: pytest.MonkeyPatch):
    searched: list[bool] = []
    search = quirks._NO_TOOLS
    monkeypatch.setattr(quirks, "_NO_TOOLS", lambda: (searched.append(True), search())[1])
    assert not refuses_tools("404 page not found")
    assert not searched
    assert refuses_tools("This model does not support Functions")
    assert refuses_tools("tool use is not supported")


def test_single_fields_are_overridden_and_the_others_stay():
    declared = Quirks(call_id_chars=9, streams=False)
    changed = adjust(declared, {"streams": True, "reasoning_fields": ["x"]}, where="w")
    assert changed == Quirks(call_id_chars=9, streams=True, reasoning_fields=("x",))
    assert adjust(declared, {}, where="w") is declared


@every_row(
    ("refusal", "expected"),
    [
        ("Unknown field: stream_options", Quirks(sends_stream_options=False)),
        ("Use 'max_completion_tokens' instead.", Quirks(max_tokens_field="max_completion_tokens")),
        ("Unsupported value: 'temperature'", Quirks(accepts_temperature=False)),
        ("Streaming is not supported", Quirks(streams=False)),
        (
            "Conversation roles must alternate user/assistant/user/assistant/...",
            Quirks(wants_alternating_roles=True),
        ),
        ("To use function tools, set reasoning_effort to 'none'", Quirks(reasoning_effort="none")),
        (
            "Unsupported value: 'xhigh' is not supported with the 'm' model. Supported values are: 'low', 'medium', and "
            "'high'. (reasoning_effort)",
            Quirks(efforts=("low", "medium", "high")),
        ),
        ("Unrecognized request argument supplied: reasoning_effort", Quirks(effort_form="no")),
        ('"qwen2.5" does not support thinking', Quirks(effort_form="no")),
        ("Budget 0 is invalid. This model only works in thinking mode.", Quirks(effort_form="no")),
        ("output_config: Extra inputs are not permitted", Quirks(effort_form="no")),
    ],
)
def test_a_refusal_teaches(refusal: str, expected: Quirks):
    learned = learn(Quirks(), refusal)
    assert learned is not None
    assert learned[0] == expected


def test_a_server_that_takes_no_grammar_is_asked_without():
    learned = learn(Quirks(takes_grammar=True), "Unknown parameter: 'grammar'")
    assert learned == (Quirks(), "")


@every_row(
    "said",
    [
        "Upstream provider: invalid tool schema",
        "Invalid value for temperature: must be <= 1",
        "the upstream server does not support this model",
    ],
)
def test_a_word_within_a_word_or_a_bad_value_teaches_nothing(said: str):
    assert learn(Quirks(), said) is None


def test_what_was_learned_is_not_learned_again():
    assert learn(Quirks(streams=False), "stream is not supported") is None
    assert learn(Quirks(), "something else") is None


def test_pictures_are_given_up_only_where_there_are_any_and_it_is_said():
    assert learn(Quirks(), "image input is not supported") is None
    learned = learn(Quirks(), "image input is not supported", has_images=True)
    assert learned is not None
    assert learned[0] == Quirks(sees_images=False)
    assert "{model} does not accept pictures" in learned[1]


@every_row(
    "said",
    [
        "registry.ollama.ai/library/gemma:2b does not support tools",
        "This model doesn't support the use of tools",
        "`tool calling` is not supported with this model",
        "Function calling is not supported for this model: some/model",
        "Unsupported parameter: 'tools' is not supported with this model.",
        "No endpoints found that support tool use. To learn more about provider routing, visit the docs.",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tools param requires --jinja flag",
        "deepseek-reasoner does not support Function Calling",
    ],
)
def test_tools_are_given_up_where_a_server_says_that_the_model_takes_none(said: str):
    learned = learn(Quirks(), said, has_tools=True)
    assert learned is not None
    assert learned[0] == Quirks(takes_tools=False)
    assert "{model} does not accept tools" in learned[1]
    assert learn(Quirks(), said) in (None, learn(Quirks(), said, has_tools=False))
    assert learn(Quirks(takes_tools=False), said, has_tools=True) != learned


@every_row(
    "said",
    [
        "messages.2: unexpected tool_use_id found in tool_result blocks",
        "Invalid schema for function 'git': type is not supported",
        "tools.0.function.parameters: unknown field",
        "parallel_tool_calls is not supported",
        "Streaming is not supported with tools",
    ],
)
def test_what_is_wrong_with_a_call_or_a_schema_gives_up_no_tools(said: str):
    learned = learn(Quirks(), said, has_tools=True)
    assert learned is None or learned[0].takes_tools
