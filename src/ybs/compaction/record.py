"""The older part of a conversation as text to be summarised, in pieces that fit a request."""

from collections.abc import Collection, Iterator, Sequence

from ybs.compaction.eliding import one_line
from ybs.compaction.verbatim import words_of
from ybs.core.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage

#: So many characters of each are shown where there is room: the person's words, an answer, a call, an output.
_WORDS, _ANSWER, _CALL, _OUTPUT = 1_200, 1_200, 240, 500
#: With more pieces than this the texts are shown shorter.
MOST_PIECES = 6
_SMALLEST_SHARE = 1 / 16


def pieces_of(
    messages: Sequence[Message], chars: int, left_out: Collection[str]
) -> list[tuple[list[Message], str]]:
    """Cut messages into pieces of at most so many characters: the messages of each, and their text.

    `left_out` are words of the person that are kept no longer. The oldest pieces are left out where there are too many.
    """
    share = 1.0
    while True:
        pieces = list(_packed(messages, chars, share, left_out))
        if len(pieces) <= MOST_PIECES:
            return pieces
        if share <= _SMALLEST_SHARE:
            return pieces[-MOST_PIECES:]
        share /= 2


def _packed(
    messages: Sequence[Message], chars: int, share: float, left_out: Collection[str]
) -> Iterator[tuple[list[Message], str]]:
    some: list[Message] = []
    texts: list[str] = []
    size = 0
    for message in messages:
        text = _told(message, share, left_out)[:chars]
        if texts and size + len(text) > chars:
            yield some, "\n".join(texts)
            some, texts, size = [], [], 0
        some.append(message)
        if text:
            texts.append(text)
            size += len(text) + 1
    if texts:
        yield some, "\n".join(texts)


def _told(message: Message, share: float, left_out: Collection[str]) -> str:
    """Return a message as text; what was said stands behind a margin, so that it cannot pass for another speaker."""
    match message:
        case UserMessage(origin="summary"):
            said = [words for words in words_of([message]) if words in left_out]
            return "\n".join(_block("PERSON", words, int(_WORDS * share)) for words in said)
        case UserMessage(origin="guard" | "context"):
            return ""
        case UserMessage():
            name = "PERSON" if message.origin == "person" else "PERSON'S COMMAND"
            files = [one_line(p.text, 100) for p in message.content[1:] if isinstance(p, Text)]
            words = _block(name, message.words, int(_WORDS * share))
            return "\n".join([words, *(f"  | attached: {file}" for file in files)])
        case AssistantMessage():
            calls = (_call(call, int(_CALL * share)) for call in message.calls)
            text = [_block("ASSISTANT", message.text, int(_ANSWER * share))]
            return "\n".join([*(text if message.text.strip() else []), *calls])
        case ToolResult():
            name = f"{'FAILED' if message.is_error else 'RESULT'} of {message.name}"
            return _block(name, message.output, int(_OUTPUT * share))


def _call(call: ToolCall, most: int) -> str:
    given = call.invalid or bytes(call.arguments).decode(errors="replace")
    return f"CALL {call.name}\n  | {one_line(given, most)}"


def _block(speaker: str, text: str, most: int) -> str:
    text = text.strip()
    if len(text) > most:
        head = most * 2 // 3
        text = f"{text[:head]} … {text[len(text) - (most - head) :]}"
    return speaker + "".join(f"\n  | {line}" for line in text.splitlines())
