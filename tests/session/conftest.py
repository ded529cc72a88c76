"""What tests of a session share."""

from opened import open_session, playing

__all__ = ["open_session", "playing"]
