"""Report the git state of the project in one answer."""

import os
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
        "state": git("status", "--short", "--branch", "--ignore-submodules=dirty"),
        "changed lines": git(
            "diff", "--stat", "--no-textconv", "--ignore-submodules=dirty", "HEAD"
        ),
        "stashes": git("stash", "list"),
        "last commits": git(
            "log", f"-{max(0, commits)}", "--format=%h %ad %an: %s", "--date=short"
        ),
    }
    return "\n\n".join(f"# {name}\n{text}" for name, text in parts.items() if text)


def git(*words: str) -> str:
    """Run git without anything that a repository may configure to be run. Raises RuntimeError where it fails."""
    ran = _ran(*words, environ=_without_filters(dict(os.environ)))
    if ran.returncode and not _NO_COMMIT.search(ran.stderr):
        raise RuntimeError(ran.stderr.strip() or f"git {words[0]} failed")
    return ran.stdout.rstrip()


def _ran(*words: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    safe = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "diff.external=")
    options = [word for each in (*safe, "log.showSignature=false") for word in ("-c", each)]
    return subprocess.run(
        ["git", "--no-optional-locks", *options, *words],
        env=environ,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _without_filters(environ: dict[str, str]) -> dict[str, str]:
    """Return variables with which git runs no filter that the repository's own settings name."""
    names = set[str]()
    for scope in ("--local", "--worktree"):
        told = _ran("config", scope, "--includes", "--list", "--name-only", "-z", environ=environ)
        names |= {
            key.rpartition(".")[0] for key in told.stdout.split("\0") if key.startswith("filter.")
        }
    count = int(environ.get("GIT_CONFIG_COUNT") or 0)
    for name in sorted(names):
        for key, value in (("clean", ""), ("process", ""), ("required", "false")):
            environ[f"GIT_CONFIG_KEY_{count}"] = f"{name}.{key}"
            environ[f"GIT_CONFIG_VALUE_{count}"] = value
            count += 1
    return {**environ, "GIT_CONFIG_COUNT": str(count)}
