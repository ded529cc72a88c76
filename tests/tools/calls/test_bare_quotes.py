"""Arguments with quotes in their texts that are not escaped."""

from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw, Struct

from rows import every_row
from ybs.core.errors import ToolError
from ybs.core.messages import AssistantMessage, Text, ToolCall
from ybs.core.ports import Effect
from ybs.core.schema import schema_of
from ybs.providers.text_protocol import with_calls
from ybs.tools.calls.arguments import decode
from ybs.tools.calls.broken_json import split_at_names


class Edit(Struct, frozen=True):
    path: str
    old_text: str = ""
    new_text: str = ""
    count: int = 1
    replace_all: bool = False


class Editor:
    name: str = "edit_file"
    effect: Effect = "write"
    arguments: ClassVar[type[Struct]] = Edit


class Reader(Editor):
    effect: Effect = "read"


EDITOR: Any = Editor()


class Open:
    """A foreign tool that takes any arguments."""

    name = "edit_file"
    effect: Effect = "write"
    parameters = Raw(b'{"type":"object","properties":{"path":{}},"additionalProperties":true}')


def repaired(text: str, tool: Any = None) -> Any:
    return decode(tool or EDITOR, ToolCall(id="1", name="edit_file", invalid=text)).value


NAMES = ("path", "old_text", "new_text", "count", "replace_all")


@every_row(
    ("text", "expected"),
    [
        (
            '{"path":"tsconfig.json","old_text":""strict": false","new_text":""strict": true"}',
            Edit("tsconfig.json", '"strict": false', '"strict": true'),
        ),
        ('{"path":"say "hi""}', Edit('say "hi"')),
        ('{"path": "a.py", "new_text": "print("hi")\\n"}', Edit("a.py", "", 'print("hi")\n')),
        (
            '{\n  "path": "a.py",\n  "new_text": "print("hi")"\n}\n',
            Edit("a.py", "", 'print("hi")'),
        ),
        ('```json\n{"path":"a","new_text":"f("x")"}\n```', Edit("a", "", 'f("x")')),
        # numbers, booleans and null as values, in JSON's words and Python's
        (
            '{"path":"a","new_text":"f("x")","count":3,"replace_all":true}',
            Edit("a", "", 'f("x")', 3, replace_all=True),
        ),
        (
            '{"replace_all": True, "count": 2, "path": "f("x")", "old_text": None}',
            Edit('f("x")', count=2, replace_all=True),
        ),
        # line ends and tabs as they are, where no escape stands beside them
        ('{"path":"a","new_text":"f("x")\n\tg("y")\n"}', Edit("a", "", 'f("x")\n\tg("y")\n')),
        # a brace too many, also where nothing else is wrong
        ('{"path":"a","new_text":"f("x")"}}', Edit("a", "", 'f("x")')),
        ('{"path":"a","new_text":"f("x")"} }', Edit("a", "", 'f("x")')),
        ('{"path":"a"}}', Edit("a")),
        # each text by itself: one may have its quotes escaped
        (
            r'{"path":"a","old_text":"f(\"x\")","new_text":"f("y", "\u00e9")"}',
            Edit("a", 'f("x")', 'f("y", "é")'),
        ),
        # names of the tool where there can be no argument
        ('{"path":"a","new_text":"the "path": x"}', Edit("a", "", 'the "path": x')),
        (
            r'{"path":"a","new_text":"{\n  "path": "b"\n}"}',
            Edit("a", "", '{\n  "path": "b"\n}'),
        ),
        # JSON in a text is one, with as many names as it has
        (
            '{"path":"a.json","new_text":"{"a": "b", "c": [{"d": "e"}, {"f": 1}]}"}',
            Edit("a.json", "", '{"a": "b", "c": [{"d": "e"}, {"f": 1}]}'),
        ),
        (
            '{"path":"a.json","old_text":""a": "b", "c": "d",","new_text":""a": "e""}',
            Edit("a.json", '"a": "b", "c": "d",', '"a": "e"'),
        ),
    ],
)
def test_quotes_that_are_not_escaped_are_the_texts_own(text: str, expected: Edit):
    assert repaired(text) == expected
    assert repaired(text, Reader()) == expected


@every_row(
    "text",
    [
        # another argument's name in a text
        '{"path":"a","old_text":"f("x")","new_text":"y","new_text":"z"}',
        '{"path":"a","old_text":"x","new_text":"","old_text":"","new_text":"y"}',
        '{"path":"a.json","new_text":"{"path": "b"}"}',
        '{"path":"a","new_text":"f("x", {"path": 1})"}',
        '{"path":"a","old_text":"f(1, "new_text": "x")","new_text":"y"}',
        # a name that is not the tool's: it may be one that the model made up
        '{"path":"a","new_text":"print("hi")","encoding":"utf-8"}',
        '{"path":"a","new_text":"print("hi")", \'encoding\': "utf-8"}',
        '{"path":"a","new_text":"print("hi")", encoding: "utf-8"}',
        '{"path":"a","new_text":"x = {"a": "b", "c": "d"} # ""}',
        '{"encoding":"utf-8","path":"f("x")"}',
        # more than one object
        '{"path":"f("x")"} {"path":"b"}',
        '{"path":"f("x")"}}{"name":"read_file","arguments":{"new_text":"b"}}',
        '[{"path":"f("x")"}]',
        # not bounded by braces: it may have been cut off within a text
        '{"path":"a","new_text":"f("x")"',
        '{"path":"a","new_text":"x = "',
        '"path":"a","new_text":"f("x")"}',
        '{"path":"a","new_text":"Use {"x":"y"}',
        '{"path":"a","new_text":"{"x": {"y":"z"}}',
        '{"path":"a","new_text":"{"x":"y","replace_all":true}',
        # one quote for two: the text's own and the one around it
        '{"path":"a","old_text":""b": "no","new_text":""b": true"}',
        '{"path":"a","old_text":""b": "no"","new_text":"b": "yes"}',
        '{"path":"a","old_text":""b": "no"","new_text":"" + "x"}',
        '{"path":"a","new_text":"Hello!" + "x"}',
        '{"path":"a","new_text":"5" long"}',
        # quotes escaped and not in one text; escapes beside line ends that are not escaped
        r'{"path":"a","new_text":"print("say \"hi\"")"}',
        '{"path":"a","new_text":"print("a\\n")\nprint("b")\n"}',
        '{"path":"a","old_text":"f("x")\ng("y")","new_text":"f("x\\n")"}',
        # texts that do not end, and values that are neither text nor JSON
        r'{"path":"a\","new_text":"f("x")"}',
        '{"path":"a","new_text":"f("x"),"count":2}',
        '{"path":"a","count":2 or 3,"new_text":"f("x")"}',
        '{"path":"a","new_text":f("x")"}',
        '{"path":","new_text":"f("x")"}',
        r'{"path":"a","new_text":"f("\d")"}',
        r'{"path":"a","new_text":"f("\ud800")"}',
        '{"path":"a","new_text":"f("x")"}}}',
        "{}}",
        "",
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(text: str):
    with pytest.raises(ToolError, match="nothing was done"):
        repaired(text or "{")


@every_row(
    "text",
    [
        '```json\n{"name":"edit_file","arguments":{"path":"a.py","new_text":"print("hi")\\n"}}\n```',
        '```json\n{"name":"edit_file","arguments":{"path":"a.py","new_text":"print("hi")\\n"}\n```',
        '```json\n{"name":"edit_file","arguments":{"path":"a.py","new_text":"print("hi")\\n"}}}\n```',
        '<tool_call>{"name":"edit_file","arguments":{"path":"a.py","new_text":"print("hi")\n"}}</tool_call>',
        '{"name": "edit_file", "parameters": {"path": "a.py", "new_text": "print("hi")\\n"}}',
    ],
)
def test_calls_in_a_text_are_repaired_as_well(text: str):
    said = with_calls(AssistantMessage(content=(Text(text=text),)), {"edit_file"})
    assert decode(EDITOR, said.calls[0]).value == Edit("a.py", "", 'print("hi")\n')


@every_row(
    "text",
    [
        '{"name":"edit_file","arguments":{"path":"a.md","new_text":"Use {"x":{"y":"z"}}',
        '{"name":"edit_file","arguments":{"path":"a.md","new_text":"Use {"x":"y"}',
        '{"name":"edit_file","arguments":{"path":"a.md","new_text":"f("x")"',
        '{"name":"edit_file","arguments":{"path":"f("x")"}}\n{"name":"edit_file","arguments":{"path":"b"}}x',
        '{"arguments":{"path":"a","new_text":"{"name":"edit_file"}"},"name":"write_file"}',
    ],
)
def test_calls_in_a_text_that_may_go_on_are_refused(text: str):
    said = with_calls(
        AssistantMessage(content=(Text(text=f"```json\n{text}\n```"),)), {"edit_file"}
    )
    with pytest.raises(ToolError, match="nothing was done"):
        decode(EDITOR, said.calls[0])


def test_the_model_is_told_to_escape_quotes():
    call = ToolCall(id="1", name="edit_file", invalid='{"path":"f("x")"}')
    assert r"write \" for a quote" in decode(EDITOR, call).notes[0]
    call = ToolCall(id="1", name="edit_file", invalid='{"path":"x",}')
    assert "quote" not in decode(EDITOR, call).notes[0]


def test_a_tool_that_takes_any_arguments_has_no_names_to_split_at():
    with pytest.raises(ToolError, match="nothing was done"):
        repaired('{"path":"f("x")"}', Open())


def test_a_foreign_tool_gets_what_its_schema_names():
    class Foreign:
        name = "edit_file"
        effect: Effect = "write"
        parameters = schema_of(Edit)

    assert repaired('{"path":"f("x")","count":2}', Foreign()) == {"path": 'f("x")', "count": 2}


@every_row("text", ['{"path":"' + '"' * 99_999, '{"path":"' + '",' * 50_000 + '"}'])
def test_long_texts_are_refused_soon(text: str):
    with pytest.raises(ValueError, match=r"bounded|two"):
        split_at_names(text, NAMES)


def bare(values: dict[str, Any], *, raw_lines: bool = False) -> str:
    """Return the JSON of the values as small models write it, with the quotes in texts not escaped."""
    parts = list[str]()
    for name, value in values.items():
        text = msgspec.json.encode(value).decode()
        if isinstance(value, str):
            text = "".join(
                '"' if each == '"' else msgspec.json.encode(each).decode()[1:-1] for each in value
            )
            text = f'"{text.replace(chr(92) + "n", chr(10)) if raw_lines else text}"'
        parts.append(f'"{name}":{text}')
    return f"{{{','.join(parts)}}}"


#: Words in quotes and without, as code has them.
_plain = st.text("ab(){}[]=+,. \\\n\té", max_size=6)
_quoted = st.text("ab(){}[], \\\né", max_size=6).map(lambda text: f'"a{text}"')
quoted_texts = st.lists(st.tuples(_plain, _quoted), max_size=4).map(
    lambda pairs: "".join(f"{plain} {quoted}" for plain, quoted in pairs)
)
#: Whatever makes trouble.
odd_texts = st.text('"",:{}[]ab \\\n', max_size=16) | st.lists(
    st.sampled_from(
        [
            '"',
            '","new_text":"',
            '","count":1',
            '"}',
            '{"path":"',
            "a",
            ", ",
            "\n",
            "\\",
            '"b": ',
            "}",
        ]
    ),
    max_size=6,
).map("".join)


@pytest.mark.integration
@given(
    path=quoted_texts,
    old=quoted_texts,
    new=quoted_texts,
    count=st.integers(-9, 10**9),
    every=st.booleans(),
    more=st.sampled_from(["", "}", "\n"]),
)
def test_texts_with_quotes_around_words_come_back_exactly(path, old, new, count, every, more):
    given = {"path": path, "old_text": old, "count": count, "new_text": new, "replace_all": every}
    assert split_at_names(bare(given) + more, NAMES) == given


@pytest.mark.integration
@given(
    values=st.fixed_dictionaries({"path": odd_texts, "old_text": odd_texts, "new_text": odd_texts}),
    raw_lines=st.booleans(),
    after=st.integers(0, 3),
)
@example(values={"path": "", "old_text": '"', "new_text": '"'}, raw_lines=False, after=0)
@example(values={"path": '","b":"', "old_text": "", "new_text": ""}, raw_lines=False, after=0)
def test_any_texts_come_back_exactly_or_not_at_all(values, raw_lines, after):
    text = bare(values, raw_lines=raw_lines) + "}" * after
    try:
        found = split_at_names(text, ("path", "old_text", "new_text"))
    except ValueError:
        return
    assert found == values


@pytest.mark.integration
@given(
    before=quoted_texts,
    after=quoted_texts,
    name=st.sampled_from(["path", "new_text"]),
    space=st.sampled_from(["", " ", "\n"]),
)
def test_a_text_with_what_separates_arguments_is_refused(before, after, name, space):
    content = f'{before}",{space}"{name}":{space}"{after}'
    text = bare({"path": "a", "new_text": content})
    with pytest.raises(ValueError, match="more than one place"):
        split_at_names(text.replace("\\n", "\n"), NAMES)


@pytest.mark.integration
@given(
    values=st.fixed_dictionaries({"path": quoted_texts, "new_text": quoted_texts}), data=st.data()
)
def test_a_call_that_was_cut_off_is_refused_or_ends_where_it_was_cut(values, data):
    text = bare(values)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    try:
        found = split_at_names(cut, NAMES)
    except ValueError:
        return
    raise AssertionError((cut, found))
