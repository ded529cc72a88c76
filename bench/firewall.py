"""The secret firewall: how fast beside plain expressions, how hard to slow down, and how often right.

`python bench/firewall.py [--gitleaks REPOSITORY] [--show N] [--seed N]` also judges recall on the test vectors of
gitleaks, in a clone (bare or not) that you have. It ends with 1 when a target is missed.
"""

import argparse
import re
import statistics
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from lab import Lab, Row
from secrets_corpus.gitleaks import vectors
from secrets_corpus.negatives import negatives

from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.rules import RULES

SIZE = 100_000
MOST_SHARE, MOST_HOSTILE_SHARE = 1 / 20, 1 / 2
LEAST_RECALL, LEAST_PRECISION = 0.98, 0.97
_PEM = "-----BEGIN RSA " + "PRIVATE KEY-----\n"
#: What would slow a careless engine down, repeated to 100 KB.
ADVERSARIAL = {
    "a": "a", "PEM BEGIN": _PEM, "PEM BEGIN and END": _PEM + "-----END X-----", "eyJ": "eyJ", "eyJ with dots": "eyJaaaaaaaaaaaaa.",
    "sk-": "sk-", "sk- and letters": "sk-abcdefgh", "://": "://", "://a:": "://a:", "password=": "password=", "bearer": "bearer ", "basic": "basic aaaaaaaa ",
    "key": "key", "token:": "token: ", "public_key=": "public_key=", "token=a&": "token=a&", "token= letters": "token=" + "a" * 394, "base64": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9w ", "base64, one run": "QUJD", "percent": "%25",
    "percent words": "%41b ", "unicode": "\\u0061", "zeros": "a\0", "curl -u": "curl -u ", "-u a:": " -u a:", "quotes": "\"'", "AKIA": "AKIA", "digits": "1",
    "spaces": "token" + " " * 90, "equals": "key====", "placeholders": "[ybs:secret:jwt#1]", "xoxb": "xoxb-1", "pat": "pat-", "0/1": "0/1", "machine": "machine a login b ",
    "entities": "&#65;", "octal": "\\101", "hex": "41", "hex with spaces": "41 ", "bytes of C": "0x41, ", "zero width": "a\u200b", "full width": "\uff41", "colours": "\x1b[0mA1",
    "literals": "\"aB3456789\" + ", "words on lines": "aB3456789x\n", "percent twice": "%2541", "base64 twice": "VVVKRFJFVkdSMGhKU2t0TVRVNVA",
    "escapes in quotes": 'token="a\\"b', "escapes without quotes": "token=a\\$b", "escapes in escapes": 'key=\\"a\\\\\\"b',
    "named entities": "A1&lowbar;", "colours written out": "\\x1b[31mA1", "line ends written out": "aB3456789x\\n", "slashes written out": "aB3456789x\\/",
    "lines with file and number": "a/b.c:1:aB3456789x\n", "percent u": "%u0041",
}  # fmt: skip


def measure(lab: Lab, rounds: int) -> Iterator[Row]:
    """Yield the rows of `bench/run.py`."""
    del lab
    text = source()
    patterns = [re.compile(rule.pattern) for rule in RULES]
    data = text.encode()
    every = median_seconds(lambda: [list(p.finditer(data)) for p in patterns], max(3, rounds))
    yield from speed(data, every, rounds)
    yield from adversarial(every, rounds)
    yield from first_request(rounds)
    flagged = sum(bool(Firewall().find(text)) for _, text in negatives(Random(7)))
    yield Row("hard negatives flagged", flagged, "", 9)


def source() -> str:
    """Return 100 KB of source that is on every machine: the standard library's."""
    folder = Path(sysconfig.get_path("stdlib"))
    names = (
        "http/client.py",
        "asyncio/base_events.py",
        "secrets.py",
        "urllib/request.py",
        "token.py",
        "netrc.py",
    )
    text = "".join((folder / name).read_text("utf-8") for name in names)
    return (text * (SIZE // len(text) + 1))[:SIZE]


def speed(data: bytes, every: float, rounds: int) -> Iterator[Row]:
    """Compare the firewall with every rule run over the whole text."""
    for size in (100, 5_000, SIZE):
        part = data[:size]
        run = partial(Firewall().spans, part)
        repeats = SIZE // size

        def repeated(run: Callable[[], object] = run, repeats: int = repeats) -> None:
            for _ in range(repeats):
                run()

        took = median_seconds(repeated, max(3, rounds))
        yield Row(
            f"{size / 1000:g} KB of source: of every rule with re",
            took / every,
            "x",
            round(MOST_SHARE, 4) if size == SIZE else None,
            f"{took * 1e6 / repeats / size * 1000:.1f} us for each KB",
        )


def adversarial(every: float, rounds: int) -> Iterator[Row]:
    """Compare each hostile text with every rule run over ordinary source."""
    firewall = Firewall()
    times: dict[str, float] = {}
    for name, unit in ADVERSARIAL.items():
        hostile = (unit.encode() * (SIZE // len(unit) + 1))[:SIZE]
        times[name] = median_seconds(partial(firewall.spans, hostile), min(3, rounds)) / every
    worst = sorted(times, key=times.__getitem__, reverse=True)
    note = ", ".join(f"{name} {times[name]:.2f}" for name in worst[:4])
    yield Row(
        "worst hostile 100 KB: of every rule with re on source",
        times[worst[0]],
        "x",
        MOST_HOSTILE_SHARE,
        note,
    )


def median_seconds(run: Callable[[], object], rounds: int) -> float:
    run()
    return statistics.median(seconds(run) for _ in range(rounds))


def first_request(rounds: int) -> Iterator[Row]:
    """Time a system prompt and the descriptions of tools as a new process has them: nothing compiled, nothing seen before."""
    text = ("Use the tools to read, search and edit files. A token or key is never shown. " * 110)[
        :8192
    ]
    code = (
        "import sys, time; from ybs.security.firewall.model import Firewall; text = sys.stdin.read();"
        "start = time.process_time(); Firewall().mask(text); print(time.process_time() - start)"
    )
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(max(3, rounds))
    ]
    yield Row("8 KB for the first time in a process", statistics.median(times) * 1e3, "ms", 4)


def seconds(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def judge(repository: Path, seed: int, show: int) -> Iterator[Row]:
    """Judge recall on gitleaks' vectors, and precision on them with the hard negatives."""
    firewall = Firewall()
    positives = [v for v in vectors(repository, Random(seed)) if v.is_secret and v.text]
    missed = [v for v in positives if not firewall.find(v.text)]
    flagged = [text for _, text in negatives(Random(seed)) if firewall.find(text)]
    found = len(positives) - len(missed)
    kinds = len({v.rule for v in positives})
    tops = ", ".join(
        f"{rule} {count}" for rule, count in Counter(v.rule for v in missed).most_common(5)
    )
    yield Row(
        f"recall on {len(positives)} vectors of {kinds} rules",
        found / len(positives),
        "",
        None,
        tops,
    )
    hard = len(list(negatives(Random(seed))))
    yield Row(f"precision with {hard} hard negatives", found / (found + len(flagged)), "")
    yield Row("hard negatives flagged", len(flagged), "", hard * (1 - LEAST_PRECISION))
    for text in [*(v.text for v in missed), *flagged][:show]:
        print("   ", repr(text[:160]))
    if found / len(positives) < LEAST_RECALL:
        yield Row("recall below its target", 1, "", 0)


def main() -> int:
    from run import is_missed, line_of

    parser = argparse.ArgumentParser(description="Measure the secret firewall.")
    parser.add_argument(
        "--gitleaks", type=Path, metavar="REPOSITORY", help="a clone with test vectors"
    )
    parser.add_argument(
        "--show", type=int, default=0, metavar="N", help="print so many that are wrong"
    )
    parser.add_argument("--seed", type=int, default=1, help="draw other vectors (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.gitleaks:
        rows: Iterator[Row] = judge(options.gitleaks, options.seed, options.show)
    else:
        with Lab() as lab:
            rows = iter(list(measure(lab, options.rounds)))
    missed = 0
    for row in rows:
        line = line_of(row)
        print(line if row.unit else line.replace(f"{row.value:>9.0f}", f"{row.value:>9.4f}"))
        missed += is_missed(row)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
