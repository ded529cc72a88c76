from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ybs.config.schema import Config, LlmSettings
from ybs.config.tree import (
    Layer,
    Leaf,
    ValueOrigin,
    find,
    flatten,
    label,
    leaves_of,
    merge,
    put,
    values_of,
)

NAMES = st.sampled_from("abcd")
VALUES = st.none() | st.integers(0, 9) | st.lists(st.integers(0, 9), max_size=2)
OBJECTS = st.dictionaries(
    NAMES,
    st.recursive(VALUES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=6),
    max_size=4,
)


def tree_of(values: dict[str, Any], layer: Layer) -> Any:
    return label(values, ValueOrigin(layer, f"{layer} file"))


def flat(tree: Any) -> dict[Any, Any]:
    return {path: (leaf.value, leaf.origin) for path, leaf in leaves_of(tree)}


def own_part(values: dict[str, Any], mark: str) -> dict[str, Any]:
    """Rename the keys of the first floor, so that two objects share no setting."""
    return {"shared": {mark + name: value for name, value in values.items()}}


@pytest.mark.integration
@given(OBJECTS, OBJECTS, OBJECTS)
def test_merging_layers_of_disjoint_keys_is_associative(a: Any, b: Any, c: Any):
    one = tree_of(own_part(a, "1"), "system")
    two = tree_of(own_part(b, "2"), "user")
    three = tree_of(own_part(c, "3"), "home")
    left = merge(merge(one, two), three)
    right = merge(one, merge(two, three))
    assert flat(left) == flat(right)
    assert flat(merge(two, one)) == flat(merge(one, two))


@pytest.mark.integration
@given(OBJECTS, OBJECTS)
def test_the_later_layer_wins_and_the_rest_stays(under: Any, over: Any):
    merged = merge(tree_of(under, "user"), tree_of(over, "home"))
    above, below, both = flat(tree_of(over, "home")), flat(tree_of(under, "user")), flat(merged)
    assert above.items() <= both.items()
    for path, entry in both.items():
        assert entry == above.get(path, below.get(path))


@pytest.mark.integration
@given(OBJECTS, OBJECTS)
def test_origins_agree_with_values(under: Any, over: Any):
    merged = merge(tree_of(under, "user"), tree_of(over, "home"))
    sources = {"user": under, "home": over}
    for path, leaf in leaves_of(merged):
        found: Any = sources[leaf.origin.layer]
        for step in path:
            found = found[step]
        assert found == leaf.value


@pytest.mark.integration
@given(OBJECTS)
def test_a_tree_keeps_its_values(values: Any):
    assert values_of(tree_of(values, "user")) == values
    assert values_of(merge({}, tree_of(values, "user"))) == values
    assert values_of(merge(tree_of(values, "user"), {})) == values


@pytest.mark.integration
@given(OBJECTS, OBJECTS)
def test_merging_changes_neither_of_the_two(under: Any, over: Any):
    one, two = tree_of(under, "user"), tree_of(over, "home")
    merge(one, two)
    assert values_of(one) == under
    assert values_of(two) == over


def test_lists_replace_each_other():
    merged = merge(tree_of({"a": [1, 2]}, "user"), tree_of({"a": [3]}, "home"))
    assert values_of(merged) == {"a": [3]}


def test_find_returns_the_leaf_the_object_or_nothing():
    tree = tree_of({"a": {"b": 1}}, "user")
    leaf = find(tree, ("a", "b"))
    assert isinstance(leaf, Leaf)
    assert leaf.value == 1
    assert find(tree, ("a",)) is tree["a"]
    assert find(tree, ("a", "b", "c")) is None
    assert find(tree, ("x",)) is None


def test_put_makes_the_objects_on_its_way():
    values: dict[str, Any] = {"a": 1}
    put(values, ("a", "b", "c"), 2)
    put(values, ("a", "b", "d"), 3)
    assert values == {"a": {"b": {"c": 2, "d": 3}}}


def test_flatten_gives_every_single_value_a_dotted_key():
    flat_config = flatten(Config(llm=LlmSettings(model="m"), hooks={"x": {"y": [1]}}))
    assert flat_config["llm.model"] == "m"
    assert flat_config["hooks.x.y"] == [1]
    assert flat_config["providers"] == {}
    assert "llm" not in flat_config
