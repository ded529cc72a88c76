"""What the smallest models may write next."""

import re

import msgspec
from msgspec import Raw

from rows import every_row
from ybs.agent.next_call import MOST_LINES, WORDS, Guided, grammar_of
from ybs.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.testing import ScriptedModel

NAMES = ("read_file", "list_files", "edit_file", "write_file", "delete_file", "run_shell")
TOOLS = [ToolSpec(name=name, description="", parameters=Raw(b"{}")) for name in NAMES]
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{[\d,]+\}|[|()*+?]|[a-z]+')


def accepts(grammar: str, text: str) -> bool:
    """Return whether a grammar without recursion takes a text; as a regular expression it says the same."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines() if line)

    def regex(rule: str) -> str:
        return "".join(map(part, _TOKEN.findall(rule)))

    def part(token: str) -> str:
        if token.startswith('"'):
            return re.escape(msgspec.json.decode(token))
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
        (edit('    return cups * "2"', "    return cups * 2"), True),
        # Half a line, another indentation, another file, the next line as well, another tool, words.
        (edit("return cups", "return 2"), False),
        (edit('    return cups * "2"', "return 2"), False),
        (edit("def brew(cups):", "def steep(cups):", path="pot.py"), False),
        (edit("def brew(cups):", "def steep(cups): return 2"), False),
        (edit("def brew(cups):", "def steep(cups):\n    return 2"), False),
        (called("read_file", path="tea.py"), False),
        ("I change it.", False),
    ],
)
def test_a_change_of_a_file_that_was_read_replaces_one_of_its_lines(answer: str, is_taken: bool):
    assert accepts(after("Rename brew in tea.py.", *BREW), answer) is is_taken


def test_what_is_added_keeps_what_is_there():
    lines = looked("read_file", "1\t- oolong\n2\t- mint\n3\t", path="teas.md")
    anywhere = after("Add sencha to teas.md.", *lines)
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
    texts = ("a", "a\nb", "a\nc", "b", "c")
    taken = [accepts(grammar, edit(old, "d", "x.txt")) for old in texts]
    assert taken == [False, True, True, True, True]


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


def test_a_model_is_free_where_nothing_says_what_comes_next():
    failed = ToolResult(call_id="1", name="edit_file", output="not found", is_error=True)
    assert after("Good morning!") == ""
    assert after("Make it better.") == ""
    assert after("Why is `rm -rf build` dangerous?") == ""
    assert after("Rename brew in tea.py.", *BREW, failed) == ""
    assert after("Where is it?", *looked("list_files", "No files match.", pattern="x")) == ""
    assert grammar_of(Request("", [UserMessage.of("Run the tests.")])) == ""
    assert grammar_of(Request("", [], TOOLS)) == ""
    assert grammar_of(Request("", [UserMessage.of("Run the tests.")], TOOLS[:1])) == ""


@every_row("arguments", [b"[]", b'{"path":7}', b"{}"])
def test_a_call_without_a_path_says_nothing_of_a_file(arguments: bytes):
    call = ToolCall(id="1", name="read_file", arguments=Raw(arguments))
    result = ToolResult(call_id="1", name="read_file", output="1\ta")
    assert after("Change it.", AssistantMessage(content=(call,)), result) == ""


async def test_the_grammar_goes_with_the_request():
    inner = ScriptedModel(["Done."])
    request = Request("", [UserMessage.of("Run the tests.")], TOOLS)
    events = [event async for event in Guided(inner).stream(request)]
    assert inner.requests[0].grammar == grammar_of(request)
    assert "run_shell" in inner.requests[0].grammar
    assert events[-1].message.text == "Done."  # pyright: ignore[reportAttributeAccessIssue] - the last one
