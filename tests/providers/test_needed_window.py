"""How large a window a request needs."""

from msgspec import Raw

from rows import every_row
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec
from ybs.providers.wire.needed_window import NeededWindow, bytes_of

PICTURE = Image(media_type="image/png", data=b"x" * 100_000)
CALL = ToolCall(id="1", name="t", arguments=Raw(b'{"a":"' + b"x" * 92 + b'"}'))


@every_row(
    ("message", "size"),
    [
        (UserMessage.of("x" * 100), 100),
        (UserMessage.of("\N{CJK UNIFIED IDEOGRAPH-4E00}" * 100), 300),
        (UserMessage(content=(Text(text="ab"), PICTURE)), 4002),
        (AssistantMessage(content=(Text(text="ab"), CALL)), 102),
        (ToolResult(call_id="1", name="t", output="abc", images=(PICTURE,)), 4003),
    ],
)
def test_every_kind_of_message_counts(message: Message, size: int):
    assert bytes_of([message]) == size


def test_the_window_has_room_for_prompt_tools_messages_and_the_answer():
    tool = ToolSpec(name="t", description="d" * 10_000, parameters=Raw(b"{}"))
    needed = NeededWindow()
    request = Request("s" * 10_000, (UserMessage.of("x" * 10_000),), (tool,))
    assert needed.fit(request, max_tokens=1000, most=100_000) == 32_768
    assert needed.fit(Request("", (), ()), max_tokens=1, most=100_000) == 32_768


def test_no_more_is_asked_for_than_the_model_has():
    needed = NeededWindow()
    assert needed.fit(Request("x" * 90_000, (), ()), max_tokens=1, most=4096) == 4096
