"""How long an arm rests after an outage."""

from ybs.router.selection import Breaker


def test_each_failure_in_a_row_doubles_the_rest_up_to_a_limit() -> None:
    now = [100.0]
    breaker = Breaker(lambda: now[0], first=4, most=30)
    pauses: list[float] = []
    for _ in range(5):
        pauses.append(breaker.fail("a"))
        now[0] += pauses[-1]
        assert breaker.rest_of("a") == 0
    assert pauses == [4, 8, 16, 30, 30]
    assert breaker.rest_of("b") == 0


def test_a_server_that_says_how_long_is_waited_for_beyond_the_limit() -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0], first=4, most=30)
    assert breaker.fail("a", retry_after=3_600) == 3_600
    assert breaker.fail("a", retry_after=1) == 3_600
    now[0] = 3_599
    assert breaker.rest_of("a") == 1


def test_an_answer_ends_the_rest_and_the_count() -> None:
    breaker = Breaker(lambda: 0.0, first=4, most=30)
    breaker.fail("a")
    breaker.fail("a")
    breaker.succeed("a")
    assert breaker.rest_of("a") == 0
    assert breaker.fail("a") == 4
    breaker.succeed("b")


def test_an_arm_that_has_rested_is_suspected_less_and_less_until_it_answers() -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0], first=4, most=30)
    assert breaker.suspicion("a") == 0
    breaker.fail("a", retry_after=100)
    found: list[float] = []
    for now[0] in (50, 100, 104, 112):
        found.append(breaker.suspicion("a"))
    assert found == [1, 1, 0.5, 0.125]
    breaker.succeed("a")
    assert breaker.suspicion("a") == 0
