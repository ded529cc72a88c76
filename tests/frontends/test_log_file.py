"""The log of a frontend: read by nobody else, written to nothing else."""

import logging
import os
import stat
from pathlib import Path

from ybs.frontends.log_file import LogFile


def told(path: Path, *words: str) -> None:
    log = LogFile(path, maxBytes=20, backupCount=1, encoding="utf-8", delay=True)
    for each in words:
        log.handle(logging.LogRecord("ybs", logging.INFO, "", 0, each, (), None))
    log.close()


def test_the_log_and_the_one_before_it_are_the_persons_alone_whatever_the_umask(tmp_path: Path):
    before = os.umask(0)
    try:
        told(tmp_path / "state/log", "one", "two: it is full now", "three")
    finally:
        os.umask(before)
    made = sorted((tmp_path / "state").iterdir())
    assert [each.read_text() for each in made] == ["three\n", "two: it is full now\n"]
    assert [stat.S_IMODE(each.stat().st_mode) for each in made] == [0o600, 0o600]
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_a_link_in_its_place_is_not_followed_and_stops_nobody(tmp_path: Path):
    (tmp_path / "notes").write_text("mine")
    (tmp_path / "log").symlink_to(tmp_path / "notes")
    told(tmp_path / "log", "words")
    assert (tmp_path / "notes").read_text() == "mine"
