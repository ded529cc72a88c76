"""The commands /sandbox and /ports: how commands are sandboxed, and the ports on which servers in the sandbox listen."""

import asyncio
from collections.abc import Callable, Mapping

from ybs.core.errors import ToolError
from ybs.security.sandbox.sandbox import WALLED
from ybs.security.sandbox.shared_network import SharedNetwork
from ybs.session.reply import Menu, MenuItem, Reply, Table
from ybs.session.session import Session

USAGE = "Usage: /sandbox [on|off], /sandbox network [on|off]; /add-dir FOLDER opens a folder"
MISSING = "This machine has no sandbox to change: {}"
OFF = (
    "The sandbox is off for this session. Commands can read and change whatever you can, and use the network. "
    "/sandbox on turns it on again."
)
ON = "The sandbox is on: commands see the project, and what /sandbox lists."
NETWORK_ON = "Commands have the network in this session: whatever they can read could be sent away. /sandbox network off closes it."
NETWORK_OFF = "Commands have no network, unless you give it to one of them."
QUESTION = (
    "Run commands without the sandbox in this session? They can then read and change whatever you can, "
    "your keys too, and use the network."
)


async def change_sandbox(session: Session, argument: str) -> Reply:
    """Show the sandbox, or change it for the session: the network, on or off."""
    what, value = [*argument.split(maxsplit=1), "", ""][:2]
    sandbox, change = session.environment.sandbox, _CHANGES.get(what.lower())
    if what and what.lower() not in ("on", "off") and sandbox.state == "none":
        return Reply.error(MISSING.format(sandbox.backend.why))
    reply = change(session, value) if change else None
    return reply or Reply.error(USAGE)


def _turn_on(session: Session, value: str) -> Reply | None:
    if value:
        return None
    sandbox = session.environment.sandbox
    sandbox.switch(is_off=False)
    return _show(session, "") if sandbox.state == "none" else Reply(text=ON)


def _turn_off(session: Session, value: str) -> Reply | None:
    sandbox = session.environment.sandbox
    if value.lower() == "now":
        sandbox.switch(is_off=True)
        return Reply(text=OFF)
    if value:
        return None
    if sandbox.is_off:
        return Reply(text="The sandbox is off already.")
    items = (
        MenuItem("/sandbox", "no, keep it"),
        MenuItem("/sandbox off now", "yes, without the sandbox"),
    )
    return Reply(menu=Menu(QUESTION, items, is_numbered=False))


def _change_network(session: Session, value: str) -> Reply | None:
    if value.lower() not in ("on", "off"):
        return None
    session.environment.sandbox.open_network(is_open=value.lower() == "on")
    return Reply(text=NETWORK_ON if value.lower() == "on" else NETWORK_OFF)


def _show(session: Session, value: str) -> Reply | None:
    if value:
        return None
    sandbox = session.environment.sandbox
    state = {
        "full": f"on ({sandbox.backend.name})",
        "held": f"on, reduced ({sandbox.backend.name}): {sandbox.backend.why}",
        "reduced": f"on, reduced ({sandbox.backend.name}): {sandbox.backend.why}",
        "none": f"none: {sandbox.backend.why}",
        "off": "off: you turned it off",
    }[sandbox.state]
    rows = [("sandbox", state)]
    if sandbox.state in WALLED:
        closed = "closed; the question about a command offers it"
        rows.append(("network", closed if sandbox.closes_network else "open for every command"))
        named = session.environment.config.safety.outside_sandbox
        rows.append(
            (
                "outside",
                f"{', '.join(named)}: without a question"
                if named
                else "one command at a time; its question offers it",
            )
        )
        rows += [("writable", session.host.short(folder)) for folder in sandbox.opened]
    how = "/sandbox on, off, network on, network off: for this session. /add-dir FOLDER opens a folder."
    return Reply(tables=(Table.of(rows),), notes=(how,))


_CHANGES: Mapping[str, Callable[[Session, str], Reply | None]] = {
    "": _show,
    "on": _turn_on,
    "off": _turn_off,
    "network": _change_network,
}


USAGE_OF_PORTS = "Usage: /ports, /ports PORT, or /ports PORT close"
NONE = "Nothing listens in the sandbox. Servers that the model starts in the background are listed here."
FORWARD = (
    "Forward port {port} of the sandbox to 127.0.0.1 on this machine? Your browser, and every other program and user "
    "of this machine, can then reach the server that a command has started there."
)
OPENED = "http://127.0.0.1:{outside} on this machine leads to port {port} of the sandbox, until the session ends or /ports {port} close."
BARE = "Commands run without the sandbox: their ports are this machine's."


async def show_ports(session: Session, argument: str) -> Reply:
    """List the ports in the sandbox, or forward one after a question."""
    sandbox = session.environment.sandbox
    if sandbox.is_off:
        return Reply(text=BARE)
    network = sandbox.shared_network
    number, action = [*argument.lower().split(maxsplit=1), "", ""][:2]
    if not number:
        return _listed(await asyncio.to_thread(network.listening), network.forwards)
    if not number.isascii() or not number.isdecimal() or not 0 < int(number) < 65_536:
        return Reply.error(USAGE_OF_PORTS)
    port = int(number)
    if action not in ("", "open", "close"):
        return Reply.error(USAGE_OF_PORTS)
    return await _change(network, port, action) if action else _question(port)


async def _change(network: SharedNetwork, port: int, action: str) -> Reply:
    if action == "close":
        is_closed = await asyncio.to_thread(network.end, port)
        said = "no longer forwarded" if is_closed else "not forwarded"
        return Reply(text=f"Port {port} is {said}.", is_error=not is_closed)
    if port not in await asyncio.to_thread(network.listening):
        raise ToolError(f"Nothing listens on port {port} in the sandbox.")
    outside = await asyncio.to_thread(network.forward, port)
    return Reply(text=OPENED.format(port=port, outside=outside))


def _listed(ports: list[int], forwards: dict[int, int]) -> Reply:
    if not ports:
        return Reply(text=NONE)
    rows = [
        (str(port), f"http://127.0.0.1:{forwards[port]}" if port in forwards else "")
        for port in ports
    ]
    return Reply(tables=(Table.of(rows),), notes=("/ports PORT forwards one to this machine.",))


def _question(port: int) -> Reply:
    items = (MenuItem("/ports", "no"), MenuItem(f"/ports {port} open", "yes, forward it"))
    menu = Menu(FORWARD.format(port=port), items, is_numbered=False)
    return Reply(menu=menu)
