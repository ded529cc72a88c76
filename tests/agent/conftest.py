"""What tests of agents share."""

from opened import open_session

__all__ = ["open_session"]
