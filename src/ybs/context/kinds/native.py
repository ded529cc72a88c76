"""C and C++ projects: which of the build systems leads, and whether it knows of tests."""

from ybs.context.kinds.folder import Folder
from ybs.context.kinds.kind import Kind

#: The files by which such a project is known.
SIGNS = ("CMakeLists.txt", "meson.build", "configure.ac", "configure.in", "configure")
_PLUS = (".cc", ".cpp", ".cxx", ".hpp", ".hxx")


def native(folder: Folder, below: list[Folder]) -> Kind | None:
    """Return what the folder's files say of C and C++; None for other projects."""
    if folder.first("configure.ac", "configure.in"):
        build = "autoreconf -fi && ./configure && make"
        return Kind(name=_language(folder, below), tool="Autotools", commands={"build": build})
    if "CMakeLists.txt" in folder.files:
        text = folder.text("CMakeLists.txt")
        commands = {"build": "cmake -B build && cmake --build build"}
        if any(word in text for word in ("enable_testing", "add_test", "CTest")):
            commands["test"] = "ctest --test-dir build"
        return Kind(name=_language(folder, below), tool="CMake", commands=commands)
    if "meson.build" in folder.files:
        commands = {"build": "meson setup build && meson compile -C build"}
        if "test(" in folder.text("meson.build"):
            commands["test"] = "meson test -C build"
        return Kind(name=_language(folder, below), tool="Meson", commands=commands)
    if "configure" in folder.files:
        build = "./configure && make"
        return Kind(name=_language(folder, below), tool="", commands={"build": build})
    return None


def makes(folder: Folder, below: list[Folder]) -> Kind | None:
    """Return a kind for C or C++ sources beside a Makefile that names no kind itself."""
    if not folder.first("Makefile", "makefile", "GNUmakefile"):
        return None
    name = _language(folder, below)
    return None if name == "C/C++" else Kind(name=name, tool="Make", commands={"build": "make"})


def _language(folder: Folder, below: list[Folder]) -> str:
    """Tell C from C++ by the sources in sight."""
    suffixes = [each.suffixes for each in (folder, *below)]
    plain = sum(each.get(".c", 0) for each in suffixes)
    more = sum(each.get(end, 0) for each in suffixes for end in _PLUS)
    return "C/C++" if plain == more else "C" if plain > more else "C++"
