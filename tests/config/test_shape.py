from typing import Any

import msgspec

from rows import every_row
from ybs.config.document import complaint_of
from ybs.config.schema import Config, ExternalToolSettings
from ybs.config.shape import Fitting, all_names, annotation_at, fits, item_of, missing_from, suggest
from ybs.config.tree import KeyPath


class Complaints(list[tuple[KeyPath, str]]):
    def note(self, path: KeyPath, words: str) -> str:
        self.append((path, words))
        return words


def fit(
    values: Any, environ: dict[str, str] | None = None
) -> tuple[Any, list[tuple[KeyPath, str]]]:
    complaints = Complaints()
    return Fitting(complaints.note, environ).section(values, Config), complaints


def fit_text(path: str, text: Any) -> tuple[Any, str]:
    complaints = Complaints()
    steps = tuple(path.split("."))
    value = Fitting(complaints.note, is_text=True).value(text, annotation_at(steps), steps)
    return (value if fits(value) else None), complaints[0][1] if complaints else ""


@every_row(
    ("section", "key", "value", "words"),
    [
        ("llm", "model", 5, "must be text or null, not a whole number"),
        ("llm", "max_tokens", "12", "must be a whole number, not text"),
        ("llm", "max_tokens", 12.5, "must be a whole number, not a number"),
        ("llm", "max_tokens", True, "must be a whole number, not true or false"),
        ("llm", "max_tokens", None, "must be a whole number, not null"),
        ("llm", "max_tokens", 0, "must be a whole number >= 1"),
        ("llm", "temperature", 3, "must be a number <= 2.0"),
        ("llm", "model", "a\0b", "must not hold a NUL character"),
        ("ui", "color", 1, "must be true or false, not a whole number"),
        ("ui", "color", "true", "must be true or false, not text"),
        ("safety", "mode", "aks", "must be one of ask, accept-edits, auto, plan, deny, bypass"),
        ("safety", "mode", 5, "must be one of ask, accept-edits, auto, plan, deny, bypass"),
        ("safety", "blocked_commands", "sudo", "must be a list, not text"),
        ("git", "commit_message_prefix", "a\nb", "must be text on one line"),
        ("git", "commit_message_prefix", "x" * 81, "must be text of length <= 80"),
        ("tools", "builtin", [], "must be an object, in { }"),
        ("tools", "builtin", {"x": 1}, "must be an object, in { }"),
    ],
)
def test_a_bad_value_loses_itself_and_not_its_neighbour(section, key, value, words):
    fitted, complaints = fit({section: {key: value}, "version": "1.0"})
    assert fitted["version"] == "1.0"
    assert fitted[section] in ({}, {"builtin": {}})
    assert len(complaints) == 1
    assert complaints[0][1] == words + "; it is ignored"


def test_a_number_may_be_whole_where_it_need_not_be():
    fitted, complaints = fit({"llm": {"temperature": 1, "timeout_seconds": 5}})
    assert fitted == {"llm": {"temperature": 1.0, "timeout_seconds": 5.0}}
    assert complaints == []


def test_a_section_that_is_no_object_is_left_out():
    fitted, complaints = fit({"llm": None, "agent": [], "hooks": 1, "ui": {"color": False}})
    assert fitted == {"ui": {"color": False}}
    assert [path for path, _ in complaints] == [("llm",), ("agent",), ("hooks",)]


def test_a_section_with_an_address_that_is_no_object_keeps_a_mark():
    values: dict[str, Any] = {"llm": [], "providers": {"x": 5, "y": {"endpoint": 1}}}
    fitted, _ = fit(values)
    for words in (
        complaint_of(fitted["llm"]["endpoint"]),
        complaint_of(fitted["providers"]["x"]["endpoint"]),
        complaint_of(fitted["providers"]["y"]["endpoint"]),
    ):
        assert words is not None
        assert words.startswith("must be ")
    assert Fitting(Complaints().note, may_address=False).section(values, Config) == {
        "providers": {"y": {}}
    }


def test_a_bad_entry_of_a_list_loses_only_itself():
    fitted, complaints = fit({"safety": {"blocked_commands": ["a", 1, "b", None]}})
    assert fitted == {"safety": {"blocked_commands": ["a", "b"]}}
    assert [path[-1] for path, _ in complaints] == [1, 3]


def test_a_list_of_thousands_is_left_out_whole():
    fitted, complaints = fit({"safety": {"blocked_commands": ["a"] * 5001}})
    assert fitted == {"safety": {}}
    assert "more than 5000 entries" in complaints[0][1]


def test_external_tools_are_checked_one_by_one():
    good = {"name": "web", "path": "~/web", "parameters": {"q": {"type": "string"}}}
    tools = [good, {"name": "half"}, {"name": "", "path": "x"}, 5, {**good, "colour": 1}]
    fitted, complaints = fit({"tools": {"external": tools}})
    assert fitted == {"tools": {"external": [good, good]}}
    assert [path[2:] for path, _ in complaints] == [(2, "name"), (3,), (4, "colour"), (1,), (2,)]
    assert complaints[3][1] == "ignored, because it has no `path`"


def test_the_entries_of_maps_are_checked_one_by_one():
    values = {
        "providers": {
            "x": {"endpoint": "http://x", "headers": {"a": "b", "c": 1}},
            "y": {"wire": 5},
        }
    }
    fitted, complaints = fit(values)
    assert fitted == {"providers": {"x": {"endpoint": "http://x", "headers": {"a": "b"}}, "y": {}}}
    assert [path[1:] for path, _ in complaints] == [("x", "headers", "c"), ("y", "wire")]


def test_a_header_cannot_smuggle_in_another():
    values = {"providers": {"x": {"endpoint": "http://x", "headers": {"a": "b\r\nc: d"}}}}
    fitted, complaints = fit(values)
    assert fitted["providers"]["x"]["headers"] == {}
    assert "on one line" in complaints[0][1]


def test_later_sections_are_taken_as_they_are():
    values = {name: {"any": [{"thing": "${HOME}"}]} for name in ("hooks", "mcpServers", "memory")}
    assert fit(values, {}) == (values, [])


def test_the_address_of_the_schema_is_no_setting_and_no_mistake():
    assert fit({"$schema": "x"}) == ({}, [])


@every_row(
    ("values", "guess"),
    [
        ({"lmm": {}}, "did you mean llm?"),
        ({"llm": {"modle": "x"}}, "did you mean llm.model?"),
        ({"llm": {"maxTokens": 1}}, "did you mean llm.max_tokens?"),
        ({"llm": {"MAX-TOKENS": 1}}, "did you mean llm.max_tokens?"),
        ({"model": "x"}, "did you mean llm.model?"),
        ({"llm": {"max_iterations": 1}}, "did you mean agent.max_iterations?"),
        ({"tools": {"builtin": {"x": {"enable": True}}}}, "tools.builtin.x.enabled?"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(values: Any, guess: str):
    _, complaints = fit(values)
    assert len(complaints) == 1
    assert complaints[0][1].startswith("is not a setting; ")
    assert complaints[0][1].endswith(guess)


def test_no_guess_is_made_for_what_resembles_nothing():
    assert suggest(("zzzzzzzz",), ["llm"]) == ""
    assert suggest(("m" * 100,), ["m" * 99]) == ""


def test_guessing_ends_after_many_mistakes():
    _, complaints = fit({"llm": {f"model{number}": 1 for number in range(30)}})
    assert complaints[0][1].endswith("llm.model?")
    assert complaints[-1][1] == "is not a setting"


def test_an_unset_variable_costs_only_its_value():
    values = {"llm": {"model": "${NOPE}", "endpoint": "http://${HOST}:1"}}
    fitted, complaints = fit(values, {"HOST": "h"})
    assert fitted == {"llm": {"endpoint": "http://h:1"}}
    assert complaints == [(("llm", "model"), "the variable NOPE is not set; it is ignored")]


def test_a_variable_may_hold_a_number_a_truth_or_a_list():
    values = {
        "llm": {"max_tokens": "${N}", "temperature": "${N}", "model": "${N}"},
        "ui": {"color": "${NO}"},
        "safety": {"blocked_commands": ["${N}", "x${N}"]},
    }
    fitted, complaints = fit(values, {"N": "2", "NO": "no"})
    assert complaints == []
    assert fitted["llm"] == {"max_tokens": 2, "temperature": 2.0, "model": "2"}
    assert fitted["ui"] == {"color": False}
    assert fitted["safety"]["blocked_commands"] == ["2", "x2"]


@every_row(
    ("path", "text", "expected"),
    [
        ("llm.model", "5", "5"),
        ("llm.model", "null", "null"),
        ("llm.max_tokens", "5", 5),
        ("llm.temperature", "0.5", 0.5),
        ("llm.temperature", "1", 1.0),
        ("ui.color", "ON", True),
        ("ui.color", "0", False),
        ("safety.mode", "plan", "plan"),
        ("safety.blocked_commands", '["a", "b"]', ["a", "b"]),
        ("safety.blocked_commands", ("a", "b"), ["a", "b"]),
        ("tools.builtin.run_shell.timeout_seconds", "9", 9),
        ("agent.max_cost_usd", 1, 1.0),
    ],
)
def test_a_text_is_read_as_the_setting_asks(path: str, text: Any, expected: Any):
    assert fit_text(path, text) == (expected, "")


@every_row(
    ("path", "text"),
    [
        ("llm.max_tokens", "many"),
        ("llm.max_tokens", "[" * 5000),
        ("agent.max_cost_usd", "nan"),
        ("agent.max_cost_usd", float("nan")),
        ("agent.max_cost_usd", float("inf")),
        ("agent.max_cost_usd", "1e999"),
        ("ui.color", "maybe"),
        ("safety.blocked_commands", "sudo"),
        ("safety.blocked_commands", '["a", 1]'),
        ("safety.mode", "PLAN"),
        ("hooks", "x"),
        ("llm.model", object()),
        ("llm.model", "a\udc80"),
    ],
)
def test_a_text_that_does_not_fit_is_left_out(path: str, text: Any):
    value, words = fit_text(path, text)
    assert value is None
    assert words.endswith("; it is ignored")


@every_row("number", [float("nan"), float("inf"), float("-inf")])
def test_no_setting_takes_a_number_that_is_none(number: float):
    numeric = [name for name in all_names() if "float" in repr(annotation_at(name.split(".")))]
    assert len(numeric) == 17
    for name in numeric:
        assert fit_text(name, number)[0] is None, name


def test_what_is_said_never_holds_the_value():
    secret = "sk-" + "0123456789" * 3
    _, complaints = fit(
        {"llm": {"max_tokens": secret, "api_key": [secret]}, "safety": {"mode": secret}}
    )
    assert len(complaints) == 3
    assert secret not in repr(complaints)


def test_every_setting_can_be_found_by_its_name():
    names = all_names()
    assert "llm.model" in names
    assert "providers.*.endpoint" in names
    assert "tools.builtin.*.enabled" in names
    for name in names:
        assert annotation_at(name.split(".")) is not None
    assert annotation_at(["llm", "model", "x"]) is None
    assert annotation_at(["nope", "x"]) is None
    assert item_of(annotation_at(["llm", "model"])) is None


def test_required_fields_are_missed():
    assert missing_from({"name": "x"}, ExternalToolSettings) == ["path"]
    assert missing_from({"name": "x", "path": "y"}, ExternalToolSettings) == []


def test_defaults_fit_their_own_schema():
    defaults = msgspec.json.decode(msgspec.json.encode(Config()))
    fitted, complaints = fit(defaults)
    assert complaints == []
    assert msgspec.convert(fitted, Config) == Config()
