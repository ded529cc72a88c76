from collections.abc import Mapping

import pytest

from rows import every_row
from ybs.repo_map.rank import MOST_DEFINING, edges_among, page_rank, weight_of
from ybs.repo_map.tags import Tag, Tags


@every_row(
    "edges, personal",
    [
        ({}, {}),
        ({}, {1: 2.0}),
        ({1: {}}, {}),
        ({1: {2: 0.0}}, {}),
        ({1: {1: 5.0}}, {1: 1.0}),
        ({1: {2: 3.0}, 2: {1: 1.0}}, {7: 1.0}),
        ({1: {2: 1.0}, 3: {2: 1.0}}, {1: 0.0, 3: -2.0}),
        ({1: {2: 1e-300}, 2: {3: 1e300}}, {1: 1e-300}),
    ],
)
def test_the_ranks_of_any_graph_add_up_to_one(
    edges: Mapping[int, Mapping[int, float]], personal: Mapping[int, float]
) -> None:
    ranks = page_rank(edges, personal)
    above = {each for each, weight in personal.items() if weight > 0}
    assert set(ranks) >= above
    assert sum(ranks.values()) == pytest.approx(1.0 if ranks else 0.0)
    assert all(rank >= 0 for rank in ranks.values())


def test_rank_flows_along_the_edges_by_their_weights() -> None:
    edges = {1: {2: 3.0, 3: 1.0}, 4: {5: 1.0}}
    ranks = page_rank(edges, {1: 1.0})
    assert ranks[1] > ranks[2] > ranks[3] > ranks[4] == ranks[5] == 0
    assert ranks[2] == pytest.approx(3 * ranks[3])
    # By hand: x = 1 - 0.85 x, for all that flows away comes back at the end of the walk.
    assert ranks[1] == pytest.approx(1 / 1.85, abs=1e-5)
    alike = page_rank({1: {2: 1.0}, 3: {2: 1.0}}, {})
    assert alike[2] > alike[1] == alike[3] > 0


@pytest.mark.integration
def test_the_walk_ends_when_nothing_changes_and_is_the_same_each_time() -> None:
    edges = {n: {(n * 7 + k) % 500: 1.0 + k for k in range(5)} for n in range(500)}
    few, many = (page_rank(edges, {3: 1.0}, rounds=rounds) for rounds in (200, 10_000))
    assert few == many
    assert list(few.items()) == list(page_rank(edges, {3: 1.0}, rounds=200).items())
    assert page_rank(edges, {3: 1.0}, rounds=1) != few


def tags(defined: str, used: str) -> Tags:
    definitions = tuple(Tag(name, "function", 1, 2, name) for name in defined.split())
    return Tags(definitions, dict.fromkeys(used.split(), 4))


def test_files_are_linked_to_those_that_define_what_they_use() -> None:
    known = {
        1: tags("own", "own open_the_door x everywhere nowhere"),
        2: tags("y", "open_the_door"),
    }
    defining = {"own": [1, 9], "open_the_door": [2, 3], "x": [3], "everywhere": range(100, 200)}
    links = edges_among([1, 2, 8], known, lambda name: defining.get(name, ()))
    assert set(links.edges) == {1}
    assert links.edges[1] == {2: 20.0, 3: 22.0}
    asked = edges_among([1], known, lambda name: defining.get(name, ()), mentioned={"x"})
    assert asked.edges[1] == {2: 20.0, 3: 40.0}


def test_the_rank_that_comes_to_a_file_is_shared_among_its_names() -> None:
    known = {1: tags("", "open_the_door x"), 4: tags("", "x")}
    defining = {"open_the_door": [3], "x": [3, 5]}
    links = edges_among([1, 4], known, lambda name: defining[name])
    worth = links.worth_of_names({1: 0.5, 4: 0.2})
    assert worth[3]["open_the_door"] > worth[3]["x"] > worth[5]["x"] * 0.99 > 0
    flown = sum(sum(names.values()) for names in worth.values())
    assert flown == pytest.approx(0.7)
    assert links.worth_of_names({})[3]["x"] == 0


def test_a_name_counts_by_what_it_says() -> None:
    plain = weight_of("x", 1, is_mentioned=False)
    for name in ("snake_case", "camelCase", "kebab-case", "MixedCase", "HTTP_port"):
        assert weight_of(name, 1, is_mentioned=False) == 10 * plain, name
    for name in ("lowercase", "a_b", "UPPERCASE", "__init__"):
        assert weight_of(name, 1, is_mentioned=False) <= plain, name
    assert weight_of("_x", 1, is_mentioned=False) < plain < weight_of("x", 1, is_mentioned=True)
    assert weight_of("x", 6, is_mentioned=False) < weight_of("x", 5, is_mentioned=False)
    assert weight_of("x", MOST_DEFINING + 1, is_mentioned=True) == 0
    assert weight_of("x", 0, is_mentioned=True) == 0
