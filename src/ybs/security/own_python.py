"""How ybs's own Python begins as a child: `own_python.py FOLDERS -m MODULE`, `-c TEXT` or `"" FILE`, and words for it.

Python adds the folders of editable installs to those in which it looks for modules, and what is written there could be loaded
by a name that nothing else has (`msvcrt`). So the parent says which folders it looks in, one per line.
"""

import sys

(_folders, _how, _what), sys.argv[1:] = sys.argv[1:4], sys.argv[4:]
sys.path[:] = _folders.split("\n")
if _how == "-c":
    exec(_what)  # noqa: S102 - as Python's own option
else:
    import runpy

    if _how:
        runpy.run_module(_what, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(_what, run_name="__main__")
