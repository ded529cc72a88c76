"""Take the pictures of docs/terminal.md: the real `ybs` on a real terminal, in a small project, as SVG files.

Everything runs: tools read and edit, commands run in their sandbox, keys are typed. Only the model is played, by a scripted
server on this machine. So that pictures taken again differ only where ybs does, durations and the spinner are replaced by
fixed ones, and the temporary home folder by `~`. `make pictures ARGS="turn cost"` plays only these scenes.
"""

# ruff: noqa: RUF001 - the sign of the prompt

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from film import Film

from scripted import Interrupted, OllamaServer
from scripted.ollama import OllamaWire
from serving import serving
from ybs.core.messages import Usage
from ybs.testing import (
    ScriptedAnswer,
    answer,
    call,
    thought,
)

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
#: Models, and the sizes of their files: small enough to be offered alike on every machine.
MODELS = {"qwen3:8b": 5.2e9, "mistral:7b": 4.4e9, "qwen3:4b": 2.6e9}
MODEL = "qwen3:8b"
ENTER, ESCAPE, CLEAR, EMPTY, DOWN = "\r", "\x1b", "\x0c", "\x15", "\x1b[B"
#: What is seen when the prompt is empty, when a question waits, and when a turn has ended.
READY, ASKED, ENDED = r"\n› *(?:\n|$)", r"\[n\] no", r" out · "

CART = '''\
"""A shopping cart."""

from decimal import Decimal


class Cart:
    """Holds prices, and coupons in percent."""

    def __init__(self, prices=(), coupons=()):
        self.prices, self.coupons = list(prices), list(coupons)

    def subtotal(self):
        """Return the sum of the prices."""
        return sum(self.prices, Decimal(0))

    def total(self):
        """Return the sum, less the coupons."""
        total = self.subtotal()
        for percent in self.coupons:
            total -= self.subtotal() * percent / 100
        return total
'''
TESTS = """\
from decimal import Decimal
from unittest import TestCase

from cart import Cart


class Totals(TestCase):
    def test_one_coupon(self):
        self.assertEqual(Cart([Decimal(100)], [10]).total(), 90)

    def test_two_coupons(self):
        self.assertEqual(Cart([Decimal(100)], [10, 10]).total(), 81)
"""
FILES = {
    "cart.py": CART,
    "test_cart.py": TESTS,
    "AGENTS.md": "# Shop\n\nRun the tests with `python3 -m unittest -q`. Prices are Decimals.\n",
    "README.md": "# Shop\n\nA cart with coupons.\n",
    "docs/coupons.md": "# Coupons\n\nEach coupon takes its percentage of what is left.\n",
    "docs/carts.md": "# Carts\n\nA cart holds prices.\n",
    ".gitignore": "__pycache__/\nbuild/\n",
    "build/shop.tar": "",
    "build.sh": "for page in 1 2 3; do echo page $page of 40; done; sleep 60\n",
}
FIXED = """\
It is **fixed**. Every coupon took its percentage of the full price; now it takes it of what is left, as
`docs/coupons.md` says.

| coupons    | before |   now |
|------------|-------:|------:|
| 10 %       |  90.00 | 90.00 |
| 10 %, 10 % |  80.00 | 81.00 |

A total can still have more than two decimals. To round it:

```python
def rounded(total):
    \"\"\"Return the total in whole cents.\"\"\"
    return total.quantize(Decimal("0.01"))
```
"""
LONG = """\
The cart has three parts.

1. **Prices** are Decimals, kept in a list.
2. **Coupons** are percentages, taken one after the other.
3. **The total** is"""
TEST = call("run_shell", command="python3 -m unittest -q")
DESTROY = call("run_shell", command="python3 -m unittest -q && rm -rf build/")
PAGES = call("run_shell", command="sh build.sh")
LOOK, SEARCH = call("read_file", path="cart.py"), call("search_files", pattern="coupon")
MEND = call(
    "edit_file",
    path="cart.py",
    old_text="total -= self.subtotal() * percent / 100",
    new_text="total -= total * percent / 100",
)
ROUND = call(
    "write_file",
    path="cart.py",
    content=CART.replace("return total\n", 'return total.quantize(Decimal("0.01"))\n'),
)
ALLOWED = ("--allow", "run_shell(python3 -m unittest *)")


class Wire(OllamaWire):
    """Ollama's, with models of usual sizes."""

    def facts(self, path: str, models: Sequence[str]) -> Mapping[str, Any] | None:
        """Answer the list of models with their sizes."""
        if path == "/api/tags":
            return {"models": [{"name": name, "size": int(MODELS[name])} for name in models]}
        facts = super().facts(path, models)
        if path == "/api/show" and facts:
            facts["model_info"]["scripted.context_length"] = 40_960
        return facts


class Ollama(OllamaServer):
    """An Ollama with three models."""

    wire = Wire()

    def __init__(self, script: Iterable[Any]) -> None:
        super().__init__(script, models=tuple(MODELS))


def said(*parts: Any, tokens: int = 2_431, out: int = 96) -> ScriptedAnswer:
    """Say something, with the numbers of a real answer."""
    used = Usage(input_tokens=tokens, output_tokens=out)
    return answer(*parts, usage=used, piece_size=20)


def stalled(text: str) -> Interrupted:
    """Say the beginning of something, then nothing more."""
    return Interrupted(how="stall", answer=said(text), after_frames=len(text) // 20 + 1)


@contextmanager
def film(
    script: Sequence[Any],
    *words: str,
    size: tuple[int, int] = (84, 50),
    environ: Mapping[str, str] | None = None,
    is_configured: bool = True,
) -> Generator[Film]:
    """Start ybs in a new shop, before a model that says what the script says."""
    with tempfile.TemporaryDirectory() as home, serving(script, Ollama) as server:
        make_shop(Path(home, "shop"))
        host = server.url.removeprefix("http://")
        around = {"HOME": home, "OLLAMA_HOST": host, **(environ or {})}
        os.chdir(Path(home, "shop"))
        if is_configured:
            words = ("-p", "ollama", "-m", MODEL, "--endpoint", server.url, *words)
        screen = Film(*words, size=size, environ=around, folder=FOLDER)
        try:
            with screen:
                yield screen
        finally:
            os.chdir(ROOT)


def make_shop(folder: Path) -> None:
    """Make a small project, with a mistake in it, under git."""
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    git = ("git", "-C", str(folder), "-c", "user.name=Shop", "-c", "user.email=shop@localhost")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "Begin")):
        subprocess.run([*git, *words], check=True)


def turn() -> None:
    """Mend a mistake."""
    script = [
        said("I look at the code and at what the tests say.", LOOK, SEARCH),
        said(TEST, tokens=2_873, out=31),
        said(
            "Each coupon is taken from `self.subtotal()`, the full price. It has to be taken from what is left.",
            MEND,
            tokens=3_240,
            out=118,
        ),
        said(TEST, tokens=3_402, out=31),
        said(FIXED, tokens=3_475, out=171),
    ]
    with film(script, *ALLOWED, size=(84, 70)) as screen:
        screen.plays("", rf"ask · sandbox  (.|\n)*{READY}")  # the whole one, not "reduced"
        screen.shoot(
            "start", "ybs has started: model, mode, sandbox and folder in one line, and the prompt"
        )
        screen.plays(
            f"the cart total is wrong for two coupons: find out why, and mend it{ENTER}", ENDED
        )
        screen.shoot(
            "turn", "a turn: two files are read, a test fails, one line is edited, the test passes"
        )


def question() -> None:
    """Ask before something is destroyed, and before a file is written."""
    script = [
        said(DESTROY),
        said("As you like: build/ stays.", tokens=2_600),
        said(LOOK),
        said(ROUND, tokens=2_990),
        said("As you like."),
    ]
    with film(script) as screen:
        screen.plays("", READY)
        screen.plays(f"{CLEAR}test it and clean up{ENTER}", ASKED)
        screen.shoot(
            "question", "a question: the whole command, a warning that it deletes, and the keys"
        )
        screen.plays("n", f"stays(.|\n)*{ENDED}")
        screen.plays(f"{CLEAR}round the totals to cents{ENTER}", ASKED)
        screen.shoot("diff", "a question before a write: the change as a diff, and the keys")
        screen.plays("n", f"like\\.(.|\n)*{ENDED}")


def choices() -> None:
    """Offer models, commands and files, and draw what fills the window."""
    script = [said("It holds prices and coupons.", tokens=3_100, out=12)]
    with film(script, size=(84, 30)) as screen:
        screen.plays("", READY)
        screen.plays(f"/model{ENTER}", "mistral")
        screen.plays(DOWN, "mistral")
        screen.shoot("picker", "a menu of models in the place of the prompt")
        screen.plays(f"{ESCAPE}", READY)
        screen.plays(f"{CLEAR}/co", "/copy")
        screen.shoot("commands", "commands that begin with /co, each with what it does")
        screen.plays(f"{EMPTY}{CLEAR}what is in @ca", r"carts\.md")
        screen.shoot("files", "files whose names have the letters ca in them")
        screen.plays(f"{EMPTY}{CLEAR}what is in @cart.py ?{ENTER}", ENDED)
        screen.plays(f"{CLEAR}/context{ENTER}", "messages")
        screen.shoot("context", "what fills the window of the model, each part with a bar")


def cost() -> None:
    """Draw what the turns of a session cost."""
    sizes = ((3_100, 240), (9_400, 1_120), (12_800, 310))
    script = [said("Done.", tokens=tokens, out=out) for tokens, out in sizes]
    with film(script) as screen:
        screen.plays("", READY)
        for words in (
            "what is in the cart?",
            "which tests does it need?",
            "and which page about it?",
        ):
            screen.plays(f"{CLEAR}{words}{ENTER}", f"{words}(.|\n)*{ENDED}")
        screen.plays(f"{CLEAR}/cost{ENTER}", "and which page(.|\n)*›")
        screen.shoot("cost", "what each turn of the session has cost, with a bar")


def steering() -> None:
    """Say something to a running turn, and stop it."""
    script = [
        said(thought("The pages are made by build.sh."), PAGES),
    ]
    with film(script, "--allow", "run_shell(sh build.sh)") as screen:
        screen.plays("", READY)
        screen.plays(f"{CLEAR}make the pages{ENTER}", "page 3")
        screen.plays(f"look at the coupons first{ENTER}", "coupons first")
        screen.plays("then write it down\t", "write it down")
        screen.shoot(
            "steering", "a running turn, with a line for its next step and one for its end"
        )
        screen.plays(ESCAPE, "interrupted")


def interrupted() -> None:
    """Stop an answer."""
    with film([stalled(LONG)]) as screen:
        screen.plays("", READY)
        screen.plays(f"{CLEAR}explain the cart{ENTER}", "The total")
        screen.plays(ESCAPE, "interrupted")
        screen.shoot("interrupted", "an answer that was stopped: what had come stays")


def narrow() -> None:
    """Work in 40 columns."""
    script = [
        said(LOOK),
        said(MEND),
        said("It is **fixed**: a coupon takes its part of what is left."),
    ]
    with film(script, size=(40, 40)) as screen:
        screen.plays("", READY)
        screen.plays(f"mend the cart{ENTER}", ENDED)
        screen.shoot("narrow", "the same in 40 columns")


def plain() -> None:
    """Talk in whole sentences."""
    script = [said(LOOK), said(DESTROY), said("As you like: build/ stays.")]
    with film(script, "--plain", size=(84, 40)) as screen:
        screen.plays("", "You:")
        screen.plays(f"test it and clean up{ENTER}", "no because")
        screen.plays(f"no because the archive is needed{ENTER}", "stays")
        screen.shoot(
            "plain", "the plain terminal: whole sentences, a question answered with a word"
        )


def first() -> None:
    """Choose a model at the first start."""
    with film([], environ={"ANTHROPIC_API_KEY": "made-up"}, is_configured=False) as screen:
        screen.plays("", "Number or name")
        screen.shoot("first", "the first start: the models that were found, numbered")


def incognito() -> None:
    """Write nothing down."""
    with film([said("It **holds** prices and coupons.")], "--incognito") as screen:
        screen.plays("", READY)
        screen.plays(f"what is in the cart?{ENTER}", ENDED)
        screen.shoot(
            "incognito", "an incognito session: its mark stands first at the top and at the bottom"
        )


SCENES: tuple[Callable[[], None], ...] = (
    first,
    turn,
    question,
    choices,
    cost,
    steering,
    interrupted,
    narrow,
    plain,
    incognito,
)


def main() -> int:
    """Take the pictures of all scenes, or of those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [scene.__name__ for scene in SCENES]
    parser.add_argument("scenes", nargs="*", help=f"some of: {', '.join(names)}")
    wanted = parser.parse_args().scenes or names
    if unknown := set(wanted) - set(names):
        parser.error(f"no such scene: {', '.join(sorted(unknown))}")
    for name in list(os.environ):
        if name.startswith(("YBS_", "XDG_", "OLLAMA_")) or name.endswith("_API_KEY"):
            del os.environ[name]
    os.environ |= {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    FOLDER.mkdir(exist_ok=True)
    for scene in SCENES:
        if scene.__name__ in wanted:
            print(f"{scene.__name__}: {scene.__doc__}")
            scene()
    return 0


if __name__ == "__main__":
    sys.exit(main())
