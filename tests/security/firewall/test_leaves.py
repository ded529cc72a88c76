"""A secret that goes on in the next value of a structured result is masked in all of them."""

from itertools import pairwise
from json import dumps
from typing import Any

import pytest
from msgspec import Raw, json

from rows import every_row
from ybs.core.events import ToolFinished
from ybs.core.messages import ToolCall, ToolResult
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.structs import is_clean, masked
from ybs.security.firewall.toolbox import FirewallToolbox
from ybs.testing import RecordedEvents, ScriptedToolbox


def cut(text: str, *places: int) -> list[str]:
    return [text[a:b] for a, b in pairwise((0, *places, len(text)))]


def escaped(text: str) -> str:
    return "".join(f"%{code:02X}" for code in text.encode())


def shown(data: Any) -> ToolFinished:
    return ToolFinished(id="1", success=True, output="", display=Raw(json.encode(data)))


SHAPES = {
    "a list": lambda a, b, c: [a, b, c],
    "nested lists": lambda a, b, c: [["x"], [[a], [b]], [[[c]]]],
    "numbers between": lambda a, b, c: [{"n": 1, "text": a}, {"n": 2, "text": b}, 3.5, [c, None]],
    "lines around": lambda a, b, c: {"context_before": [a], "content": b, "context_after": [c]},
    "a field of records": lambda a, b, c: [
        {"file": "f.txt", "text": t, "ok": True} for t in (a, b, c)
    ],
    "a deep field": lambda a, b, c: {"r": [{"file": "f", "in": {"t": [t]}} for t in (a, b, c)]},
    "names": lambda a, b, c: {a: 1, b: {"n": 1}, c: []},
    "names and values": lambda a, b, c: {a: b, c: 1},
    "numbered lines": lambda a, b, c: [f"7:\t{a}", f"8:\t{b}", f"9:\t{c}"],
    "lines that were indented": lambda a, b, c: [f"  {a} ", f"\t{b}\\", f"    {c}"],
    "among long texts": lambda a, b, c: ["line\n" * 99 + a, b, c + "\nmore words" * 99],
    "escapes": lambda a, b, c: [escaped(a), escaped(b), escaped(c)],
    "with a line end": lambda a, b, c: [f"x\n{a}", b, f"{c}\ny"],
}


@pytest.mark.integration
@every_row("name", SHAPES)
def test_no_part_of_a_token_stands_in_any_shape(token: str, name: str) -> None:
    parts = cut(token, 14, 27)
    firewall, event = Firewall(), shown(SHAPES[name](*parts))
    assert not is_clean(firewall, event)
    seen = masked(firewall, event)
    text = bytes(seen.display).decode()
    assert not [part for part in parts if part in text], text
    assert "[ybs:secret:github-token#" in text
    assert masked(firewall, seen) == seen


@every_row("places", [(20,), (12, 30), (11, 22, 33), (36,), (12, 24, 34)])
def test_a_token_in_any_number_of_pieces_is_masked(token: str, places: tuple[int, ...]) -> None:
    parts = cut(token, *places)
    text = bytes(masked(Firewall(), shown({"lines": parts})).display).decode()
    assert not [part for part in parts if part in text]


def test_a_private_key_as_a_list_of_lines_is_masked_whole(key: str) -> None:
    lines = key.splitlines()
    for data in (lines, [{"n": n, "text": line} for n, line in enumerate(lines)]):
        text = bytes(masked(Firewall(), shown(data)).display).decode()
        assert not [line for line in lines if line in text]


def test_values_that_only_stand_side_by_side_stay_as_they_are(token: str) -> None:
    firewall = Firewall()
    for data in (
        ["src/main.py", "src/other.py"],
        {"path": "AbCdEf123456789012", "other": "0123456789abcdefABCDEF"},
        [{"commit": "0123456789abcdef0123456789abcdef01234567"}] * 9,
        {"a": 1, "b": [None, True, 2.5], "c": ""},
    ):
        event = shown(data)
        assert masked(firewall, event) is event
    seen = masked(firewall, shown([token, "NextLine123456"]))
    assert json.decode(seen.display) == ["[ybs:secret:github-token#1]", "NextLine123456"]


def test_a_secret_that_is_allowed_stays_in_its_pieces(token: str) -> None:
    firewall, event = Firewall(), shown(cut(token, 20))
    (name,) = {*json.decode(masked(firewall, event).display)}
    firewall.allow(name)
    assert masked(firewall, event) == event


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
async def test_a_part_that_the_text_shows_whole_is_masked_in_any_order(
    firewall: Firewall, token: str, order: str
) -> None:
    parts = dict(zip("abc", cut(token, 14, 27), strict=True))

    def behave(call: ToolCall, emit: Any) -> ToolResult:
        text = "\n".join(f"{n}:\t{part}" for n, part in enumerate(parts.values(), 7))
        data = {"matches": [{"at": f"{n}.txt", name: parts[name]} for n, name in enumerate(order)]}
        return ToolResult(call_id="", name="x", output=text, display=Raw(json.encode(data)))

    toolbox = FirewallToolbox(ScriptedToolbox({"x": behave}), firewall, lambda _: None)
    call = ToolCall(id="7", name="x", arguments=Raw(b"{}"))
    result = await toolbox.run(call, RecordedEvents())
    whole = result.output + bytes(result.display).decode()
    assert not [part for part in parts.values() if part in whole]


async def test_the_text_of_a_structured_result_is_masked_as_that_is(
    firewall: Firewall, token: str
) -> None:
    parts = cut(token, 20)

    def behave(call: ToolCall, emit: Any) -> ToolResult:
        data = json.encode({"lines": parts})
        return ToolResult(call_id="", name="x", output=data.decode(), display=Raw(data))

    toolbox = FirewallToolbox(ScriptedToolbox({"x": behave}), firewall, lambda _: None)
    call = ToolCall(id="7", name="x", arguments=Raw(b"{}"))
    result = await toolbox.run(call, RecordedEvents())
    whole = result.output + bytes(result.display).decode()
    assert not [part for part in parts if part in whole]


@pytest.mark.parametrize("indent", [None, 2])
async def test_a_token_goes_on_in_the_next_value_of_a_text_that_is_json(
    firewall: Firewall, token: str, *, indent: int | None
) -> None:
    parts = cut(token, 10, 20, 30)

    def behave(call: ToolCall, emit: Any) -> ToolResult:
        data = dumps({"size": 3, "lines": parts}, indent=indent)
        return ToolResult(call_id="", name="x", output=f"{data}\n")

    toolbox = FirewallToolbox(ScriptedToolbox({"x": behave}), firewall, lambda _: None)
    result = await toolbox.run(ToolCall(id="7", name="x", arguments=Raw(b"{}")), RecordedEvents())
    assert not [part for part in parts if part in result.output]
    assert json.decode(result.output)["size"] == 3


@pytest.mark.parametrize("name", ["password", "a\\b"])
async def test_an_own_secret_that_stands_as_a_number_is_masked(name: str) -> None:
    own = 48239174 * 10**8 + 65001372

    def behave(call: ToolCall, emit: Any) -> ToolResult:
        data = json.encode({"user": "app", name: own, "other": own + 1, "few": [7, True, 0.5]})
        return ToolResult(call_id="", name="x", output=data.decode(), display=Raw(data))

    firewall = Firewall(own=[str(own)])
    toolbox = FirewallToolbox(ScriptedToolbox({"x": behave}), firewall, lambda _: None)
    result = await toolbox.run(ToolCall(id="7", name="x", arguments=Raw(b"{}")), RecordedEvents())
    shown = json.decode(result.display)
    assert shown[name] == "[ybs:secret:own-secret#1]"
    assert (shown["other"], shown["few"]) == (own + 1, [7, True, 0.5])
    assert str(own) not in result.output


PASSWORD, DRAWN = "gR8wLp3z" + "Xq5N7k", "vMQtKKA8xEQPit3v" + "H4Ob2moRVCSfjQLx"
NEIGHBOURS = {
    "a name beside it": {"variables": [{"name": "DB_PASSWORD", "value": PASSWORD}]},
    "a name above it": {"db": {"password": {"value": PASSWORD}}},
    "a name of a list": {"api_keys": [DRAWN]},
    "the word before it": {"argv": ["mysqld", "--password", PASSWORD]},
    "a JSON Web Key": {"kty": "EC", "crv": "P-256", "d": DRAWN + "870MB6gfuTJ", "x": "a"},
    "a value with signs": {"db": {"password": {"value": f'{PASSWORD[:8]}"{PASSWORD[8:]}'}}},
}


@every_row("more", [{}, {"note": "two\nlines, \\"}])
@every_row("name", NEIGHBOURS)
def test_what_a_neighbour_says_to_be_a_secret_is_masked(name: str, more: dict[str, str]) -> None:
    data: Any = {"count": 2, **NEIGHBOURS[name], **more}
    firewall, event = Firewall(), shown(data)
    assert not is_clean(firewall, event)
    seen = masked(firewall, event)
    written = bytes(seen.display).decode()
    assert not any(part in written for part in (PASSWORD[:8], PASSWORD[8:], DRAWN)), written
    assert json.decode(written)["count"] == 2
    assert firewall.search(written) == ()  # what is found in JSON's own text is masked there
    assert masked(firewall, seen) is seen
    assert Firewall().mask_data(data) == json.decode(written)


def test_a_finding_is_masked_in_every_value_that_it_touches() -> None:
    own = 'gR8wLp3z","name":7,"size":' + "4823917465"
    raw = Raw(b'{"text":"gR8wLp3z","name":7,"size":' + b'4823917465,"note":"a"}')
    firewall = Firewall(own=[own])
    one = "[ybs:secret:own-secret#1]"
    seen = json.decode(firewall.mask_json(raw))
    assert seen == {"text": one, one: one, "note": "a"}


def test_a_finding_that_begins_with_a_sign_of_json_touches_only_what_is_behind_it() -> None:
    raw = Raw(b'{"lines":[7,"' + b'gR8wLp3z","b"]}')
    seen = json.decode(Firewall(own=['":[7,"gR8w' + "Lp3z"]).mask_json(raw))
    assert seen == {"lines": ["[ybs:secret:own-secret#1]", "[ybs:secret:own-secret#1]", "b"]}


def test_plain_data_with_half_a_sign_is_masked_too() -> None:
    data = {"file": "a\ud800", "password": {"value": PASSWORD}, "more": ("b",)}
    clean = Firewall().mask_data(data)
    one = "[ybs:secret:assigned-secret#1]"
    assert clean == {"file": "a\ud800", "password": {"value": one}, "more": ["b"]}
    other = {"file": "a\ud800"}
    assert Firewall().mask_data(other) == other


def test_a_name_that_stands_twice_does_not_hide_what_it_says_first(token: str) -> None:
    raw = Raw(f'{{"text": "{token}", "text": "x"}}'.encode())
    assert token.encode() not in bytes(Firewall().mask_json(raw))


def test_a_neighbours_value_that_is_allowed_stays() -> None:
    raw = Raw(json.encode({"password": {"value": f'{PASSWORD}"x'}}))
    firewall = Firewall()
    assert firewall.mask_json(raw) is not raw
    firewall.allow("[ybs:secret:assigned-secret#1]")
    assert firewall.mask_json(raw) is raw


def test_a_finding_ends_with_a_whole_escape() -> None:
    raw = Raw(b'{"a":"gR8wLp3z\\ud83d\\ude00Xq5N7k\\n"}')
    firewall = Firewall(own=["gR8wLp3z\U0001f600"])
    assert json.decode(firewall.mask_json(raw))["a"] == "[ybs:secret:own-secret#1]Xq5N7k\n"
    within = Firewall(own=["8wLp3z\\ud8"])  # half of what is one sign
    assert json.decode(within.mask_json(raw))["a"] == "gR[ybs:secret:own-secret#1]Xq5N7k\n"
