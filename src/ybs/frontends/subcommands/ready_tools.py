"""`ybs tools install NAME`: put a tool that comes with ybs into the person's folder, where they may change it."""

from pathlib import Path

from ybs.config.host import Host
from ybs.frontends.headless.output import tell, write

WEB = ("web_search", "web_fetch")
_FOLDER = Path(__file__).parents[2] / "ready_tools"


def names() -> list[str]:
    """Return the names of the tools that come with ybs."""
    return sorted(file.stem for file in _FOLDER.glob("[a-z]*.py"))


def install(host: Host, name: str | None) -> int:
    """Copy a tool, or without a name list them. 1: another file of that name is there; 2: there is no such tool."""
    if name is None:
        for each in names():
            first = (_FOLDER / f"{each}.py").read_text("utf-8").partition("\n")[0]
            write(f"{each}: " + first.strip('"'))
        return 0
    if name == "web":  # both that the web takes
        return max(install(host, each) for each in WEB)
    wanted = name.replace("-", "_")
    if wanted not in names():
        tell(f"ybs: there is no tool {name!r} to install. There are: {', '.join(names())}.")
        return 2
    text, file = (
        (_FOLDER / f"{wanted}.py").read_text("utf-8"),
        host.config_folder / f"tools/{wanted}.py",
    )
    if file.exists() and file.read_text("utf-8", errors="replace") != text:
        tell(f"ybs: {file} is there already, and is not overwritten. Remove it first.")
        return 1
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    write(f"Installed {file}. Sessions offer it from their start on, and after /reload-tools.")
    return 0
