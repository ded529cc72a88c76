"""Arguments of any kind: the result fits the schema, or the model reads a short reason."""

import re
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Meta, Raw, Struct

from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect
from ybs.core.schema import schema_of
from ybs.tools.calls.arguments import Decoded, decode

pytestmark = pytest.mark.integration


class Arguments(Struct, frozen=True):
    path: str
    limit: Annotated[int, Meta(ge=1)] = 5
    is_deep: bool = False
    kind: Literal["file", "Folder"] = "file"
    names: list[str] = []
    share: float | None = None


class Reader:
    name: str = "reader"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = Arguments


class Writer(Reader):
    effect: Effect = "write"


TOOLS: list[Any] = [Reader(), Writer()]


class Foreign:
    """A tool that has nothing but the schema of the other ones."""

    name = "reader"
    parameters = schema_of(Arguments)

    def __init__(self, effect: Effect) -> None:
        self.effect = effect


FOREIGN: list[Any] = [Foreign("read"), Foreign("write")]
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
)
words = st.sampled_from(["5", "yes", "FOLDER", '["a"]', '{"path": "b"}', "nan", "[", " 7 "])
values = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
names = st.sampled_from(
    ["path", "limit", "is_deep", "kind", "names", "share", "filePath", "isDeep", "arguments", "x"]
)
objects = st.dictionaries(names, values, max_size=4)
strict = st.builds(
    Arguments,
    path=st.text(),
    limit=st.integers(1, 2**60),
    is_deep=st.booleans(),
    kind=st.sampled_from(["file", "Folder"]),
    names=st.lists(st.text()),
    share=st.none() | st.floats(allow_nan=False, allow_infinity=False),
)


def _loosened(value: Arguments, variants: dict[str, Any]) -> dict[str, Any]:
    return {**msgspec.to_builtins(value), **variants}


#: Nearly what the schema asks for: numbers, booleans and lists as text, other spellings, names that do not exist.
near_objects = st.builds(
    _loosened,
    strict,
    st.fixed_dictionaries(
        {},
        optional={
            "limit": st.integers(1, 99).map(str),
            "is_deep": st.sampled_from(["yes", "false", 1]),
            "kind": st.sampled_from(["FILE", "folder", "Folder"]),
            "names": st.sampled_from(['["a", "b"]', "a", ["b"]]),
            "x": scalars,
        },
    ),
)


def _renamed(sent: dict[str, Any], spelled: dict[str, str], wrapper: str) -> dict[str, Any]:
    named = {spelled.get(name, name): value for name, value in sent.items()}
    return {wrapper: named} if wrapper else named


#: The same under other names, or within one more object.
renamed_objects = st.builds(
    _renamed,
    near_objects,
    st.fixed_dictionaries(
        {"path": st.sampled_from(["filePath", "file-path", "Path"]), "is_deep": st.just("isDeep")}
    ),
    st.sampled_from(["", "", "arguments", "reader"]),
)
#: What models do to JSON: another kind of quote, a comma too many, an end or a beginning that is missing.
slips = st.sampled_from(
    [
        lambda text: text.replace('"', "'"),
        lambda text: text[:-1] + ",}",
        lambda text: text[:-1],
        lambda text: text + "}",
        lambda text: f"```json\n{text}\n```",
        lambda text: text.replace('"path":', "path:"),
        lambda text: text.replace("false", "False").replace("null", "None"),
    ]
)
broken_objects = st.tuples(near_objects, slips).map(
    lambda both: both[1](msgspec.json.encode(both[0]).decode())
)


def outcome(tool: Any, call: ToolCall) -> Decoded | None:
    """Decode a call and check what must always hold."""
    problem = ""
    try:
        decoded = decode(tool, call)
    except ToolError as error:
        problem, decoded = str(error), None
    assert len(problem) < 2_000
    if decoded is None:
        return None
    again = msgspec.json.decode(msgspec.json.encode(decoded.value), type=tool.arguments)
    assert again == decoded.value
    assert len("".join(decoded.notes)) < 2_000
    return decoded


def texts_of(value: Any) -> list[str]:
    return [value.path, *value.names]


def words_in(value: Any) -> set[str]:
    """Collect every text and every number in what was sent, JSON within texts too."""
    match value:
        case str():
            inner = _json(value)
            return {value, value.strip()} | (words_in(inner) if inner is not None else set())
        case dict():
            return set().union(*map(words_in, value.values()))
        case list():
            return set().union(*map(words_in, value))
        case None:
            return set()
        case _:
            return {msgspec.json.encode(value).decode()}


def _json(text: str) -> Any:
    try:
        found = msgspec.json.decode(text)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


@given(sent=objects | values | near_objects | renamed_objects, at=st.integers(0, 1))
@example(sent={"path": 5}, at=1)
@example(sent={"arguments": '{"path": "b"}'}, at=1)
@example(sent={"filePath": "b", "names": "a"}, at=1)
def test_any_json_fits_or_is_refused_and_no_text_is_made_up(sent: Any, at: int):
    call = ToolCall(id="1", name="reader", arguments=Raw(msgspec.json.encode(sent)))
    decoded = outcome(TOOLS[at], call)
    if decoded is not None:
        assert set(texts_of(decoded.value)) <= words_in(sent)
        if not decoded.notes:
            stated = {name: value for name, value in sent.items() if value is not None}
            assert msgspec.convert(stated, Arguments) == decoded.value


@given(
    text=broken_objects
    | st.text(max_size=40)
    | st.tuples(objects, st.integers(0, 60)).map(
        lambda both: msgspec.json.encode(both[0]).decode()[: both[1]]
    ),
    at=st.integers(0, 1),
)
@example(text='```json\n{"path": "a", "names": ["b"]}\n```', at=1)
@example(text='{"path": "a\\/b",}', at=1)
@example(text="[" * 99_999, at=0)
@example(text='{"path":' * 20_000, at=0)
@example(text='{"path":' * 20_000, at=1)
@example(text='{"path": "\\ud800"}', at=0)
@example(text='{"path": "a", "share": NaN}', at=0)
@example(text='{"path": "a", "share": Infinity}', at=1)
def test_any_broken_text_fits_or_is_refused(text: str, at: int):
    decoded = outcome(TOOLS[at], ToolCall(id="1", name="reader", invalid=text or "{"))
    if decoded is not None and at == 1:
        whole = text.replace("\\/", "/")
        assert all(
            part in whole or msgspec.json.encode(part).decode()[1:-1] in whole
            for part in texts_of(decoded.value)
        )


@given(value=strict, at=st.integers(0, 1))
def test_a_valid_call_is_never_altered(value: Arguments, at: int):
    call = ToolCall(id="1", name="reader", arguments=Raw(msgspec.json.encode(value)))
    if value.share is None:
        value = msgspec.structs.replace(value, share=None)
    assert decode(TOOLS[at], call) == Decoded(value)


@given(sent=objects | near_objects | renamed_objects, at=st.integers(0, 1))
@example(sent={"path": None, "share": None}, at=0)
def test_a_foreign_tool_gets_what_a_built_in_one_with_the_same_schema_gets(sent: Any, at: int):
    call = ToolCall(id="1", name="reader", arguments=Raw(msgspec.json.encode(sent)))
    try:
        expected = decode(TOOLS[at], call)
    except ToolError as error:
        with pytest.raises(ToolError, match=f"^{re.escape(str(error))}$"):
            decode(FOREIGN[at], call)
        return
    found = decode(FOREIGN[at], call)
    assert isinstance(found.value, dict)
    assert Decoded(msgspec.convert(found.value, Arguments), found.notes) == expected
