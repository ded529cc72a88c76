"""Calls in the text of a model, as local models were seen to write them."""

from typing import Any

import msgspec

from rows import every_row
from ybs.core.messages import AssistantMessage, Text, Thinking, ToolCall
from ybs.providers.text_protocol import Held, with_calls

NAMES = {
    "read_file",
    "edit_file",
    "write_file",
    "run_shell",
    "list_files",
    "search_files",
    "set_thought",
    "web_search",
    "skill",
    "todo",
}
READ = ("read_file", {"path": "a.py"})


def read(text: str) -> tuple[str, list[tuple[str, Any]]]:
    """Return the text that is left, and the calls."""
    message = with_calls(AssistantMessage(content=(Text(text=text),)), NAMES)
    calls = [(c.name, c.invalid or msgspec.json.decode(c.arguments)) for c in message.calls]
    assert message.stop_reason == ("tool_calls" if calls else "end")
    return message.text, calls


BARE = '{"name": "read_file", "arguments": {"path": "say "hi""}'
CALL = '{"name": "read_file", "arguments": {"path": "a.py"}}'


@every_row(
    "text, said, calls",
    [
        (f"```json\n{CALL}\n```", "", [READ]),
        (f"I look.\n```json\n{CALL}\n```\n", "I look.", [READ]),
        (f"```json\n{CALL}", "", [READ]),  # cut off before the fence ends
        (f"```\n{CALL}\n```", "", [READ]),
        (f"```json\n[{CALL}, {CALL}]\n```", "", [READ, READ]),
        (f"```json\n{CALL}\n{CALL}\n```", "", [READ, READ]),
        (f"```json\n{CALL}\n```\nThen:\n```json\n{CALL}\n```", "Then:", [READ, READ]),
        (f"<tool_call>\n{CALL}\n</tool_call>", "", [READ]),
        (f"<tool_call>{CALL}", "", [READ]),
        (f"```xml\n<tool_call>\n{CALL}\n</tool_call>\n```", "", [READ]),
        (f"[TOOL_CALLS] [{CALL}]", "", [READ]),
        (
            '[TOOL_CALLS][{"name": "read_file", "arguments": "{\\"path\\": 1"}]',
            "",
            [("read_file", '{"path": 1')],
        ),
        ('{"name": "read_file", "parameters": {"path": "a.py"}}', "", [READ]),
        (f"<|python_tag|>{CALL}<|eom_id|>", "", [READ]),
        (
            '{"type": "function", "function": {"name": "read_file", "arguments": {"path": "a.py"}}}',
            "",
            [READ],
        ),
        ("<function=read_file>\n<parameter=path>\na.py\n</parameter>\n</function>", "", [READ]),
        (
            "<tool_call>\n<function=read_file>\n<parameter=path>a.py</parameter>\n</function>\n</tool_call>",
            "",
            [READ],
        ),
        ("{ACTION:read_file:a.py}", "", [READ]),
        ("{ACTION:ls:src}", "", [("list_files", {"path": "src"})]),
        ("{ACTION:grep:TODO} I search.", "I search.", [("search_files", {"pattern": "TODO"})]),
        ("{INVOKE_SKILL:SEARCH:new TUIs}", "", [("web_search", {"query": "new TUIs"})]),
        ("{INVOKE_SKILL:VT:npm test}", "", [("run_shell", {"command": "npm test"})]),
        ("{INVOKE_SKILL:pdf-forms:fill it}", "", [("skill", {"name": "pdf-forms"})]),
        ("{INVOKE_SKILL:pdf-forms}", "", [("skill", {"name": "pdf-forms"})]),
        (
            "{ACTION:create_plan:Mend it:1. read\n2. change}",
            "",
            [("todo", {"steps": "1. read\n2. change"})],
        ),
        ("{ACTION:git:status}", "", [("run_shell", {"command": "git status"})]),
        (
            "{ACTION:write_file:a.txt:x: 1\ny: {2}\n}",
            "",
            [("write_file", {"path": "a.txt", "content": "x: 1\ny: {2}\n"})],
        ),
        ("{THOUGHT:be brief}", "", [("set_thought", {"text": "be brief"})]),
        (
            "a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE",
            "",
            [("edit_file", {"path": "a.py", "old_text": "x = 1", "new_text": "x = 2"})],
        ),
        (
            "Here:\n`a.py`\n```python\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```",
            "Here:",
            [("edit_file", {"path": "a.py", "old_text": "x", "new_text": "y"})],
        ),
        (
            "a.py\n<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE",
            "",
            [("write_file", {"path": "a.py", "content": "new"})],
        ),
    ],
)
def test_each_dialect_is_a_call(text: str, said: str, calls: list[Any]):
    assert read(text) == (said, calls)


@every_row(
    "text",
    [
        "Just words, with {braces} in them.",
        '```python\nprint({"name": "read_file", "arguments": {}})\n```',
        f"```text\n{CALL}\n```",
        f"```python\n<tool_call>{CALL}</tool_call>\n```",
        "```markdown\n{ACTION:read_file:a.py}\n```",
        '```json\n{"name": "shop", "arguments": {"path": "a"}}\n```',
        '```json\n{"name": "read_file", "version": 2}\n```',
        '{"name": "ybs", "parameters": {}}',
        "{ACTION:fly:away}",
        "<function=fly></function>",
        "a.py\n```\n<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> main\n```",
        f"Write {CALL} to read a file.",
        "[TOOL_CALLS] nothing",
        "```json\n[1, 2]\n```",
        "",
    ],
)
def test_what_is_not_a_call_stays_text(text: str):
    assert read(text) == (text, [])


@every_row(
    "text, arguments",
    [
        ('```json\n{"name": "read_file", "arguments": {"path": "a.py"\n```', '{"path": "a.py"'),
        (
            '```json\n{"name": "read_file", "arguments": {"path": \'a.py\'}}\n```',
            "{\"path\": 'a.py'}",
        ),
        ('<tool_call>{"name": "read_file", "arguments": {"path": "a.p', '{"path": "a.p'),
        # quotes that are not escaped, with as many braces at the end as there should be, one less and one more
        (f"```json\n{BARE}}}\n```", '{"path": "say "hi""}'),
        (f"```json\n{BARE}\n}}\n```", '{"path": "say "hi""}'),
        (f"```json\n{BARE}\n```", '{"path": "say "hi""}'),
        (f"<tool_call>{BARE}}}}}</tool_call>", '{"path": "say "hi""}}'),
    ],
)
def test_half_json_is_handed_on_to_be_repaired_where_the_tool_is_known(text: str, arguments: str):
    assert read(text) == ("", [("read_file", arguments)])


def test_thinking_stays_and_real_calls_are_left_alone():
    thought = Thinking(text="hm", provider="x")
    message = AssistantMessage(content=(thought, Text(text=f"```json\n{CALL}\n```")))
    assert with_calls(message, NAMES).content[0] == thought
    real = AssistantMessage(content=(Text(text=CALL), ToolCall(id="1", name="read_file")))
    assert with_calls(real, NAMES) is real


@every_row(
    "pieces, shown",
    [
        (["I lo", "ok.\n``", f"`json\n{CALL}", "\n```"], "I look.\n"),
        (["Hel", "lo <b>", "you</b>", " a<tool", "box"], "Hello <b>you</b> a<toolbox"),
        (["a < b", " and c"], "a < b and c"),
        (["<tool_ca", "ll>{}"], ""),
    ],
)
def test_what_may_be_a_call_is_not_shown_while_it_comes(pieces: list[str], shown: str):
    held = Held()
    assert "".join(map(held.add, pieces)) == shown


def test_what_was_kept_back_and_is_no_call_is_shown_at_the_end():
    held, text = Held(), "See:\n```python\nx = {1}\n```\nDone."
    shown = "".join(held.add(piece) for piece in ("See:\n```py", "thon\nx = {1}\n```", "\nDone."))
    assert shown == "See:\n"
    assert shown + held.rest(text) == text
