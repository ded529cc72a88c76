"""What tests of agents share."""

from opened import open_session, playing

__all__ = ["open_session", "playing"]
