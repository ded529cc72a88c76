"""Verify the mounts of the sandbox: bubblewrap mounts by path, and a path can lead elsewhere a moment later.

A sandboxed program that is still running can swap a folder of the project for a link while the next command's sandbox is
being built. So before that command starts, a shell in its sandbox compares the kernel's list of mounts with what was
meant: https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html. No process but that command's own can change
that list any more. Newer programs would take descriptors (`--bind-fd`); bubblewrap 0.8 does not.
"""

from collections.abc import Iterator, Sequence

#: The lines that are wanted stand before `--`, the command behind it. Nothing is forked: this is paid at every start.
#: They mostly come in the order of the list, so one pass finds them; what is left then is looked for in all of it.
_CHECK = """\
all='
'
while read -r _ _ device root point _; do
case $1 in "$device $root $point"|"$root $point") shift;; esac
all="$all$device $root $point
$root $point
"; done </proc/self/mountinfo
while [ "$1" != -- ]; do
case $all in *"
$1
"*) shift;; *) echo 'ybs: a folder changed while the sandbox was built, so nothing was run; try again' >&2; exit 126;;
esac; done
shift; unset all device root point
exec "$@"
"""
_TABLE = "/proc/self/mountinfo"
_ESCAPES = str.maketrans({" ": r"\040", "\t": r"\011", "\n": r"\012", "\\": r"\134"})
_BINDS = frozenset({"--bind", "--ro-bind"})

#: Device and folder in its file system, by mount point. All as the kernel writes them.
Table = dict[str, tuple[str, str]]


def checked(arguments: Sequence[str], command: Sequence[str]) -> tuple[str, ...]:
    """Return the command behind a check of the mounts that bubblewrap's `arguments` ask for. Raises OSError."""
    wanted = dict.fromkeys(_wanted(arguments, _mounted()))
    return ("/bin/sh", "-c", _CHECK, "sh", *wanted, "--", *command)


def _mounted() -> Table:
    with open(_TABLE, encoding="utf-8", errors="surrogateescape") as lines:  # noqa: PTH123 - at every start
        rows = (line.split(" ", 5) for line in lines)
        return {point: (device, root) for _, _, device, root, point, _ in rows}


def _wanted(arguments: Sequence[str], table: Table) -> Iterator[str]:
    """Yield the lines: device, root and point of what is bound; only root and point of an empty folder."""
    for place, word in enumerate(arguments):
        if word in _BINDS:
            source, target = arguments[place + 1 : place + 3]
            yield f"{_origin(source, table)} {target.translate(_ESCAPES)}"
        elif word == "--tmpfs":
            yield f"/ {arguments[place + 1].translate(_ESCAPES)}"


def _origin(path: str, table: Table) -> str:
    """Return device and root that a mount of this path has, when no link is on the way."""
    rest, point = "", path.translate(_ESCAPES)
    while point not in table and point not in ("", "/"):
        point, _, name = point.rpartition("/")
        rest = f"/{name}{rest}"
    device, root = table[point or "/"]
    return f"{device} {root.rstrip('/')}{rest}" if rest else f"{device} {root}"
