"""The agent side of the protocol: the methods that an editor calls, on the sessions of one hub."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from acp import RequestError, schema
from msgspec.structs import replace

from ybs.commands.open import open_session
from ybs.core.errors import YbsError
from ybs.frontends.acp.config_options import MODE
from ybs.frontends.acp.editor_session import AUTH_REQUIRED, EditorFiles, EditorSession, failure
from ybs.frontends.acp.handshake import HOW, Handshake, missing_setup
from ybs.frontends.json_rpc import INVALID_PARAMS
from ybs.session.hub import Hub
from ybs.session.options import Options
from ybs.session.session import Session
from ybs.session.settings import load_settings
from ybs.session.unsaved import Unsaved
from ybs.transcripts.saved import Saved
from ybs.transcripts.store import Store

_NOT_FOUND: Final = -32002
#: So many saved sessions are listed at once.
_PAGE: Final = 100


class EditorAgent:
    """Answers an editor. `options` are those of the command line, which hold for every session.

    Each method takes what the protocol names, and raises RequestError. `initialize` has been answered before (`handshake`).
    """

    def __init__(self, options: Options, handshake: Handshake) -> None:
        self._options, self._handshake = options, handshake
        self._hub = Hub(self._opened, options.host)
        self._sessions: dict[str, EditorSession] = {}
        self._client: Any = None

    def on_connect(self, client: Any) -> None:
        """Keep the connection, by which the editor is asked and told."""
        self._client = client

    async def aclose(self) -> None:
        """End all sessions."""
        await asyncio.gather(*(self._close(each) for each in tuple(self._sessions)))

    async def authenticate(self, method_id: str, **_: Any) -> schema.AuthenticateResponse:
        """Look whether the setup that was missing is there now."""
        del method_id
        if (missing := await asyncio.to_thread(missing_setup, self._options)) is not None:
            raise RequestError(AUTH_REQUIRED, f"{missing} {HOW}")
        return schema.AuthenticateResponse()

    async def new_session(self, **where: Any) -> schema.NewSessionResponse:
        """Open a session."""
        return schema.NewSessionResponse(**self._begun(self._open(**where), is_new=True))

    async def load_session(self, session_id: str, **where: Any) -> schema.LoadSessionResponse:
        """Go on with a saved session, and tell all of it first."""
        held = self._resumed(session_id, where)
        await held.replay()
        return schema.LoadSessionResponse(**self._begun(held))

    async def resume_session(self, session_id: str, **where: Any) -> schema.ResumeSessionResponse:
        """Go on with a saved session."""
        return schema.ResumeSessionResponse(**self._begun(self._resumed(session_id, where)))

    async def fork_session(self, session_id: str, **where: Any) -> schema.ForkSessionResponse:
        """Go on with a copy of a saved session, which has an id of its own."""
        held = self._open(**where, resume=self._saved(session_id), fork=True)
        return schema.ForkSessionResponse(**self._begun(held))

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> schema.ListSessionsResponse:
        """List the saved sessions of a folder or of all, the newest first."""
        saved = await asyncio.to_thread(self._listed, cwd)
        names = [each.name for each in saved]
        if cursor is not None and cursor not in names:
            raise RequestError(INVALID_PARAMS, "The cursor is not one of a list given here.")
        page = saved[names.index(cursor) + 1 if cursor is not None else 0 :][:_PAGE]
        has_more = bool(page) and page[-1] is not saved[-1]
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(
                    session_id=each.name,
                    cwd=each.project or "/",
                    title=each.title or None,
                    updated_at=datetime.fromtimestamp(each.changed_at, UTC).isoformat(),
                )
                for each in page
            ],
            next_cursor=page[-1].name if has_more else None,
        )

    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        """End a session; it stays saved."""
        self._find(session_id).cancel()
        await self._close(session_id)
        return schema.CloseSessionResponse()

    async def prompt(
        self, session_id: str, prompt: Sequence[Any], **_: Any
    ) -> schema.PromptResponse:
        """Take a turn."""
        return await self._find(session_id).prompt(prompt)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the turn of a session."""
        self._find(session_id).cancel()

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: Any
    ) -> schema.SetSessionModeResponse:
        """Choose what is allowed without asking."""
        await self._find(session_id).choices.choose(MODE, mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        """Choose mode, model or effort."""
        choices = self._find(session_id).choices
        await choices.choose(config_id, value)
        return schema.SetSessionConfigOptionResponse(config_options=choices.options)

    def _find(self, session_id: str) -> EditorSession:
        if (held := self._sessions.get(session_id)) is None:
            raise RequestError(_NOT_FOUND, f"No session {session_id[:80]!r} is open here.")
        return held

    def _resumed(self, session_id: str, where: dict[str, Any]) -> EditorSession:
        held = self._sessions.get(session_id)
        return held or self._open(**where, resume=self._saved(session_id))

    def _listed(self, cwd: str | None) -> list[Saved]:
        project = None if cwd is None else str(Path(cwd).resolve())
        found = self._store().sessions(project=project)
        return [each for each in found if each.messages and not each.is_one_shot]

    def _saved(self, session_id: str) -> str:
        if session_id in self._store().names():
            return session_id
        raise RequestError(_NOT_FOUND, f"There is no saved session {session_id[:80]!r}.")

    def _store(self) -> Store:
        host = self._options.host
        path = load_settings(self._options).config.session.storage_path
        return Store(host.expand(path, self._options.folder))

    def _open(
        self,
        cwd: str,
        additional_directories: Sequence[str] | None = None,
        mcp_servers: Sequence[Any] | None = None,
        **options: Any,
    ) -> EditorSession:
        if not Path(cwd).is_absolute():
            raise RequestError(INVALID_PARAMS, f"cwd is not an absolute path: {cwd[:200]}")
        folders = (*self._options.add_dirs, *map(Path, additional_directories or ()))
        servers = {each.name: entry_of(each) for each in mcp_servers or ()}
        files = EditorFiles(self._client, self._handshake.offer)
        unsaved = Unsaved(files)
        more: dict[str, Any] = {"editor": unsaved, "add_dirs": folders, "mcp_servers": servers}
        known = {key: options[key] for key in ("resume", "fork") if key in options}
        try:
            shared = self._hub.open(cwd, **more, **known)
        except YbsError as error:
            raise failure(error) from error
        held = EditorSession(shared, self._client, files, unsaved)
        self._sessions[held.id] = held
        return held

    def _opened(self, folder: str, **options: Any) -> Session:
        self._options.host.work_in(Path(folder), *options["add_dirs"])
        return open_session(replace(self._options, folder=Path(folder), **options))

    @staticmethod
    def _begun(held: EditorSession, *, is_new: bool = False) -> dict[str, Any]:
        held.start(is_new=is_new)
        choices = held.choices
        return {"session_id": held.id, "modes": choices.modes, "config_options": choices.options}

    async def _close(self, session_id: str) -> None:
        held = self._sessions.pop(session_id)
        await held.close()
        await self._hub.close(held.session.id)
        if not held.session.conversation.messages and held.session.environment.incognito.may_write:
            with suppress(YbsError, OSError):  # nothing was said
                self._store().delete(session_id)


def entry_of(server: Any) -> dict[str, Any]:
    """Return an MCP server of the editor as an entry of the settings. Raises RequestError for one that was not offered."""
    match server:
        case schema.McpServerStdio(command=command, args=words, env=env):
            return {
                "command": command,
                "args": words,
                "env": {each.name: each.value for each in env},
            }
        case (
            schema.HttpMcpServer(url=url, headers=given)
            | schema.SseMcpServer(url=url, headers=given)
        ):
            headers = {each.name: each.value for each in given}
            return {"type": server.type, "url": url, "headers": headers}
        case _:
            raise RequestError(INVALID_PARAMS, "ybs has not offered to reach MCP servers that way.")
