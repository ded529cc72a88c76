"""`kill -9` at random moments: nothing that was acknowledged is lost, and no file is half written."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from killing import Player, RepeatingServer, Victim
from serving import serving

KILLS = 36
SESSIONS = 6
KILLED = -9


def killed_again_and_again(folder: Path, seed: int) -> tuple[int, list[str]]:
    """Kill a session until its share is done, let it come to an end, and return the kills and what was wrong."""
    player, kills = Player(), 0
    with serving(cast("Any", [player]), RepeatingServer) as server:
        victim = Victim(folder, player, server.url, Random(seed), in_git=seed % 4 == 0)
        while kills < KILLS // SESSIONS and not player.problems:
            kills += victim.run(is_killed=True) == KILLED
        for _ in range(2):
            if not player.problems and (code := victim.run()) != 0:
                player.problems.append(f"the last turns ended with {code}")
        if not player.problems:
            victim.look_at_rest()
    return kills, [f"seed {seed}: {each}" for each in player.problems]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_that_was_acknowledged_is_lost_and_no_file_is_half_written(tmp_path: Path) -> None:
    seed = int(os.environ.get("YBS_TEST_SEED") or time.time())
    print(f"seed {seed}")  # noqa: T201 - what is needed to see it again
    seeds = [seed + number for number in range(SESSIONS)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(killed_again_and_again, [tmp_path / str(n) for n in seeds], seeds))
    assert [problem for _, problems in done for problem in problems] == []
    assert sum(kills for kills, _ in done) == KILLS
