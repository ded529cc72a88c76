"""The log of a frontend: a file that this person alone reads, and the one before it."""

import logging
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from ybs.config import private_file


class LogFile(RotatingFileHandler):
    """Writes a log to its file, or does without it where that cannot be: the disk is full, or a link stands there."""

    def _open(self) -> TextIOWrapper:
        private_file.make(Path(self.baseFilename))
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:
        """Say nothing: what is wrong is told where it matters."""
        del record
