"""A real Matrix homeserver, Synapse, on loopback with SQLite in a folder, and people with real clients (matrix-nio)."""

import asyncio
import base64
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import nio

#: Where `scripts/setup.sh programs` puts it: its requirements are not those of ybs.
PYTHON = Path(sys.prefix) / "synapse" / "bin" / "python"
_FREE = {"per_second": 1000, "burst_count": 1000}


class Synapse:
    """The server, from `start` to `stop`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        seed = base64.b64encode(os.urandom(32)).decode().rstrip("=")
        (folder / "signing.key").write_text(f"ed25519 a_test {seed}\n")
        limits = ("message", "registration", "joins", "invites", "login", "room_creation")
        listener = {"port": self.port, "bind_addresses": ["127.0.0.1"], "type": "http"}
        settings: dict[str, Any] = {
            "server_name": "localhost",
            "listeners": [listener | {"resources": [{"names": ["client"]}]}],
            "database": {"name": "sqlite3", "args": {"database": str(folder / "db")}},
            "media_store_path": str(folder / "media"),
            "signing_key_path": str(folder / "signing.key"),
            "pid_file": str(folder / "pid"),
            "log_config": str(folder / "log.json"),
            "report_stats": False,
            "bcrypt_rounds": 4,
            "trusted_key_servers": [],
            "macaroon_secret_key": secrets.token_hex(),
            "enable_registration": True,
            "enable_registration_without_verification": True,
            **{f"rc_{each}": _FREE for each in limits},
            "rc_login": {"address": _FREE, "account": _FREE},
            "rc_joins": {"local": _FREE},
            "rc_invites": {"per_room": _FREE, "per_user": _FREE, "per_issuer": _FREE},
        }
        handler = {"class": "logging.FileHandler", "filename": str(folder / "log")}
        log = {"version": 1, "handlers": {"file": handler}}
        log["root"] = {"level": "WARNING", "handlers": ["file"]}
        (folder / "log.json").write_text(json.dumps(log))
        (folder / "settings.json").write_text(json.dumps(settings))

    def start(self) -> Self:
        """Start it, and wait until it answers."""
        command = (str(PYTHON), "-m", "synapse.app.homeserver", "-c", "settings.json")
        with (self.folder / "stderr").open("ab") as said:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=said, stderr=said)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=2):
                    return self
            except OSError:
                if self._process.poll() is not None:
                    break
                time.sleep(0.05)
        raise RuntimeError((self.folder / "stderr").read_text()[-2000:])

    def stop(self) -> None:
        """End it at once."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    async def client(self, name: str, folder: Path) -> nio.AsyncClient:
        """Register somebody, and return their client."""
        client = nio.AsyncClient(self.url, name, store_path=str(folder))
        answer = await client.register(name, secrets.token_hex())
        assert isinstance(answer, nio.RegisterResponse), answer
        return client


class Person:
    """Somebody with a client that syncs: `events` is what they saw."""

    def __init__(self, client: nio.AsyncClient) -> None:
        self.client, self.events, self.typing = client, list[nio.Event](), set[str]()
        client.add_event_callback(self._came, nio.Event)  # type: ignore[arg-type]
        client.add_ephemeral_callback(self._typed, nio.TypingNoticeEvent)  # type: ignore[arg-type]

    async def __aenter__(self) -> Self:
        self._syncing = asyncio.create_task(self.client.sync_forever(5000, full_state=True))
        async with asyncio.timeout(10):
            await self.client.synced.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._syncing.cancel()
        await asyncio.gather(self._syncing, return_exceptions=True)
        await self.client.close()
        if self.client.store is not None:
            self.client.store.database.close()

    async def _came(self, _: nio.MatrixRoom, event: nio.Event) -> None:
        self.events.append(event)

    async def _typed(self, _: nio.MatrixRoom, event: nio.TypingNoticeEvent) -> None:
        self.typing.update(event.users)

    async def room(self, *invited: str, encrypted: bool = False, **given: Any) -> str:
        """Make a room and invite people to it."""
        state = [nio.EnableEncryptionBuilder().as_dict()] if encrypted else []
        answer = await self.client.room_create(invite=invited, initial_state=state, **given)
        assert isinstance(answer, nio.RoomCreateResponse), answer
        return answer.room_id

    async def send(self, room: str, kind: str, content: dict[str, Any]) -> str:
        """Send an event and return its id."""
        answer = await self.client.room_send(room, kind, content, ignore_unverified_devices=True)
        assert isinstance(answer, nio.RoomSendResponse), answer
        return answer.event_id

    async def say(self, room: str, text: str, **fields: Any) -> str:
        """Write a message."""
        content = {"msgtype": "m.text", "body": text, "m.mentions": {}}
        return await self.send(room, "m.room.message", content | fields)

    def said(self, who: str) -> list[dict[str, Any]]:
        """Return the contents of the messages of somebody, as this person could read them."""
        return [
            each.source["content"]
            for each in self.events
            if each.sender == who and isinstance(each, nio.RoomMessage)
        ]


async def until(holds: Callable[[], object], seconds: float = 40.0) -> None:
    """Wait until something holds. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what holds may be anywhere
            await asyncio.sleep(0.02)
