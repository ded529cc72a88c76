"""Node projects: JavaScript or TypeScript, who manages their packages, and which scripts they have."""

from typing import Any

import msgspec

from ybs.context.kinds.folder import Folder
from ybs.context.kinds.kind import Kind, picked

#: The files by which such a project is known.
SIGNS = ("package.json", "deno.json", "deno.jsonc")
_LOCKS = (
    ("pnpm", "pnpm-lock.yaml"),
    ("pnpm", "pnpm-workspace.yaml"),
    ("yarn", "yarn.lock"),
    ("bun", "bun.lock"),
    ("bun", "bun.lockb"),
    ("npm", "package-lock.json"),
    ("npm", "npm-shrinkwrap.json"),
)
_MANAGERS = ("npm", "pnpm", "yarn", "bun")
_WORKSPACE = ("pnpm-workspace.yaml", "lerna.json")
_PLAIN = (".js", ".jsx", ".mjs", ".cjs", ".vue", ".svelte")
_NO_TEST = "no test specified"


class _Package(msgspec.Struct, rename="camel"):
    """What counts of a package.json."""

    scripts: dict[str, str] = {}
    package_manager: str = ""
    workspaces: Any = None
    dependencies: dict[str, Any] = {}
    dev_dependencies: dict[str, Any] = {}


class _Deno(msgspec.Struct):
    """What counts of a deno.json."""

    tasks: dict[str, Any] = {}


def node(folder: Folder, below: list[Folder], above: str = "") -> Kind | None:
    """Return what the folder's package.json says; `above` is the manager of the project around it."""
    if not (text := folder.text("package.json")):
        return _deno(folder)
    try:
        package = msgspec.json.decode(text, type=_Package)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    tool = _manager(folder, package, above)
    names = {name for name, script in package.scripts.items() if _NO_TEST not in script}
    commands = picked(names, lambda name: _command(tool, name))
    is_workspace = bool(package.workspaces) or bool(folder.first(*_WORKSPACE))
    is_locked = tool == "npm" and "package-lock.json" in folder.files
    commands["setup"] = "npm ci" if is_locked else f"{tool} install"
    name = "TypeScript" if _is_typed(folder, below, package) else "JavaScript"
    return Kind(name=name, tool=tool, commands=commands, is_workspace=is_workspace)


def _manager(folder: Folder, package: _Package, above: str) -> str:
    named = package.package_manager.partition("@")[0]
    if named in _MANAGERS:
        return named
    return next((tool for tool, file in _LOCKS if file in folder.files), above or "npm")


def _command(tool: str, script: str) -> str:
    """Write how a script is run. `bun test` is bun's own runner, and npm knows `test` alone without `run`."""
    is_short = tool in ("pnpm", "yarn") or (tool == "npm" and script == "test")
    return f"{tool} {script}" if is_short else f"{tool} run {script}"


def _is_typed(folder: Folder, below: list[Folder], package: _Package) -> bool:
    """Return whether more of the sources in sight are TypeScript; where they do not tell, whether it is set up."""
    typed, plain = counts(folder, below)
    if typed != plain and not (package.workspaces or folder.first(*_WORKSPACE)):
        return typed > plain
    wanted = {**package.dependencies, **package.dev_dependencies}
    return "tsconfig.json" in folder.files or "typescript" in wanted


def counts(folder: Folder, below: list[Folder]) -> tuple[int, int]:
    """Count the sources in sight, of TypeScript and of JavaScript."""
    suffixes = [each.suffixes for each in (folder, *below)]
    typed = sum(each.get(end, 0) for each in suffixes for end in (".ts", ".tsx"))
    return typed, sum(each.get(end, 0) for each in suffixes for end in _PLAIN)


def _deno(folder: Folder) -> Kind | None:
    if not (text := folder.text("deno.json", "deno.jsonc")):
        return None
    try:
        tasks = msgspec.json.decode(text, type=_Deno).tasks
    except (msgspec.MsgspecError, ValueError, RecursionError):
        tasks = {}  # with comments it is not JSON
    return Kind(
        name="TypeScript", tool="deno", commands=picked(tasks, lambda name: f"deno task {name}")
    )
