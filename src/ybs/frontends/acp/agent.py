"""The agent side of the protocol: the methods that an editor calls, on the sessions of this process."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from acp import RequestError, schema
from msgspec.structs import replace

from ybs.config.paths import is_same
from ybs.core.errors import YbsError
from ybs.frontends.acp.config_options import MODE
from ybs.frontends.acp.editor_session import AUTH_REQUIRED, EditorFiles, EditorSession, failure
from ybs.frontends.acp.handshake import HOW, Handshake, missing_setup
from ybs.frontends.json_rpc import INVALID_PARAMS, Send
from ybs.frontends.serve.sessions import HostedSession, HostedSessions
from ybs.session.options import Options
from ybs.transcripts.reading import Saved

_NOT_FOUND: Final = -32002
_OPEN_ALREADY: Final = "This session was open already, without what the editor brings: {}."
#: So many saved sessions are listed at once.
_PAGE: Final = 100


class EditorAgent:
    """Answers an editor. `options` are those of the command line, which hold for the sessions that it opens.

    Each method takes what the protocol names, and raises RequestError. `initialize` has been answered before (`handshake`).
    `send` is how updates go out.
    """

    def __init__(
        self, hosted: HostedSessions, options: Options, handshake: Handshake, send: Send
    ) -> None:
        self._hosted, self._options, self._handshake = hosted, options, handshake
        self._send = send
        self._sessions: dict[str, EditorSession] = {}
        self._client: Any = None

    def on_connect(self, client: Any) -> None:
        """Keep the connection, by which the editor is asked and told."""
        self._client = client

    async def aclose(self) -> None:
        """Leave all sessions. Those in which nothing was said end; the others are their process's."""
        await asyncio.gather(*(self._leave(each) for each in tuple(self._sessions)))

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
        """End a session, unless others are in it; it stays saved."""
        self._find(session_id)  # raises
        await self._leave(session_id, ends=True)
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
        if (found := self._here(session_id)) is None:
            raise RequestError(_NOT_FOUND, f"No session {session_id[:80]!r} is open here.")
        return found

    def _here(self, session_id: str) -> EditorSession | None:
        """Return a session that the editor has open, unless somebody else has closed it."""
        found = self._sessions.get(session_id)
        return found if found is not None and found.held in self._hosted.held else None

    def _resumed(self, session_id: str, where: dict[str, Any]) -> EditorSession:
        return self._here(session_id) or self._open(**where, resume=self._saved(session_id))

    def _listed(self, cwd: str | None) -> list[Saved]:
        project = None if cwd is None else str(Path(cwd).resolve())
        found = self._hosted.store(self._options).sessions(project=project)
        return [each for each in found if each.messages and not each.is_one_shot]

    def _saved(self, session_id: str) -> str:
        if session_id in self._hosted.store(self._options).names():
            return session_id
        raise RequestError(_NOT_FOUND, f"There is no saved session {session_id[:80]!r}.")

    def _open(
        self,
        cwd: str,
        additional_directories: Sequence[str] | None = None,
        mcp_servers: Sequence[Any] | None = None,
        resume: str = "",
        *,
        fork: bool = False,
        **_: Any,
    ) -> EditorSession:
        folder = Path(cwd)
        if not folder.is_absolute():
            raise RequestError(INVALID_PARAMS, f"cwd is not an absolute path: {cwd[:200]}")
        folders = (*self._options.add_dirs, *map(Path, additional_directories or ()))
        servers = {each.name: entry_of(each) for each in mcp_servers or ()}
        options = replace(self._options, folder=folder, add_dirs=folders, mcp_servers=servers)
        options.host.work_in(folder, *folders)
        try:
            shared = None if fork else self._hosted.share(resume, self._options)
            held = shared or self._hosted.hold(options, resume, is_fork=fork)
        except YbsError as error:
            raise failure(error) from error
        if shared is not None:
            self._check_folder(held, folder)
        files = EditorFiles(self._client, self._handshake.offer)
        session = EditorSession(held, self._client, self._send, files)
        if shared is not None and (
            unused := [*servers, *map(str, folders[len(self._options.add_dirs) :])]
        ):
            session.note(_OPEN_ALREADY.format(", ".join(unused)))
        self._sessions[session.id] = session
        return session

    @staticmethod
    def _check_folder(held: HostedSession, folder: Path) -> None:
        if not is_same(folder, held.session.folder):
            where = f"The session is open in {held.session.folder}, and not in {folder}."
            raise RequestError(INVALID_PARAMS, f"{where} Open it in that folder, or fork it.")

    @staticmethod
    def _begun(session: EditorSession, *, is_new: bool = False) -> dict[str, Any]:
        session.start(is_new=is_new)
        choices = session.choices
        return {"session_id": session.id, "modes": choices.modes, "config_options": choices.options}

    async def _leave(self, session_id: str, *, ends: bool = False) -> None:
        left = self._sessions.pop(session_id)
        await left.leave()
        held, session = left.held, left.held.session
        is_empty = not session.conversation.messages and held.doing in ("new", "done")
        if held.viewers or not held.is_own or not (ends or is_empty):
            return
        may_write = session.environment.incognito.may_write
        await self._hosted.close(held, "The editor has closed it.")
        if not session.conversation.messages and may_write:
            with suppress(YbsError, OSError):  # nothing was said
                self._hosted.store(self._options).delete(session_id)


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
