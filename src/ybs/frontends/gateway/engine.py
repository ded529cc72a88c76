"""The engine of turns: DBOS runs each turn as a workflow, and goes on after a kill with those that had not ended.

A workflow's id is the platform's id of the event, so the same event twice is one turn; its partition is the chat, so turns of one chat
come one after the other. What a workflow has done is written in the session's transcript and in the inbox: the engine keeps only the id.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from dbos import DBOS, DBOSPortableJSONSerializer, SetEnqueueOptions, SetWorkflowID
from sqlalchemy import Engine as SqlEngine
from sqlalchemy.exc import DBAPIError

from ybs.frontends.gateway.store import StoreError

#: Turns of another version cannot be gone on with: it changes where a recovered turn could not be understood any more.
VERSION: Final = "turn-1"
QUEUE: Final = "turns"
#: A turn in which the gateway died so often is not begun again.
MOST_RECOVERIES: Final = 3
#: Workflows that have ended are forgotten after so long; transcripts and the inbox know more of them.
_KEPT_SECONDS: Final = 7 * 86_400.0
_POLL_SECONDS: Final = 0.1


class Engine:
    """Runs `run` with the id of each turn. One of these at a time in a process, and one process at a time with the database."""

    def __init__(
        self, database: SqlEngine, run: Callable[[str], Awaitable[None]], *, at_once: int
    ) -> None:
        self._database, self._run, self._at_once = database, run, at_once

    async def start(self) -> None:
        """Connect, and go on with the turns that a killed process left. Raises StoreError."""
        try:
            await self._launch()
        except DBAPIError as error:
            raise StoreError(self._database, error) from error

    async def _launch(self) -> None:
        logging.getLogger("dbos").propagate = True
        config: Any = {
            "name": "ybs-gateway",
            "system_database_url": self._database.url.render_as_string(hide_password=False),
            "system_database_engine": self._database,
            "executor_id": "gateway",  # the lock of the folder, or the lease, lets one run
            "application_version": VERSION,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "WARNING",
            "notification_listener_polling_interval_sec": _POLL_SECONDS,
        }
        await asyncio.to_thread(_forget_registered)
        DBOS(config=config)

        @DBOS.workflow(name="turn", max_recovery_attempts=MOST_RECOVERIES + 1)
        async def turn(turn_id: str) -> None:
            await self._run(turn_id)

        self._turn = turn
        DBOS.launch()
        await DBOS.register_queue_async(
            QUEUE,
            partition_concurrency=1,
            worker_concurrency=self._at_once,
            polling_interval_sec=_POLL_SECONDS,
        )

    async def enqueue(self, turn_id: str, partition: str) -> None:
        """Have a turn run when those before it in its partition have ended; one that is known already is left as it is."""
        with SetWorkflowID(turn_id), SetEnqueueOptions(queue_partition_key=partition):
            await DBOS.enqueue_workflow_async(QUEUE, self._turn, turn_id)

    async def cancel(self, turn_id: str) -> None:
        """Keep a turn from beginning, or from being begun again."""
        await DBOS.cancel_workflow_async(turn_id)

    async def given_up(self) -> list[str]:
        """Return the turns in which the gateway died too often."""
        found = await DBOS.list_workflows_async(
            status="MAX_RECOVERY_ATTEMPTS_EXCEEDED", load_input=False, load_output=False
        )
        return [each.workflow_id for each in found]

    async def close(self) -> None:
        """End; what runs goes on with the next start."""
        await asyncio.to_thread(_forget_registered)


def _forget_registered() -> None:
    DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=0)
