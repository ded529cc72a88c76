"""The model is told how a plan ends when the mode begins, once."""

from ybs.core.conversation import Conversation
from ybs.core.messages import UserMessage
from ybs.core.ports import Turn
from ybs.guards.planning import HOW, Planning


async def test_it_is_said_once_each_time_the_mode_begins():
    modes = iter([False, True, True, False, True])
    guard, conversation = Planning(lambda: next(modes)), Conversation()
    conversation.append(UserMessage.of("go"))
    counts: list[int] = []
    for _ in range(5):
        await guard.before_step(Turn(conversation, lambda _event: None))
        counts.append(
            sum(
                message == UserMessage.of(HOW, origin="context")
                for message in conversation.messages
            )
        )
    assert counts == [0, 1, 1, 1, 2]
