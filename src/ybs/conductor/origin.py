"""The project that sub-agents have copies of, and what these copies have in common."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TypeVar

from ybs.agent.environment import ToolEnvironment
from ybs.checkpoints.scan import KnownPaths
from ybs.checkpoints.states import Change, State, state_at
from ybs.checkpoints.store import Pack
from ybs.conductor.contents import Contents, look, path_in
from ybs.core.errors import Refused
from ybs.core.hooks import CallHook
from ybs.core.to_its_end import to_its_end
from ybs.security.paths.roots import Roots
from ybs.security.sandbox.scratch import HeldFolder
from ybs.tools.searching.ignore import Ignore, ignore_above
from ybs.tools.searching.walk import Deadline

_Value = TypeVar("_Value")
#: How long a look at the project or at a copy may take.
LOOK_SECONDS = 30.0
#: What tools may not read.
_CLOSED = State(kind="other", mark="closed")


class ParentProject:
    """The project of an `environment`; `hooks` look before and after what changes in it."""

    def __init__(self, environment: ToolEnvironment, hooks: Sequence[CallHook]) -> None:
        self.environment, self.hooks = environment, environment.around(hooks)
        #: Held while the changes of one sub-agent are merged.
        self.merging = asyncio.Lock()
        in_memory = not environment.incognito.may_write
        self._folder = HeldFolder(environment.host.copies_folder, in_memory=in_memory)
        self._working = asyncio.Lock()
        self._taking = Lock()  # a merge takes contents while another copy is made
        self._pack: Pack | None = None
        self._known: Mapping[str, KnownPaths] = {}

    @property
    def roots(self) -> Roots:
        """The folders that tools may work in."""
        return self.environment.roots

    def path(self, path: str) -> str:
        """Return the absolute path of one in the project."""
        return path_in(self.roots.folder, path)

    def shown(self, change: Change) -> str:
        """Return the path of a change as models read it."""
        return self.roots.show(Path(self.path(change.path)))

    def look(self, deadline: Deadline) -> Contents:
        """Look at the project and keep what its files hold. Raises TooMuch and NoRoom."""
        contents = look(self.roots, self.take, deadline, self._known)
        self._known = contents.known
        return contents

    def rules_above(self, copy: Path) -> Ignore:
        """Return what git ignores by rules that stand above the project, for a copy of it."""
        return ignore_above(self.roots.folder).moved(self.roots.folder, copy)

    def state(self, path: str) -> State:
        """Return what stands at a path of the project now; of what tools may not read, nothing but that."""
        outer = self.path(path)
        try:
            self.roots.judge(outer, is_link_followed=False)
        except Refused:
            return _CLOSED
        return state_at(self.roots, outer, self.take)

    def states(self, paths: Sequence[str]) -> dict[str, State]:
        """Return what stands at these paths of the project now, as `state` does."""
        return {path: self.state(path) for path in paths}

    def take(self, data: bytes) -> str:
        """Keep a content and return its digest. Raises NoRoom, Unsafe and OSError."""
        with self._taking:
            if self._pack is None:
                self._pack = Pack(Path(self._folder.path))
            return self._pack.take(data)

    def get(self, digest: str) -> bytes | None:
        """Return a content that was taken. Raises OSError."""
        return None if self._pack is None else self._pack.get(digest)

    def new_folder(self) -> Path:
        """Make an empty folder for this session alone. Raises OSError."""
        folder = Path(self._folder.path, os.urandom(6).hex())
        folder.mkdir(mode=0o700)
        return folder

    async def working(self, work: Callable[[Deadline], _Value]) -> _Value:
        """Do it in a thread, one after the other; it has ended when this has, also where it is cancelled."""
        async with self._working:
            deadline = Deadline(LOOK_SECONDS)
            return await to_its_end(asyncio.to_thread(work, deadline), hurry=deadline.cancel)

    def close(self) -> None:
        """Let go of all contents and remove all copies. It may be used again."""
        with self._taking:
            self._known = {}
            if self._pack is not None:
                self._pack.close()
                self._pack = None
            self._folder.remove()
