"""The system access that a tool program declares before it runs."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class ToolNeeds(Struct, frozen=True, kw_only=True):
    """What an external tool needs beside reading the project. The person is asked, and nothing else is there."""

    network: Annotated[bool, Meta(description="The network.")] = False
    project: Annotated[
        Literal["read", "write"], Meta(description="Whether it may change the project's files.")
    ] = "read"
    environment: Annotated[
        tuple[str, ...], Meta(description="Names of your environment variables that it gets.")
    ] = ()
    read: Annotated[
        tuple[str, ...], Meta(description="Files and folders outside the project that it reads.")
    ] = ()

    @property
    def words(self) -> str:
        """Return in a few words what it needs; nothing where it only reads the project."""
        needed = [
            *(["the network"] if self.network else []),
            *(["to change files"] if self.project == "write" else []),
            *([f"your {', '.join(self.environment)}"] if self.environment else []),
            *([f"to read {', '.join(self.read)}"] if self.read else []),
        ]
        return ", ".join(needed)
