"""Report the git state of the project in one answer."""

import re
import subprocess
from typing import Annotated

from ybs import tool

#: What git says in a repository without any commit.
_NO_COMMIT = re.compile(r"does not have any commits|(?:bad revision|ambiguous argument) 'HEAD'")


@tool(cwd="project")
def git_status(commits: Annotated[int, "how many of the last commits"] = 5) -> str:
    """Show branch, distance to its upstream, changed files with their line counts, stashes and the last commits."""
    parts = {
        "state": git("status", "--short", "--branch"),
        "changed lines": git("diff", "--stat", "HEAD"),
        "stashes": git("stash", "list"),
        "last commits": git(
            "log", f"-{max(0, commits)}", "--format=%h %ad %an: %s", "--date=short"
        ),
    }
    return "\n\n".join(f"# {name}\n{text}" for name, text in parts.items() if text)


def git(*words: str) -> str:
    """Run git without anything that a repository may configure to be run. Raises RuntimeError where it fails."""
    safe = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "diff.external=")
    ran = subprocess.run(
        ["git", "--no-optional-locks", *safe, *words],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if ran.returncode and not _NO_COMMIT.search(ran.stderr):
        raise RuntimeError(ran.stderr.strip() or f"git {words[0]} failed")
    return ran.stdout.rstrip()
