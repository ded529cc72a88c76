"""What `make run` does: a small model on this machine fixes a failing test in a sample project, by itself.

Everything is the real thing: the `ybs` command, its tools, a model in a process of its own. The result is left
in `.run/shop` to look at. The exit code is 0 only if the tests pass afterwards and nothing but the faulty file was changed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "examples" / "shop"
FOLDER = ROOT / ".run" / "shop"
YBS = Path(sys.executable).with_name("ybs")
#: What has to be changed, and nothing else.
FAULTY = "cart.py"
MODE = "accept-edits"
TEST = ("python3", "-m", "unittest", "-q")
ALLOWED = f"run_shell:{' '.join(TEST)}*"
PROMPT = (
    f"One test fails. Run `{' '.join(TEST)}` to see which, read cart.py, correct the wrong line with edit_file, "
    "and run the tests again."
)
LIMIT_SECONDS = 600
#: How freely the model chooses its words, attempt by attempt: the same again would only give the same again.
TEMPERATURES = ("0", "0.2", "0.4")


def main() -> int:
    """Set up, let the model work, and show what came of it."""
    if call([str(YBS), "models", "download", "starter"]):
        return 1
    say(
        f"\nThe small model on this machine gets a task: mode {MODE} (edits need no question), and of all\n"
        f"commands only `{' '.join(TEST)}` may run. One processor core thinks for a minute or two."
    )
    for number, temperature in enumerate(TEMPERATURES, 1):
        problem = attempt(temperature)
        if not problem:
            say(
                f"\nDone: the tests pass. The project is in {FOLDER.relative_to(ROOT)}, as it was left."
            )
            say(
                "The model's server ends by itself when nobody uses it; `.venv/bin/ybs models stop` ends it now."
            )
            return 0
        say(f"\nAttempt {number} of {len(TEMPERATURES)} did not work: {problem}.")
    say("A model this small fails now and then. Run it again, or use a larger one.")
    return 1


def attempt(temperature: str) -> str:
    """Let the model repair a fresh copy of the sample; return what is wrong with the outcome, or nothing."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(SAMPLE, FOLDER, ignore=shutil.ignore_patterns("__pycache__"))
    say(f"\nThe tests in {FOLDER.relative_to(ROOT)}, before:\n")
    if not call(TEST, FOLDER):
        return "the sample's tests passed already"
    ybs = [str(YBS), "--provider", "llamacpp", "--mode", MODE, "--allow", ALLOWED, "--verbose"]
    say(f"\n> {PROMPT}\n")
    environ = {**os.environ, "YBS_LLM__TEMPERATURE": temperature}
    call([*ybs, "--timeout", str(LIMIT_SECONDS), "--print", PROMPT], FOLDER, environ)
    say("\nWhat changed:\n")
    changed = show_changes()
    say("\nThe tests, after:\n")
    if others := [name for name in changed if name != FAULTY]:
        return f"it changed {', '.join(others)}, which was not asked for"
    return "the tests still fail" if call(TEST, FOLDER) else ""


def show_changes() -> list[str]:
    """Print a diff of the sample and what became of it; return the names of the files that differ."""
    names = sorted({name for folder in (SAMPLE, FOLDER) for name in files_in(folder)})
    changed: list[str] = []
    for name in names:
        old, new = (lines_of(folder / name) for folder in (SAMPLE, FOLDER))
        if old != new:
            changed.append(name)
            say(
                "".join(unified_diff(old, new, f"before/{name}", f"after/{name}", n=1)).rstrip("\n")
            )
    return changed


def files_in(folder: Path) -> set[str]:
    """Return the paths of the files in a folder, without what Python compiled."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in files if "__pycache__" not in path.parts}


def lines_of(path: Path) -> list[str]:
    """Return a file's lines; none where there is no such file."""
    return path.read_text("utf-8", "replace").splitlines(keepends=True) if path.is_file() else []


def call(
    command: Sequence[str], folder: Path = ROOT, environ: Mapping[str, str] = os.environ
) -> int:
    """Run a command with its output on the screen."""
    return subprocess.run(
        command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, check=False
    ).returncode


def say(text: str) -> None:
    """Print, before whatever the next command prints."""
    print(text, flush=True)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(130) from None
