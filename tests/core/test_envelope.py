"""Who tells an event."""

import pytest

from ybs.core.envelope import MAIN, Envelope
from ybs.core.events import TurnFinished


def test_the_main_agent_is_told_from_the_others_and_nobody_changes_what_was_told():
    told = Envelope("s", MAIN, TurnFinished(reason="done"))
    assert told.is_main
    assert not Envelope("s", "explorer", told.event).is_main
    with pytest.raises(AttributeError):
        told.agent = "explorer"
