"""What tests of a session share."""

from opened import open_session

__all__ = ["open_session"]
