"""The text of a PDF's pages, taken out by pypdf in a process of its own, which has limits and may be killed.

It reads the file on standard input and writes JSON lines, each `[kind, value]`: `total`, `page`, `problem`.
"""

import json
import logging
import sys
from contextlib import suppress
from io import BytesIO

_CPU_SECONDS = 30
_MEMORY_BYTES = 1_000_000_000
_MOST_CHARS = 4_000_000  # of all pages
_MOST_PAGE_CHARS = 500_000


def write(kind: str, value: str | int) -> None:
    """Say one thing at once: this process may be killed at any time."""
    sys.stdout.write(json.dumps([kind, value]) + "\n")
    sys.stdout.flush()


def run(data: bytes) -> None:
    """Write out the pages of a file. Whatever a broken one raises ends the process."""
    try:
        from pypdf import PdfReader  # it takes a tenth of a second to load
        from pypdf.errors import DependencyError, FileNotDecryptedError
    except ImportError:
        write("problem", "pypdf is not installed")
        return
    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            write("problem", "encrypted")
            return
        write("total", len(reader.pages))
    except (DependencyError, FileNotDecryptedError):
        write("problem", "encrypted")
        return
    left = _MOST_CHARS
    for page in reader.pages:
        text = page.extract_text()[: min(_MOST_PAGE_CHARS, left)]
        write("page", text.encode(errors="replace").decode())  # half characters are not text
        left -= len(text)
        if left <= 0:
            return


def main() -> None:
    """Read standard input and tell what is in it."""
    import resource  # only the own process has limits

    limits = ((resource.RLIMIT_CPU, _CPU_SECONDS), (resource.RLIMIT_AS, _MEMORY_BYTES))
    for limit, most in limits:
        with suppress(ValueError, OSError):  # not every system takes every limit
            resource.setrlimit(limit, (most, most))
    logging.disable()  # what is odd about the file interests nobody
    run(sys.stdin.buffer.read())


if __name__ == "__main__":
    main()
