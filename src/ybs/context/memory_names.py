"""How files of memories are named: when they were kept, then what they are about, as Yips names them.

`2026-02-01_14-30-22_project_discussion.md`: the time is that of the person's own clock, since people read the names;
the rest are words in small letters joined by underscores. Nothing but this naming is taken from there.
"""

import re
from datetime import datetime
from pathlib import Path

SUFFIX = ".md"
#: The most characters that the words have. Two bytes each at most would still be a name for any file system.
LONGEST_SLUG = 50
_STAMP = "%Y-%m-%d_%H-%M-%S"
_NAMED = r"(?s)(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)(?:_(.*))?"


def slug(words: str) -> str:
    """Return words as a part of a file's name: letters and digits joined by underscores; `memory` without any."""
    kept = "_".join(re.findall(r"[^\W_]+", words.lower()))
    if len(kept) > LONGEST_SLUG:
        whole, _, _ = kept[: LONGEST_SLUG + 1].rpartition("_")
        kept = whole or kept[:LONGEST_SLUG]
    while len(kept.encode(errors="replace")) > 2 * LONGEST_SLUG:
        kept = kept[:-1]
    return kept.strip("_") or "memory"


def file_name(when: datetime, words: str, number: int = 1) -> str:
    """Return the name of a memory's file; `number` tells those of one second apart."""
    ending = f"_{number}" if number > 1 else ""
    return f"{when.strftime(_STAMP)}_{slug(words)}{ending}{SUFFIX}"


def stamp_of(seconds: float) -> str:
    """Write a file's time as names do."""
    return datetime.fromtimestamp(seconds).strftime(_STAMP)


def read_name(name: str) -> tuple[str, str]:
    """Return when a file's name says that it was kept, or nothing, and what it is about."""
    stem = name.removesuffix(SUFFIX)
    found = re.fullmatch(_NAMED, stem)
    return (found[1], found[2] or "") if found else ("", stem)


def project_name(folder: Path) -> str:
    """Return the name of the folder that the memories of a project have: its own name, and a digest of its path."""
    from hashlib import blake2b  # a start without memories needs it not

    digest = blake2b(str(folder).encode(errors="surrogateescape"), digest_size=5).hexdigest()
    return f"{slug(folder.name)}-{digest}"
