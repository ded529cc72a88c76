"""What tests of slash commands share."""

from opened import open_session, playing

__all__ = ["open_session", "playing"]
