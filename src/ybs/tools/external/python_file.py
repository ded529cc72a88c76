"""Runs inside the sandbox: says what the tools of a Python file are, or calls one of them.

It is a program of its own: `python_file.py FILE --schema`, or `python_file.py FILE NAME` with the arguments as JSON on its input.
"""

import sys
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))  # ybs itself, in whatever way it is installed

import msgspec

from ybs.tools.function import FunctionTool


def tools_in(file: Path) -> dict[str, FunctionTool]:
    """Run a file and return the tools that are defined in it, by name."""
    spec = spec_from_file_location("ybs_tool_file", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations are looked up there
    sys.path.insert(0, str(file.parent))
    spec.loader.exec_module(module)
    return {each.name: each for each in vars(module).values() if isinstance(each, FunctionTool)}


def main(file: str, word: str) -> int:
    """Answer on standard output; what the file itself prints goes to standard error."""
    with redirect_stdout(sys.stderr):
        tools = tools_in(Path(file))
        if word == "--schema":
            answer = [tool.described() for tool in tools.values()]
        else:
            answer = tools[word].answer(sys.stdin.buffer.read())
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
