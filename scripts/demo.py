"""What `make run` does: a small model on this machine mends a failing test in a sample project, by itself.

Everything is the real thing: the `ybs` command, its tools, a model in a process of its own. The result is left
in `.run/shop` to look at. The exit code is 0 only if the tests pass afterwards and were not touched.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "examples" / "shop"
FOLDER = ROOT / ".run" / "shop"
YBS = Path(sys.executable).with_name("ybs")
MODE = "accept-edits"
TEST = ("python3", "-m", "unittest", "-q")
ALLOWED = f"run_shell:{' '.join(TEST)}*"
PROMPT = (
    f"One test fails. Run `{' '.join(TEST)}` to see which, read cart.py, correct the wrong line with edit_file, "
    "and run the tests again."
)
LIMIT_SECONDS = 900


def main() -> int:
    """Set up, let the model work, and show what came of it."""
    if call([str(YBS), "models", "install"]):
        return 1
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(SAMPLE, FOLDER, ignore=shutil.ignore_patterns("__pycache__"))
    say(f"\nThe sample project is in {FOLDER.relative_to(ROOT)}. Its tests, before:\n")
    before = call(TEST, FOLDER)
    say(
        f"\nNow ybs with the small model on this machine: mode {MODE} (edits need no question), no sandbox,\n"
        f"and of all commands only `{' '.join(TEST)}` may run. One processor core thinks a few minutes.\n"
    )
    say(f"> {PROMPT}\n")
    ybs = [str(YBS), "--provider", "llamacpp", "--mode", MODE, "--allow", ALLOWED]
    code = call([*ybs, "--timeout", str(LIMIT_SECONDS), "--verbose", "--print", PROMPT], FOLDER)
    say("\nWhat changed:\n")
    changed = show_changes()
    say("\nThe tests, after:\n")
    after = call(TEST, FOLDER)
    return verdict(code=code, before=before, after=after, changed=changed)


def verdict(*, code: int, before: int, after: int, changed: Sequence[str]) -> int:
    """Say honestly whether it worked, and return the exit code."""
    where = f"Look at it in {FOLDER.relative_to(ROOT)}. The model's server ends by itself; `ybs models stop` ends it now."
    touched = [name for name in changed if name.startswith("test_")]
    if before and not after and not code and changed and not touched:
        say(f"\nDone: the tests pass. {where}")
        return 0
    if touched:
        reason = f"it changed {', '.join(touched)}, which was not asked for"
    elif after:
        reason = "the tests still fail"
    elif not before:
        reason = "the sample's tests passed already"
    else:
        reason = f"ybs ended with exit code {code}"
    say(
        f"\nIt did not work this time: {reason}. A model this small fails now and then; run it again. {where}"
    )
    return 1


def show_changes() -> list[str]:
    """Print a diff of the sample and what became of it; return the names of the files that differ."""
    names = sorted({path.name for folder in (SAMPLE, FOLDER) for path in folder.glob("*.*")})
    changed: list[str] = []
    for name in names:
        old, new = (lines_of(folder / name) for folder in (SAMPLE, FOLDER))
        if old != new:
            changed.append(name)
            say(
                "".join(unified_diff(old, new, f"before/{name}", f"after/{name}", n=1)).rstrip("\n")
            )
    return changed


def lines_of(path: Path) -> list[str]:
    """Return a file's lines; none where there is no such file."""
    return path.read_text("utf-8", "replace").splitlines(keepends=True) if path.is_file() else []


def call(command: Sequence[str], folder: Path = ROOT) -> int:
    """Run a command with its output on the screen."""
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, check=False).returncode


def say(text: str) -> None:
    """Print, before whatever the next command prints."""
    print(text, flush=True)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(130) from None
