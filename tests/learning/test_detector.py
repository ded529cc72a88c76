"""What counts as a task that recurs, and what does not."""

import math

import pytest

from ybs.learning.detector import DAY_SECONDS, Cluster, Detector, DetectorState, PastRequest
from ybs.learning.normal import words_of

LOG = ("run git log", "read CHANGELOG.md", "edit CHANGELOG.md")
CHANGELOG = (
    "update the changelog for 1.2.0",
    "please add the changes to the changelog for 1.3.0",
    "changelog for 1.4.1 please",
    "bring the changelog up to date for 2.0",
)
#: Other work of a month, so that words have a rarity.
OTHER = (
    ("why does the login form crash", ("search", "read login.py")),
    ("fix the typo in the footer", ("search", "edit footer.html")),
    (
        "add a progress bar to the upload dialog",
        ("read upload.ts", "edit upload.ts", "run npm test"),
    ),
    ("explain how the cache is invalidated", ("search", "read cache.py")),
    ("rename get_user to fetch_user", ("search", "edit users.py", "run pytest")),
    (
        "the invoice export has the wrong total",
        ("read invoice.py", "edit invoice.py", "run pytest"),
    ),
    ("make the search index faster", ("read index.py", "edit index.py", "run pytest")),
    ("remove the compat layer", ("search", "delete compat.py", "run pytest")),
)


def month(*asked: tuple[float, str, tuple[str, ...]]) -> Detector:
    """Return a detector that has seen other work, and each of these on its day."""
    detector = Detector(DetectorState())
    for day, (text, steps) in enumerate(OTHER):
        detector.add(PastRequest(text, steps, day * DAY_SECONDS))
    for day, text, steps in asked:
        detector.add(PastRequest(text, steps, day * DAY_SECONDS))
    return detector


def offered(detector: Detector) -> list[list[str]]:
    return [[each.text for each in cluster.last] for cluster in detector.recurring()]


def test_a_task_in_other_words_each_time_recurs() -> None:
    detector = month(*((day * 7.0, text, LOG) for day, text in enumerate(CHANGELOG)))
    assert list(CHANGELOG) in offered(detector)


def test_two_days_are_too_few() -> None:
    detector = month(*((day, text, LOG) for day, text in zip((1, 1, 2, 2), CHANGELOG, strict=True)))
    assert not any(CHANGELOG[0] in texts for texts in offered(detector))


def test_the_same_thing_tried_again_within_a_day_does_not_recur() -> None:
    again = (
        (5 + number / 100, "the tests of the parser hang", ("run pytest",)) for number in range(9)
    )
    assert not any("the tests of the parser hang" in texts for texts in offered(month(*again)))


def test_the_same_verb_for_other_things_does_not_recur() -> None:
    things = ("invoice export", "login form", "mail queue", "rate limiter", "user table")
    faults = ("memory leak", "wrong total", "typo", "race condition", "dead link")
    asked = (
        (
            day * 3.0,
            f"fix the {fault} in the {thing}",
            ("search", f"edit {thing[:4]}.py", "run pytest"),
        )
        for day, (fault, thing) in enumerate(zip(faults, things, strict=True))
    )
    assert not any("fix the typo in the mail queue" in texts for texts in offered(month(*asked)))


def test_one_task_in_two_clusters_is_offered_once() -> None:
    detector = month(*((day * 2.0, text, LOG) for day, text in enumerate(CHANGELOG * 3)))
    assert sum(any("changelog" in text for text in texts) for texts in offered(detector)) == 1


def test_what_says_nothing_is_no_request() -> None:
    detector = Detector(DetectorState())
    assert detector.add(PastRequest("", (), 0.0)) is None
    assert detector.add(PastRequest("1.2.3 https://example.org", (), 0.0)) is None
    assert detector.known.requests == 0


def test_a_detector_goes_on_from_what_was_saved() -> None:
    import msgspec

    half, whole = month(), month()
    for day, text in enumerate(CHANGELOG):
        whole.add(PastRequest(text, LOG, (day * 7.0) * DAY_SECONDS))
        half = Detector(msgspec.json.decode(msgspec.json.encode(half.known), type=DetectorState))
        half.add(PastRequest(text, LOG, (day * 7.0) * DAY_SECONDS))
    assert offered(half) == offered(whole)


@pytest.mark.integration
def test_memory_is_bounded_and_what_recurs_stays() -> None:
    detector = month(*((day * 7.0, text, LOG) for day, text in enumerate(CHANGELOG)))
    for number in range(2_000):
        word = "".join(chr(97 + int(digit)) for digit in str(number + 12_345))
        detector.add(PastRequest(f"{word}x {word[::-1]}y thing{word}", (), 30.0 * DAY_SECONDS))
    assert len(detector.known.clusters) <= 1_500
    assert list(CHANGELOG) in offered(detector)


@pytest.mark.integration
def test_what_was_met_long_ago_is_forgotten_when_there_is_no_room() -> None:
    detector = month(*((day * 7.0, text, LOG) for day, text in enumerate(CHANGELOG)))
    for number in range(2_000):
        word = "".join(chr(97 + int(digit)) for digit in str(number + 12_345))
        detector.add(PastRequest(f"{word}x {word[::-1]}y", (), 200.0 * DAY_SECONDS))
    assert not any(
        "changelog" in words_of(each.last[-1].text) for each in detector.known.clusters.values()
    )


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "\0\ud800", "```\n" * 3_000, "🦊 " * 500, "$(rm -rf /)"]
)
def test_any_text_can_be_added(text: str) -> None:
    cluster = Detector(DetectorState()).add(PastRequest(text, ("run x", ""), 1.0))
    assert cluster is None or all(map(math.isfinite, cluster.words.values()))


def test_the_mean_of_two_clusters_counts_both() -> None:
    one, other = Cluster(id=1), Cluster(id=2)
    for day, cluster in enumerate((one, one, one, other)):
        cluster.join(PastRequest("a b", (), day * DAY_SECONDS), {"fox": float(cluster is one)}, {})
    one.merge(other)
    assert (one.count, one.days, one.words) == (4, [0, 1, 2, 3], {"fox": 0.75})
