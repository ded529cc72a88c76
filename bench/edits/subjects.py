"""The edit tools that are judged: the real one of ybs, and two simple ones to compare it with."""

import asyncio
import time
from contextlib import suppress
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from edits.cases import Case
from edits.judging import Outcome
from ybs.config.schema import Config
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.frontends.host import this_host
from ybs.security.paths.roots import Roots
from ybs.security.policy.confirm import Gate, nobody
from ybs.security.policy.policy import Policy
from ybs.tools.builtin.edit_file import EditFile
from ybs.tools.registry import builtin_tools
from ybs.tools.toolbox import LocalToolbox
from ybs.tools.workspace import Workspace


class Ybs:
    """The real tool, called as a model calls it, on a real file."""

    name = "ybs"

    def __init__(self, folder: Path) -> None:
        config = Config()
        safety = msgspec.structs.replace(config.safety, mode="bypass")
        roots = Roots(
            this_host(), folder, safety.sandbox_allowed_paths, safety.sandbox_blocked_paths
        )
        self._folder = folder
        self._number = 0
        workspace = Workspace(roots)
        self._tool = EditFile(workspace)
        tools = builtin_tools(config, workspace)
        self._toolbox = LocalToolbox(tools, Gate(Policy(safety), nobody), max_output_chars=10_000)

    def edit(self, case: Case) -> Outcome:
        """Write the file, measure the search for the change, then run the tool."""
        self._number += 1
        path = self._folder / f"{self._number}-{Path(case.path).name}"
        path.write_bytes(case.before)
        if case.disturbed is not None:
            self._call("read_file", path=path.name)
            path.write_bytes(case.disturbed)
        arguments = {"path": path.name, "old_text": case.old, "new_text": case.new}
        seconds = self._measure(arguments)
        is_error, text = self._call("edit_file", **arguments)
        outcome = Outcome(is_error, text, path.read_bytes(), seconds)
        path.unlink()
        return outcome

    def _measure(self, arguments: dict[str, str]) -> float:
        decoded: Any = msgspec.convert(arguments, EditFile.arguments)
        began = time.process_time()
        with suppress(ToolError):  # a refusal takes time too
            self._tool.change(decoded)
        return time.process_time() - began

    def _call(self, name: str, **arguments: str) -> tuple[bool, str]:
        call = ToolCall(id="1", name=name, arguments=Raw(msgspec.json.encode(arguments)))
        result = asyncio.run(self._toolbox.run(call, lambda event: None))
        return result.is_error, result.output


class Exact:
    """What most agents do: the text must be there exactly once."""

    name = "exact"

    def edit(self, case: Case) -> Outcome:
        """Replace the one place."""
        before = (case.disturbed or case.before).decode()
        began = time.process_time()
        count = before.count(case.old)
        after = before.replace(case.old, case.new) if count == 1 else before
        seconds = time.process_time() - began
        return Outcome(after == before, f"{count} places", after.encode(), seconds)


class Similar:
    """What eager agents do: the first place that is exact, else the first that is 80 % alike."""

    name = "similar"

    def edit(self, case: Case) -> Outcome:
        """Replace the first place that will do."""
        before = (case.disturbed or case.before).decode()
        began = time.process_time()
        after = self._edited(before, case.old, case.new)
        seconds = time.process_time() - began
        return Outcome(after == before, "", after.encode(), seconds)

    def _edited(self, before: str, old: str, new: str) -> str:
        if old in before:
            return before.replace(old, new, 1)
        lines = before.splitlines(keepends=True)
        size = len(old.splitlines())
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(old)
        for start in range(len(lines) - size + 1):
            window = "".join(lines[start : start + size])
            matcher.set_seq1(window)
            if matcher.real_quick_ratio() < 0.8 or matcher.quick_ratio() < 0.8:
                continue
            if matcher.ratio() >= 0.8:
                end = "\n" if window.endswith("\n") and not new.endswith("\n") else ""
                return "".join((*lines[:start], new + end, *lines[start + size :]))
        return before
