"""What tests of slash commands share."""

from opened import open_session

__all__ = ["open_session"]
