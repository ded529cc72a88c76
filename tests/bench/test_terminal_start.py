"""The bench of the start watches a real chat, and says so where there is none."""

import pytest
import terminal_start
from lab import Lab


@pytest.mark.integration
def test_what_draws_no_prompt_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_start, "YBS", "/bin/true")
    with Lab() as lab, pytest.raises(SystemExit, match="ybs has ended"):
        terminal_start.start(lab)


@pytest.mark.slow
def test_a_chat_is_measured_until_a_key_is_echoed() -> None:
    with Lab() as lab:
        cpu_seconds, wall_seconds = terminal_start.start(lab)
    assert cpu_seconds > 0.01
    assert 0.01 < wall_seconds < 10
