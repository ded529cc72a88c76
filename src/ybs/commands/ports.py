"""/ports: the ports that servers in the sandbox listen on, and the way to one of them from this machine."""

import asyncio

from ybs.core.errors import ToolError
from ybs.security.sandbox.shared_network import SharedNetwork
from ybs.session.reply import Menu, MenuItem, Reply, Table
from ybs.session.session import Session

USAGE = "Usage: /ports, /ports PORT, or /ports PORT close"
NONE = "Nothing listens in the sandbox. Servers that the model starts in the background are listed here."
QUESTION = (
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
        return Reply(text=USAGE, is_error=True)
    port = int(number)
    if action not in ("", "open", "close"):
        return Reply(text=USAGE, is_error=True)
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
    items = (
        MenuItem(line="/ports", label="no"),
        MenuItem(line=f"/ports {port} open", label="yes, forward it"),
    )
    menu = Menu(title=QUESTION.format(port=port), items=items, is_numbered=False)
    return Reply(menu=menu)
