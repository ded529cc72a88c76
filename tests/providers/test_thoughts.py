"""Thinking in the text of an answer: however it is cut into pieces, and never where an answer only talks about it."""

from collections.abc import Iterator

from rows import every_row
from ybs.core.events import TextStreamed, ThinkingStreamed
from ybs.core.messages import AssistantMessage, Text, Thinking
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.thoughts import without_thoughts


def cuts(text: str) -> Iterator[list[str]]:
    """Cut a text in every single place, and into single characters."""
    yield [text]
    yield [*text]
    for at in range(1, len(text)):
        yield [text[:at], text[at:]]


def drafted(pieces: list[str]) -> tuple[AssistantMessage, str, str]:
    draft = Assembly("m", "openai")
    events = [event for piece in pieces for event in draft.add_text(piece)]
    events += draft.close_text()
    said = "".join(each.text for each in events if isinstance(each, TextStreamed))
    thought = "".join(each.text for each in events if isinstance(each, ThinkingStreamed))
    return draft.message(), said, thought


def thinking_in(message: AssistantMessage) -> str:
    return "".join(part.text for part in message.content if isinstance(part, Thinking))


OPENED = [
    ("<think>\nhm\n</think>\n\ndone", "\nhm\n", "done"),
    ("<thinking>hm</thinking>done", "hm", "done"),
    ("\n <think>hm</think> done", "hm", "done"),
    ("<think>a</think>\n<think>b</think>done", "ab", "done"),
    ("<think>hm</thinking>done", "hm", "done"),
    ("<think></think>\n\ndone", "", "done"),  # Qwen, told not to think
    ("</think>\n\ndone", "", "done"),  # DeepSeek 3.1, told not to think
    ("<think>never closed", "never closed", ""),
    ("<think>write `</think>` there</think>done", "write `</think>` there", "done"),
    ("[THINK]hm[/THINK]done", "hm", "done"),
    ("<thought>hm</thought>done", "hm", "done"),  # EXAONE
    ("<THINK>hm</THINK>done", "hm", "done"),
    ("<REASONING_SCRATCHPAD>hm</REASONING_SCRATCHPAD>done", "hm", "done"),  # Hermes
    ("<|START_THINKING|>hm<|END_THINKING|>done", "hm", "done"),
    ("<|channel>thought\nhm<channel|>done", "\nhm", "done"),
    ("◁think▷hm◁/think▷done", "hm", "done"),
    (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>done",
        "hm",
        "done",
    ),
    (
        "<|channel|>analysis<|message|>hm<|start|>assistant<|channel|>final<|message|>done",
        "hm",
        "done",
    ),
]


@every_row(("text", "thought", "answer"), OPENED, ids=lambda row: str(row)[:30])
def test_thinking_that_opens_an_answer_is_thinking_however_it_is_cut(text, thought, answer):
    for pieces in cuts(text):
        message, said, thinking = drafted(pieces)
        assert (message.text, thinking_in(message)) == (answer, thought), pieces
        assert (said, thinking) == (answer, thought), pieces


@every_row(
    "text",
    [
        "Use `<think>draft</think>` as the example.",
        "```html\n<think>x</think>\n```\nThat is the tag.",
        "The tags <think> and </think> mark it.",
        "It ends with '</think>', always.",
        "A line of code:\n```\nfoo\n</think>\nbar\n```\n",
        "<thin> is not one, and <b>this</b> neither.",
        "First the answer.\n<think>and then</think>",
        "[1, 2, 3]",
        "<",
        "\n\n",
        "  indented",
        "The regex matches </think> tags.",
    ],
)
def test_an_answer_that_talks_about_it_is_whole(text: str):
    for pieces in cuts(text):
        message, said, thinking = drafted(pieces)
        assert (message.text, thinking_in(message)) == (text, ""), pieces
        assert (said, thinking) == (text, ""), pieces


@every_row(
    ("text", "thought", "answer"),
    [
        ("The user wants x.\n</think>\n\ndone", "The user wants x.\n", "done"),
        ('internal reasoning\n</think>{"a": 1}', "internal reasoning\n", '{"a": 1}'),
        ("hm</think>done", "hm", "done"),
        ("only thinking\n</think>", "only thinking\n", ""),
    ],
)
def test_a_closing_tag_whose_opening_one_was_in_the_prompt_ends_thinking(text, thought, answer):
    for pieces in cuts(text):
        message, _, _ = drafted(pieces)
        assert (message.text, thinking_in(message)) == (answer, thought), pieces
    assert without_thoughts(text) == answer


def test_thinking_before_a_call_stays_before_it():
    draft = Assembly("m", "openai")
    draft.add_text("<think>which file? </thi")
    draft.add_call_delta(0, id="c1", name="look", arguments="{}")
    content = draft.message().content
    assert content[0] == Thinking(text="which file? </thi", provider="openai")
    assert [type(part).__name__ for part in content] == ["Thinking", "ToolCall"]


def test_thinking_in_a_field_of_its_own_may_leave_its_end_in_the_text():
    draft = Assembly("m", "openai")
    draft.add_thinking("hm")
    draft.add_text("</think>\n\ndone")
    assert draft.message().content == (Thinking(text="hm", provider="openai"), Text(text="done"))


@every_row("held", ["<", "[", "<thin", "\n"])
def test_what_is_held_back_counts_as_said(held: str):
    draft = Assembly("m", "openai")
    assert draft.add_text(held) == ()
    assert not draft.is_empty
    assert draft.close_text() == (TextStreamed(text=held),)
