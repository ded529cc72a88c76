"""A folder of the cage's own, where no mount can stand in for /tmp and the home folder."""

import os
from pathlib import Path
from typing import Any

UNSHARED = "unshared"


class PrivateFolder:
    """Made when it is first asked for, for its owner only; removed when it is forgotten or the program ends."""

    def __init__(self) -> None:
        self._path = ""
        self._removal: Any = None

    @property
    def path(self) -> str:
        """The folder, resolved."""
        if not self._path:
            import shutil  # only the cages without mounts need these
            from tempfile import mkdtemp
            from weakref import finalize

            self._path = os.path.realpath(mkdtemp(prefix="ybs-"))
            self._removal = finalize(self, shutil.rmtree, self._path, ignore_errors=True)
            for path in (self.home, self.temporary, self.unshared):
                Path(path).mkdir(mode=0o700)
        return self._path

    @property
    def home(self) -> str:
        """What the program takes for the home folder."""
        return f"{self.path}/home"

    @property
    def temporary(self) -> str:
        """What the program takes for the folder of temporary files."""
        return f"{self.path}/temporary"

    @property
    def unshared(self) -> str:
        """The one place where a command may write that runs read-only; other commands do not look there."""
        return f"{self.path}/{UNSHARED}"
