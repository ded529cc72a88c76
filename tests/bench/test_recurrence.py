"""The detector of recurring tasks on made-up users whose seeds were not looked at while it was tuned."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench/recurrence.py"


@pytest.mark.slow
@pytest.mark.scale
def test_what_recurs_is_found_and_little_else() -> None:
    command = [sys.executable, str(BENCH), "--users", "20", "--format", "json"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    figures = json.loads(done.stdout)
    assert figures["precision"] >= 0.90, figures
    assert figures["recall"] >= 0.85, figures
    assert figures["median_occurrence"] <= 4, figures
    assert figures["offers_a_week"] <= 2, figures
    assert figures["rhythms_within_a_tenth"] >= 0.90, figures
