"""What the smallest models may write next."""

import re
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from rows import every_row
from ybs.core.events import AssistantSaid
from ybs.core.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Effect, Request, ToolSpec
from ybs.small_models.next_call import MOST_LINES, NOT_THERE, WORDS, grammar_of, needed_grammar_of
from ybs.small_models.support import Guided
from ybs.testing import ScriptedModel

NAMES = ("read_file", "list_files", "edit_file", "write_file", "delete_file", "run_shell")
NEEDS = {
    "list_files": ["pattern"],
    "edit_file": ["path", "old_text", "new_text"],
    "write_file": ["path", "content"],
    "run_shell": ["command"],
}
EFFECTS: dict[str, Effect] = {
    "edit_file": "edit",
    "write_file": "write",
    "delete_file": "delete",
    "run_shell": "execute",
}
TOOLS = [
    ToolSpec(
        name=name,
        description="",
        parameters=Raw(msgspec.json.encode({"required": NEEDS.get(name, ["path"])})),
        effect=EFFECTS.get(name, "read"),
    )
    for name in NAMES
]
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{[\d,]+\}|[|()*+?]|[a-z]+')


def accepts(grammar: str, text: str) -> bool:
    """Return whether a grammar without recursion takes a text; as a regular expression it says the same."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines() if line)

    def regex(rule: str) -> str:
        return "".join(map(part, _TOKEN.findall(rule)))

    def part(token: str) -> str:
        if token.startswith('"'):
            return f"(?:{re.escape(msgspec.json.decode(token))})"
        return f"(?:{regex(rules[token])})" if token.isalpha() else token

    return re.fullmatch(regex(rules["root"]), text) is not None


def looked(name: str, output: str, **arguments: str) -> list[Message]:
    call = ToolCall(id=name + output, name=name, arguments=Raw(msgspec.json.encode(arguments)))
    result = ToolResult(call_id=call.id, name=name, output=output)
    return [AssistantMessage(content=(call,)), result]


def after(words: str, *more: Message) -> str:
    return grammar_of(Request("", [UserMessage.of(words), *more], TOOLS))


def called(name: str, **arguments: str) -> str:
    call = msgspec.json.encode({"name": name, "arguments": arguments}).decode()
    return f"```json\n{call}\n```"


BREW = looked(
    "read_file", '1\tdef brew(cups):\n2\t    return cups * "2"\n\n(Go on.)', path="tea.py"
)


def edit(old: str, new: str, path: str = "tea.py") -> str:
    return called("edit_file", path=path, old_text=old, new_text=new)


@every_row(
    "answer, is_taken",
    [
        (edit("def brew(cups):", "def steep(cups):"), True),
        (edit("def brew(cups):", "def steep(cups):\n"), True),
        (edit('return cups * "2"', "return cups * 2"), True),
        # Half a line, another file, the next line as well, another tool, words.
        (edit("return cups", "return 2"), False),
        (edit("def brew(cups):", "def steep(cups):", path="pot.py"), False),
        (edit("def brew(cups):", "def steep(cups): return 2"), False),
        (edit("def brew(cups):", "def steep(cups):\n    return 2"), False),
        (called("read_file", path="tea.py"), False),
        ("I change it.", False),
    ],
)
def test_a_change_of_a_file_that_was_read_replaces_one_of_its_lines(answer: str, is_taken: bool):
    assert accepts(after("Change brew in tea.py.", *BREW), answer) is is_taken


def test_what_is_added_keeps_what_is_there():
    lines = looked("read_file", "1\t- oolong\n2\t- mint\n3\t", path="teas.md")
    anywhere = after("Insert sencha into the list in teas.md.", *lines)
    last = after("Append sencha to teas.md.", *lines)
    below, first = (edit(old, f"{old}\n- sencha", "teas.md") for old in ("- mint", "- oolong"))
    assert [accepts(anywhere, each) for each in (below, first)] == [True, True]
    assert [accepts(last, each) for each in (below, first)] == [True, False]
    replaced = after("Change mint in teas.md to sage.", *lines)
    assert accepts(replaced, edit("- mint", "- sage", "teas.md"))
    assert not accepts(replaced, edit("- mint", "sage", "teas.md"))


def test_a_line_that_occurs_twice_stands_with_the_next_one():
    twice = looked("read_file", "1\ta\n2\tb\n3\ta\n4\tc", path="x.txt")
    grammar = after("Change x.txt.", *twice)
    edits = [("a", "d"), ("a\nb", "d\nb"), ("a\nb", "d"), ("a\nc", "d\nc"), ("b", "d"), ("c", "d")]
    taken = [accepts(grammar, edit(old, new, "x.txt")) for old, new in edits]
    assert taken == [False, True, False, True, True, True]


def test_a_line_may_be_taken_away_or_changed_where_something_is_to_be_removed():
    lines = looked("read_file", "1\t- oolong\n2\t- mint and sage", path="teas.md")
    grammar = after("Remove sage from teas.md.", *lines)
    assert accepts(grammar, edit("- mint and sage\n", "", "teas.md"))
    assert accepts(grammar, edit("- mint and sage", "- mint", "teas.md"))
    assert not accepts(
        after("Change sage in teas.md.", *lines), edit("- mint and sage\n", "", "teas.md")
    )


@every_row(
    "words, answer, is_taken",
    [
        (
            "Append the line 3,mint to teas.csv.",
            edit("2,oolong", "2,oolong\n3,mint", "teas.csv"),
            True,
        ),
        (
            "Append the line 3,mint to teas.csv.",
            edit("2,oolong", "2,oolong\n3,a\n4,b", "teas.csv"),
            True,
        ),
        (
            "Append the line 3,mint to teas.csv.",
            edit("id,tea", "id,tea\n3,mint", "teas.csv"),
            False,
        ),
        (
            "Append the line 3,mint to teas.csv.",
            called("write_file", path="teas.csv", content="3,mint"),
            False,
        ),
        ("How many teas are there in teas.csv?", "There are two.", True),
        ("How many teas are there in teas.csv?", called("read_file", path="other.csv"), True),
        ("How many teas are there in teas.csv?", edit("id,tea", "a", "teas.csv"), False),
    ],
)
def test_a_larger_model_is_told_what_to_write_where_that_is_sure(words, answer, is_taken):
    lines = looked("read_file", "1\tid,tea\n2\t1,mint\n3\t2,oolong", path="teas.csv")
    request = Request("", [UserMessage.of(words), *lines], TOOLS)
    assert accepts(needed_grammar_of(request), answer) is is_taken


def test_a_larger_model_is_told_nothing_where_nothing_is_sure_or_all_is_done():
    def needed(words: str, *more: Message) -> str:
        return needed_grammar_of(Request("", [UserMessage.of(words), *more], TOOLS))

    lines = looked("read_file", "1\t- oolong", path="teas.md")
    append = "Append the line `- mint` to teas.md."
    assert needed(append, *lines)
    assert not needed(append, *lines, *looked("edit_file", "Edited.", path="teas.md"))
    assert not needed("Change oolong in teas.md to sage.", *lines)
    assert not needed("How many teas are there in teas.md?")
    call, result = looked("edit_file", "not found", path="teas.md", old_text="oolong tea")
    failed = [call, replace(result, is_error=True)]
    again = needed("Change oolong in teas.md to sage.", *lines, *failed)
    assert accepts(again, edit("- oolong", "- sage", "teas.md"))
    assert not needed("Change oolong in teas.md to sage.", *lines, *failed, *failed)
    call, result = looked("edit_file", "not found", path="other.md", old_text="oolong tea")
    unread = [call, replace(result, is_error=True)]
    assert not needed("Change oolong in teas.md to sage.", *lines, *unread)


def test_a_file_to_delete_is_one_that_was_listed():
    found = looked("list_files", "old/logo.svg", pattern="**/logo.svg")
    grammar = after("Delete the file logo.svg.", *found)
    seen = looked("search_files", "a.css\n1:\tlogo.svg\nb.css", pattern="logo")
    assert "css" not in after("Delete the file logo.svg.", *seen)
    others = looked("list_files", "old/a.svg\nold/b.svg", pattern="**/*")
    assert "old/" not in after("Delete the file logo.svg.", *others)
    both = Request("", [UserMessage.of("Delete a.svg but keep b.svg.")], TOOLS)
    assert not needed_grammar_of(both)
    assert accepts(grammar, called("delete_file", path="old/logo.svg"))
    assert not accepts(grammar, called("delete_file", path="logo.svg"))


def test_a_name_is_replaced_wherever_it_stands():
    call = msgspec.json.decode(edit("brew", "steep").strip("`json\n"), type=dict[str, Any])
    call["arguments"]["replace_all"] = True
    everywhere = f"```json\n{msgspec.json.encode(call).decode()}\n```"
    for words in ("Rename brew in tea.py to steep.", "Rename brew to steep everywhere in tea.py."):
        assert accepts(after(words, *BREW), everywhere)
        assert not accepts(after(words, *BREW), edit("brew", "steep"))
    part = looked("read_file", "1\tdef brew(cup, cups):", path="tea.py")
    assert accepts(after("Rename cup in tea.py.", *part), edit("def brew(cup, cups):", "def b():"))


def test_a_name_that_is_nowhere_is_said_not_to_be_there_and_a_file_is_not_edited_for_its_name():
    assert after("In tea.py, rename brewTea to steepTea.", *BREW) == NOT_THERE
    assert after("In tea.py, rename brew to steep_tea.", *BREW) != NOT_THERE
    renamed = after("Rename tea.py to pot.py.", *BREW)
    assert accepts(renamed, called("run_shell", command="mv tea.py pot.py"))


def test_an_edit_that_failed_is_tried_with_another_line_and_then_not_again():
    def failed(old: str) -> list[Message]:
        call, result = looked("edit_file", "not found", path="tea.py", old_text=old)
        return [call, replace(result, is_error=True)]

    once = failed("def brew(cups):")
    again = after("Correct tea.py.", *BREW, *once)
    assert accepts(again, edit('return cups * "2"', "return cups * 2"))
    assert not accepts(again, edit("def brew(cups):", "def brew():"))
    often = [*once, *failed('return cups * "2"'), *failed("x")]
    any_text = after("Correct tea.py.", *BREW, *often[:4])
    assert accepts(any_text, edit("re", "x"))
    assert after("Correct tea.py.", *BREW, *often) == WORDS


def test_what_is_not_in_the_file_is_said_so():
    prices = looked("read_file", "1\tinstrument,euros\n2\tviolin,640", path="prices.csv")
    assert after("What does a harp cost? See prices.csv.", *prices) == NOT_THERE
    assert after("What does a violin cost? See prices.csv.", *prices) == WORDS


def test_a_folder_that_was_listed_is_an_answer_and_a_line_is_added_alone():
    folders = looked("list_files", "No files match.\nFolders: a/ b/", path="src")
    assert after("What is in src?", *folders) == WORDS
    lines = looked("read_file", "1\t- oolong", path="teas.md")
    grammar = after("Add a tea to teas.md.", *lines)
    assert accepts(grammar, edit("- oolong", "- oolong\n- sencha", "teas.md"))
    assert not accepts(grammar, edit("- oolong", "- oolong\n- sencha\n- mint", "teas.md"))


@every_row(
    "arguments, new",
    [
        ({"old_text": "a", "new_text": "b\n"}, "b"),
        ({"old_text": "a\n", "new_text": "b\n"}, "b\n"),
        ({"old_text": "a", "new_text": "b"}, "b"),
        ({"new_text": "b\n"}, "b\n"),
        ([], None),
        ([1], None),
    ],
)
async def test_the_line_end_behind_the_new_text_of_an_edit_goes(arguments: Any, new: str | None):
    call = ToolCall(id="1", name="edit_file", arguments=Raw(msgspec.json.encode(arguments)))
    said = AssistantMessage(content=(Text(text="So."), call), stop_reason="tool_calls")
    model = Guided(ScriptedModel([said]), is_tiny=True)
    events = [e async for e in model.stream(Request("", [UserMessage.of("Go on.")], TOOLS))]
    last = events[-1]
    assert isinstance(last, AssistantSaid)
    made = msgspec.json.decode(last.message.calls[0].arguments)
    assert (made["new_text"] if isinstance(made, dict) else None) == new


@every_row("content, written", [("a", "a\n"), ("a\n", "a\n"), ("", "")])
async def test_a_new_file_ends_with_a_line_end(content: str, written: str):
    arguments = Raw(msgspec.json.encode({"path": "a.txt", "content": content}))
    call = ToolCall(id="1", name="write_file", arguments=arguments)
    said = AssistantMessage(content=(call,), stop_reason="tool_calls")
    model = Guided(ScriptedModel([said]), is_tiny=True)
    events = [e async for e in model.stream(Request("", [UserMessage.of("Go on.")], TOOLS))]
    last = events[-1]
    assert isinstance(last, AssistantSaid)
    assert msgspec.json.decode(last.message.calls[0].arguments)["content"] == written


def test_of_a_long_file_any_text_may_be_replaced():
    text = "\n".join(f"{n}\tline {n}" for n in range(1, MOST_LINES + 2))
    grammar = after("Change log.txt.", *looked("read_file", text, path="log.txt"))
    assert accepts(grammar, edit("e 7", "x\ny", "log.txt"))
    assert not accepts(grammar, edit("e 7", "x", "other.txt"))


def test_the_files_that_a_quoted_command_names_are_not_those_to_change():
    check = looked("read_file", "1\tassert brew(1)", path="check.py")
    grammar = after("`python3 check.py` fails. Correct tea.py.", *check, *BREW)
    assert "tea.py" in grammar
    assert "check.py" not in grammar


@every_row(
    "words, answer",
    [
        ("Delete the file old.txt.", called("delete_file", path="old.txt")),
        ("What does `wc -l a.txt` print?", called("run_shell", command="wc -l a.txt")),
        ("Run the tests.", called("run_shell", command='any "thing"')),
        ("Create tea.txt with one word.", called("write_file", path="tea.txt", content="a\nb")),
    ],
)
def test_the_call_that_the_words_ask_for_is_the_only_one(words: str, answer: str):
    grammar = after(words)
    assert accepts(grammar, answer)
    assert not accepts(grammar, called("list_files", pattern="*"))
    assert not accepts(grammar, answer.replace(".txt", ".doc")) or ".txt" not in answer


def test_when_the_call_was_made_or_the_file_is_not_there_the_answer_is_words():
    done = looked("edit_file", "Edited.", path="tea.py")
    missing = looked("list_files", "No files match.", pattern="**/pot.py")
    assert after("Rename brew in tea.py.", *BREW, *done) == WORDS
    assert after("Change the name in pot.py.", *missing) == WORDS
    assert after("What does tea.py do?", *BREW) == WORDS
    assert accepts(WORDS, "It brews tea.")
    assert not accepts(WORDS, called("read_file", path="tea.py"))
    assert not accepts(WORDS, "Tea.\nTea.")


@every_row(
    "answer, is_taken",
    [
        ("Two lines.\n\n```python\nprint({})\n```\nThat is all, `so`.", True),
        (called("list_files", pattern="*"), True),
        (called("edit_file", path="a", old_text="b", new_text="c"), True),
        (called("list_files"), False),
        (called("look_up", path="a"), False),
        ("I look: " + called("list_files", pattern="*"), False),
        ('{"name": "list_files"}', False),
    ],
)
def test_a_model_says_words_or_a_whole_call_where_nothing_says_what_comes_next(answer, is_taken):
    missing = looked("list_files", "No files match.", pattern="x")
    for grammar in (
        after("Good morning!"),
        after("Make it better."),
        after("Why is `rm -rf build` dangerous?"),
        after("Where is it?", *missing),
        grammar_of(Request("", [], TOOLS)),
    ):
        assert accepts(grammar, answer) is is_taken


def ran(command: str, output: str, *, is_error: bool = True) -> list[Message]:
    said, result = looked("run_shell", output, command=command)
    assert isinstance(result, ToolResult)
    return [said, replace(result, is_error=is_error)]


PYTHON = "[exit code 127, 0.1 s]\n[python is not on this machine; python3 is.]"


def test_a_command_whose_program_was_not_found_is_run_as_its_result_says():
    words = "Run `python tea.py` and tell me what it prints."
    once = ran("python tea.py", f"sh: 1: python: not found\n{PYTHON}\n(Make the call again.)")
    assert accepts(after(words, *once), called("run_shell", command="python3 tea.py"))
    for other in (called("run_shell", command="python tea.py"), "There is no python."):
        assert not accepts(after(words, *once), other)
    done = ran("python3 tea.py", "4\n[exit code 0, 0.1 s]", is_error=False)
    assert after(words, *once, *done) == WORDS
    # It is not run twice in the same way, and not where the tool is not on offer.
    again = ran("python3 tea.py", PYTHON.replace("127", "1"))
    assert "words" in after(words, *once, *again)
    twice = [*ran("python3 tea.py", "no"), *ran("python tea.py", PYTHON)]
    assert "python3 tea.py" not in after(words, *twice)
    request = Request("", [UserMessage.of(words), *once], [*TOOLS[:-1]])
    assert "python3" not in grammar_of(request)
    assert "python3" not in after(words, *ran("env X=1 python tea.py", PYTHON))


def test_without_tools_there_is_no_grammar():
    assert grammar_of(Request("", [UserMessage.of("Run the tests.")])) == ""


def test_a_tool_that_is_not_on_offer_is_not_called():
    grammar = grammar_of(Request("", [UserMessage.of("Run the tests.")], TOOLS[:2]))
    assert not accepts(grammar, called("run_shell", command="make"))
    assert accepts(grammar, called("list_files", pattern="*"))


def test_an_edit_is_of_what_the_words_are_about():
    text = "1\tMIN_CUPS = 1\n2\tMAX_CUPS = 9,\n3\tdef pour(tea):\n4\t    x = 1\n5\t\n6\tpass"
    lines = looked("read_file", text, path="tea.py")
    grammar = after("MAX_CUPS in tea.py has to be 7.", *lines)
    assert accepts(grammar, edit("MAX_CUPS = 9,", "MAX_CUPS = 7,"))
    assert not accepts(grammar, edit("MAX_CUPS = 9,", "MAX_CUPS = 7"))
    assert not accepts(grammar, edit("MIN_CUPS = 1", "MIN_CUPS = 7"))
    grammar = after("pour in tea.py is broken. Repair it.", *lines)
    assert accepts(grammar, edit("x = 1", "x = 2"))
    assert not accepts(grammar, edit("def pour(tea):", "def pour(cups):"))
    assert accepts(
        after("Change pour of tea.py.", *lines), edit("def pour(tea):", "def pour(cups):")
    )
    grammar = after("The line x = 1 in tea.py has a wrong indentation.", *lines)
    assert accepts(grammar, edit("    x = 1", "  x = 1"))
    assert not accepts(grammar, edit("x = 1", "x = 2"))
    assert not accepts(grammar, edit("pass", "stop"))


@every_row("arguments", [b"[]", b'{"path":7}', b"{}"])
def test_a_call_without_a_path_says_nothing_of_a_file(arguments: bytes):
    call = ToolCall(id="1", name="read_file", arguments=Raw(arguments))
    result = ToolResult(call_id="1", name="read_file", output="1\ta")
    assert after("Change it.", AssistantMessage(content=(call,)), result) == after("Hello!")


async def test_the_grammar_goes_with_the_request():
    inner = ScriptedModel(["Done."])
    request = Request("", [UserMessage.of("Run the tests.")], TOOLS)
    events = [event async for event in Guided(inner, is_tiny=True).stream(request)]
    assert isinstance(events[-1], AssistantSaid)
    assert inner.requests[0].grammar == grammar_of(request)
    assert "run_shell" in inner.requests[0].grammar


@every_row(
    "output, old",
    [
        ("1\tmilk\n2\tbread\n3\tmilk", "bread\nmilk"),
        ("1\ta {\n2\t  x: 1;\n3\t}\n4\tb {\n5\t  x: 2;\n6\t}\n7\t", "x: 2;\n}"),
        ("1\tmilk", "milk"),
    ],
)
def test_what_is_appended_comes_behind_the_last_line(output: str, old: str):
    grammar = after("Append eggs to list.txt.", *looked("read_file", output, path="list.txt"))
    assert accepts(grammar, edit(old, f"{old}\neggs", "list.txt"))
    assert not accepts(grammar, edit("bread", "bread\neggs", "list.txt"))


def test_nothing_is_appended_to_a_file_whose_end_was_not_read():
    part = looked(
        "read_file",
        "1\tmilk\n2\tbread\n[lines 3-90 not shown; go on with offset=3]",
        path="list.txt",
    )
    request = Request("", [UserMessage.of("Append the line eggs to list.txt."), *part], TOOLS)
    assert not needed_grammar_of(request)
    assert "bread" not in grammar_of(request)


def test_a_file_that_is_to_be_made_of_another_one_is_not_an_edit_of_that():
    people = looked("read_file", "1\tAda\n2\tBob", path="people.txt")
    grammar = after("Create names.txt with the names from people.txt.", *people)
    assert accepts(grammar, called("write_file", path="names.txt", content="Ada"))
    assert not accepts(grammar, called("write_file", path="people.txt", content="Ada"))
    assert not accepts(grammar, edit("Ada", "Bob", "people.txt"))
    tests = [UserMessage.of("Write tests for people.txt"), *people]
    assert not needed_grammar_of(Request("", tests, TOOLS))
