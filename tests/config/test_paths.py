"""Two names of one place."""

import os
from pathlib import Path

from rows import every_row
from ybs.config.paths import is_same


@every_row(
    ("one", "other", "expected"),
    [
        ("file", "file", True),
        ("file", "link", True),
        ("file", "second name", True),
        ("file", "other", False),
        (".", "to folder", True),
        ("gone", "gone", True),
        ("gone", "to folder/gone", True),
        ("gone", "to gone", True),
        ("gone", "file", False),
        ("gone", "circle", False),
        ("\0", "file", False),
        ("\0", "gone", False),
    ],
)
def test_paths_are_one_by_where_they_lead(one: str, other: str, expected: bool, tmp_path: Path):
    folder = tmp_path / "x"
    if not folder.exists():
        folder.mkdir()
        for name in ("file", "other"):
            (folder / name).write_text("text")
        os.link(folder / "file", folder / "second name")
        for name, target in {"link": "file", "to folder": ".", "to gone": "gone"}.items():
            (folder / name).symlink_to(target)
        (folder / "circle").symlink_to("circle")
    assert is_same(folder / one, folder / other) == expected
    assert is_same(folder / other, folder / one) == expected
