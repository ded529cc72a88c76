"""Commands with the verdict that each must get, by family: the cases S01 to S14, ordinary work, and what destroys.

Most stand in `commands.txt`, a line for each: a verdict and a command, where `⏎` stands for a newline and `␍` for a
carriage return. The verdicts, in mode `ask` with a full sandbox: `held` runs unasked with the project read-only; `ask` asks, and runs unasked in mode
`auto`; `doubt` asks in `auto` too; `destroys` asks in both, as destructive; `deny` is refused.
"""

from pathlib import Path

FAMILIES: dict[str, str] = dict(
    part.split("\n", 1)
    for part in Path(__file__).with_name("commands.txt").read_text("utf-8").split("== ")[1:]
)
FAMILIES["S07 too much"] = "\n".join(
    [
        "deny " + "true && " * 60 + "sudo id",
        "deny " + "true; " * 60 + "sudo id",
        "deny " + "true | " * 200 + "sudo id",
        "deny " + "env " * 12 + "sudo id",
        "deny " + "true;" * 501 + "sudo id",
        "deny " + "(" * 60 + "sudo id" + ")" * 60,
        "deny " + "$(" * 60 + "sudo id" + ")" * 60,
        "deny " + "echo " + "a" * 40_000 + "; sudo id",
        "destroys " + "true && " * 60 + "rm -r x",
        "destroys " + "true && " * 60 + "git push --force",
        "held " + "true && " * 60 + "true",
        "held " + "echo " + "a" * 40_000,
        "doubt " + "ls; echo " + "a" * 40_000,
        "doubt " + "env " * 12 + "ls",
        "doubt " + "$(" * 60 + "ls" + ")" * 60,
    ]
)
FAMILIES["U04 what deceives the eye"] = "\n".join(
    [
        "doubt \u0455udo ls",
        "doubt l\u0455 x",
        "doubt echo a\uff1b ls",
        "doubt ls\u00a0-l",
        "doubt ls \u2028rm x",
        "doubt ls \u200bx",
        "doubt ls \u202ex",
        "doubt cat \u2066x\u2069",
        "doubt cat p\u0430ypal.txt",
        "doubt cat \uff52eadme",
        "doubt ls \u3000x",
        "doubt ls \U000e0041",
        "held cat grün.txt",
        "held cat 日本語.txt",
        "held echo 'Привет мир'",
        "held echo 👩\u200d👩\u200d👧",
        "held cat Ελλάδα.md",
        "ask git commit -m 'Füge ½ hinzu'",
    ]
)


def all_cases() -> list[tuple[str, str, str]]:
    """Return family, verdict and command of every case."""
    return [
        (family, *_read(line))
        for family, lines in FAMILIES.items()
        for line in lines.strip("\n").split("\n")
    ]


def _read(line: str) -> tuple[str, str]:
    verdict, _, command = line.partition(" ")
    return verdict, command.replace("⏎", "\n").replace("␍", "\r")
