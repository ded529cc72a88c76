"""What importing each dependency costs, beside the standard library's own share of any such program."""

from lab import Lab, Row, interleave, median

MODULES = (
    "msgspec",
    "httpx2",
    "mcp",
    "json_repair",
    "yaml",
    "prompt_toolkit",
    "rich.console",
    "rich.markdown",
    "tree_sitter, tree_sitter_bash",
    "tree_sitter, tree_sitter_python",
    "http.client",
)


def measure(lab: Lab, rounds: int) -> list[Row]:
    """Count the CPU time above that of an empty program, in units of the usual standard library's."""
    programs = {"pass": "pass", "usual": "import asyncio, json, argparse"}
    programs |= {name: f"import {name}" for name in MODULES}
    calls = {
        name: lambda code=code: lab.python(code).cpu_seconds for name, code in programs.items()
    }
    cpu = {name: median(values) for name, values in interleave(rounds, **calls).items()}
    usual = cpu["usual"] - cpu["pass"]
    rows = [Row("import asyncio, json, argparse (the unit)", usual * 1000, "ms")]
    return rows + [
        Row(f"import {name}", (cpu[name] - cpu["pass"]) / usual, "x") for name in MODULES
    ]
