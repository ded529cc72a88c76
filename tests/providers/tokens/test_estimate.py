"""How many tokens a request has: estimated, and corrected by what the provider reports."""

from contextlib import aclosing
from pathlib import Path
from random import Random

from msgspec import Raw
from msgspec.structs import replace

from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec
from ybs.providers.tokens import (
    CLAUDE,
    GEMINI,
    OPENAI,
    OTHER,
    PICTURE_TOKENS,
    TokenCounter,
    estimate,
    family_of,
)
from ybs.providers.watched import WatchedModel
from ybs.testing import ScriptedModel, answer

TEXTS = Path(__file__).parents[3] / "bench" / "token_texts"
CODE = (
    "    def _learn(self, request: Request, usage: Usage) -> None:\n        if usage.input_tokens > 0:\n"
    "            self.counter.learn(request, usage)\n"
)
DATA = '[{"id": 482913, "file": "src/app.py", "hash": "9f3a77c01b2e", "is_open": false}, {"id": 17, "size": 20488}]\n'
LISTING = "-rw-r--r-- 1 root root  4096 Nov 22 09:08 token_rates.py\n"
#: What the real tokenizers count for the texts of `_samples`.
COUNTED = {
    "cl100k": (221, 410, 379, 102, 150, 150),
    "o200k": (221, 329, 274, 102, 150, 150),
    "claude": (222, 479, 345, 118, 156, 138),
    "gemini": (222, 342, 247, 129, 192, 192),
    "llama3": (221, 410, 280, 102, 150, 150),
    "qwen": (221, 400, 236, 102, 180, 180),
    "deepseek": (222, 405, 221, 111, 153, 150),
    "mistral": (223, 362, 346, 108, 180, 186),
}


def _samples() -> list[str]:
    prose = [(TEXTS / f"{n}.txt").read_text("utf-8") for n in ("english", "german", "chinese")]
    return [*prose, CODE * 3, DATA * 3, LISTING * 6]


def counter_for(model: str = "qwen3:14b") -> TokenCounter:
    return TokenCounter("own", model)


def used(tokens: int, output: int = 0) -> Usage:
    return Usage(input_tokens=tokens, output_tokens=output)


def test_estimates_are_near_what_real_tokenizers_count():
    """One set of rates for all families: Chinese differs most among them, and a first answer corrects it."""
    estimates = list(map(estimate, _samples()))
    errors = {
        family: [abs(e - c) / c for e, c in zip(estimates, counted, strict=True)]
        for family, counted in COUNTED.items()
    }
    assert {family: worst for family, its in errors.items() if (worst := max(its)) > 0.5} == {}
    assert {family: mean for family, its in errors.items() if (mean := sum(its) / 6) > 0.17} == {}


def test_every_text_has_an_estimate_that_is_not_absurd():
    odd = {
        "": (0, 0),
        "a": (1, 2),
        " " * 8_000: (100, 2_500),
        "-" * 8_000: (100, 2_500),
        "\ud800" * 10: (1, 60),
        "\0" * 100: (50, 300),
        "😀" * 100: (80, 500),
        "a" * 8_000: (250, 4_000),
        "7" * 900: (290, 1_400),
    }
    wrong = [
        (text[:3], size)
        for text, (least, most) in odd.items()
        if not least <= (size := estimate(text)) <= most
    ]
    assert not wrong


def test_a_model_belongs_to_a_family_by_its_name_or_by_who_provides_it():
    rows = {
        ("openai", "gpt-6-sol"): OPENAI,
        ("openrouter", "openai/gpt-4.1"): OPENAI,
        ("own", "o3"): OPENAI,
        ("own", "yolo1-7b"): OTHER,
        ("anthropic", "next"): CLAUDE,
        ("bedrock", "claude-sonnet-5-5"): CLAUDE,
        ("google", "next"): GEMINI,
        ("ollama", "gemma3:4b"): GEMINI,
        ("ollama", "phi4"): OTHER,
    }
    assert {row: family_of(*row) for row in rows} == rows


def test_after_three_answers_the_estimate_is_right_although_the_rates_are_not():
    """The provider counts a third more than the rates say, and 400 tokens that nobody sees."""
    random, counter = Random(5), counter_for()
    samples, messages = _samples(), list[Message]()
    errors: list[float] = []
    for number in range(20):
        messages.append(UserMessage.of(random.choice(samples)[: random.randrange(40, 2_000)]))
        request = Request("Be kind. " * 200, messages)
        true = round(400 + 1.33 * counter.meter.request(request))
        errors.append(abs(counter.tokens(request) - true) / true)
        counter.learn(request, used(true))
        messages.append(AssistantMessage(content=(Text(text=random.choice(samples)[:300]),)))
        assert counter.correction.answers == number + 1
    assert errors[0] > 0.2
    assert max(errors[3:]) <= 0.05
    assert abs(counter.correction.ratio - 1.33) < 0.07
    after = Request("Be kind. " * 200, [UserMessage.of("A summary. " * 300), *messages[-2:]])
    true = 400 + 1.33 * counter.meter.request(after)
    assert abs(counter.tokens(after) - true) / true < 0.05, "what is hidden is known to stay"


def test_what_the_provider_counted_is_taken_as_it_is_and_its_answer_too():
    counter, messages = counter_for(), list[Message]([UserMessage.of("hello " * 50)])
    request = Request("system", messages)
    assert not counter.is_counted(request)
    counter.learn(request, used(700))
    assert (counter.tokens(request), counter.is_counted(request)) == (700, True)
    said = AssistantMessage(content=(Text(text="fine, thank you very much"),), usage=used(700, 13))
    answered = Request("system", [*messages, said])
    assert (counter.tokens(answered), counter.is_counted(answered)) == (713, True)
    thought = replace(said, usage=used(700, 900))  # most of it was thinking that is not sent back
    assert 700 < counter.tokens(Request("system", [*messages, thought])) < 730
    assert not counter.is_counted(Request("system", [*answered.messages, UserMessage.of("more")]))
    assert not counter.is_counted(Request("another", messages)), "another system prompt"
    other = Request("system", [UserMessage.of("hello " * 50)])
    assert not counter.is_counted(other), "equal words are not the same message"


def test_numbers_that_cannot_be_those_of_the_request_teach_nothing():
    counter, messages = counter_for(), list[Message]([UserMessage.of("hello " * 3_000)])
    request = Request("system", messages)
    size = counter.tokens(request)
    for reported in (0, -5, 40, size * 20):
        counter.learn(request, used(reported))
    assert (counter.tokens(request), counter.correction.answers) == (size, 0)
    counter.learn(request, used(size + 100))
    grown = Request("system", [*messages, UserMessage.of("and " * 500)])
    expected = counter.tokens(grown)
    counter.learn(grown, used(1_900))  # only what no cache held
    assert (counter.tokens(grown), counter.correction.answers) == (expected, 1)


def test_a_first_belief_that_all_later_numbers_contradict_is_given_up():
    counter, request = counter_for(), Request("", [UserMessage.of("hello " * 3_000)])
    size = counter.tokens(request)
    counter.learn(request, used(3 * size))
    for _ in range(3):
        counter.learn(request, used(size))
    assert counter.tokens(request) == size


def test_another_request_in_between_does_not_spoil_what_is_known():
    counter, request = counter_for(), Request("system " * 500, [UserMessage.of("hello " * 50)])
    counter.learn(request, used(2_000))
    counter.learn(Request("Sum up.", [UserMessage.of("old " * 5_000)]), used(5_400))
    assert counter.tokens(request) == 2_000


def test_pictures_tools_calls_and_thinking_are_counted_as_they_are_sent():
    counter = TokenCounter(
        "anthropic", "claude-sonnet-5-5", picture_size=lambda _data: (750, 1_000)
    )
    picture = Image(media_type="image/png", data=b"x" * 1_000_000)
    size = counter.meter.message
    bare = size(UserMessage.of("look"))
    assert size(UserMessage.of("look", picture)) == bare + 1_000
    unread = TokenCounter("anthropic", "claude-sonnet-5-5")
    assert unread.meter.message(UserMessage.of("look", picture)) == bare + PICTURE_TOKENS
    thought = Thinking(text="hm " * 400, signature="s" * 900, provider="anthropic")
    said = AssistantMessage(content=(thought, Text(text="yes")))
    assert size(said) > 300
    assert counter_for().meter.message(said) < 20, "no other provider is sent it"
    call = ToolCall(id="c", name="read_file", arguments=Raw(b'{"path": "a.txt"}'))
    assert 20 < size(AssistantMessage(content=(call,))) < 50
    result = ToolResult(call_id="c", name="read_file", output="", images=(picture,))
    assert 1_000 < size(result) < 1_020
    spec = ToolSpec(name="read_file", description="Read.", parameters=Raw(b'{"type":"object"}'))
    tools = [counter.tokens(Request("", (), [spec] * count)) for count in range(3)]
    assert tools[1] - tools[0] > tools[2] - tools[1] > 10


def recording_counter() -> tuple[TokenCounter, list[str]]:
    """Make a counter, and the list of the texts that it has counted."""
    counter, measured = counter_for(), list[str]()
    count = counter.meter.count

    def counting(text: str) -> float:
        measured.append(text)
        return count(text)

    counter.meter.count = counting
    return counter, measured


def test_a_message_is_measured_once_and_forgotten_with_its_conversation():
    counter, measured = recording_counter()
    messages = [UserMessage.of(f"number {number}") for number in range(200)]
    for end in (100, 150, 200):
        counter.tokens(Request("system", messages[:end]))
    assert len(measured) == 201
    counter.tokens(Request("system", messages[:2]))
    counter.tokens(Request("system", messages))
    assert len(measured) == 399


def test_messages_that_are_weighed_one_by_one_do_not_have_the_whole_measured_anew():
    counter, measured = recording_counter()
    messages = [UserMessage.of(f"number {number}") for number in range(200)]
    whole = counter.tokens(Request("system", messages))
    each = [counter.tokens(Request("", (message,))) for message in messages]
    assert counter.tokens(Request("system", messages)) == whole
    assert len([text for text in measured if text.startswith("number")]) == 200
    assert (each[0], each[-1]) == (7, 8)  # one digit, three


def test_messages_that_change_among_those_that_stay_are_measured_anew():
    """Old outputs are set aside in the midst of a conversation, which has the same ends then."""
    counter = counter_for()
    messages = [UserMessage.of(f"{number} " * 50) for number in range(100)]
    whole = counter.tokens(Request("", messages))
    messages[5:95] = [UserMessage.of("gone")] * 90
    smaller = counter.tokens(Request("", messages))
    assert smaller < whole / 4
    assert smaller == counter_for().tokens(Request("", messages))
    copies = [UserMessage.of(each.words) for each in messages]
    assert counter.tokens(Request("", copies)) == smaller
    assert counter.tokens(Request("", copies[:1])) < 200
    assert counter.tokens(Request("", copies)) == smaller


async def test_a_watched_model_teaches_the_counter_before_its_answer_is_told():
    counter = counter_for()
    model = WatchedModel(ScriptedModel([answer("fine", usage=used(432, 1))]), counter.learn)
    request = Request("system", [UserMessage.of("hello " * 200)])
    async with aclosing(model.stream(request)) as events:
        sizes = [counter.tokens(request) async for _ in events]
    assert (sizes[-1], model.name, model.window) == (432, "scripted", 32_768)
    assert sizes[0] != 432
