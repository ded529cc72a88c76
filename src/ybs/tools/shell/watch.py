"""A tiny process that ends a session's commands when ybs itself was killed and could not.

It reads the numbers of running groups from a pipe. The pipe ends when ybs does, however that happened; what is on
the list then is killed, and what carries the session's mark too.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ybs.security.launcher import start
from ybs.security.sandbox.launch import Launch

if TYPE_CHECKING:
    from subprocess import Popen

_SCRIPT = """
trap '' HUP INT TERM
all=' '
scratch=
while read -r group; do
  case $group in
    end) exit 0 ;;
    /*) scratch=$group ;;
    -*) one=${group#-}
        case $all in *" $one "*) all="${all%%" $one "*} ${all#*" $one "}" ;; esac ;;
    *) all="$all$group " ;;
  esac
done
for one in $all; do kill -9 -"$one"; done
if [ -r /proc/self/environ ]; then
  for file in $(grep -lF "$1" /proc/[0-9]*/environ); do
    file=${file#/proc/}
    kill -9 "${file%/environ}"
  done
fi
[ -z "$scratch" ] || rm -rf "$scratch" || rm -rf "$scratch"
"""


class Watch:
    """Tells the process which groups run. Where it cannot be started, nobody watches, and nothing else changes."""

    def __init__(self, token: str) -> None:
        self._pipe: int | None = None
        self._process: Popen[bytes] | None = None
        reading_end, writing_end = os.pipe()
        try:
            words = ("/bin/sh", "-c", _SCRIPT, "ybs-watch", token)
            self._process = start(Launch(words, {"PATH": os.defpath}), stdin=reading_end)
        except OSError:
            os.close(writing_end)
        else:
            os.set_blocking(writing_end, False)  # nothing waits for a process that was stopped
            self._pipe = writing_end
        finally:
            os.close(reading_end)

    def begin(self, group: int) -> None:
        """Put a group on the list."""
        self._write(f"{group}\n")

    def end(self, group: int) -> None:
        """Take it off, as long as its number can mean no other one."""
        self._write(f"-{group}\n")

    def clear(self, folder: str) -> None:
        """Have a folder removed where ybs itself cannot: an absolute path. There is one in a session."""
        if "\n" not in folder:
            self._write(f"{folder}\n")

    def _write(self, line: str) -> None:
        if self._pipe is not None:
            with suppress(OSError):  # somebody killed it
                os.write(self._pipe, line.encode())

    def close(self) -> None:
        """End the process: all commands have ended."""
        if self._process is not None and self._pipe is not None:
            self._write("end\n")
            os.close(self._pipe)
            self._pipe = None
            self._process.wait()
