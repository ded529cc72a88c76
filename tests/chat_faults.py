"""Kills a gateway again and again while people write to it, and looks whether anything was lost, doubled or run twice.

`python tests/chat_faults.py --faults 500` runs it by itself; the suite runs a few faults.
"""

import argparse
import asyncio
import base64
import json
import os
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from msgspec.structs import replace

from chat_kills import POINTS
from chat_platform import ChatPlatform, Sent
from postgres import Postgres, postgres
from scripted import Entry, OpenAIServer
from scripted.http import RecordedRequest
from ybs.testing import answer, call

TESTS = Path(__file__).parent
MARK = "may be a second time"
CHATS = range(1, 7)


class GatewayProcess:
    """A gateway with a scripted model and platform, which may be killed and started again."""

    def __init__(
        self,
        home: Path,
        platform: ChatPlatform,
        model: OpenAIServer,
        owners: Iterable[int],
        database: str = "",
    ) -> None:
        self.home, self.platform, self.model = home, platform, model
        self.shop = home.parent / "shop"  # a volume that machines share
        self.shop.mkdir(exist_ok=True)
        home.mkdir()
        self.process: asyncio.subprocess.Process | None = None
        settings = home / ".config" / "ybs" / "config.json"
        settings.parent.mkdir(parents=True)
        telegram = {
            "token": platform.token,
            "base_url": f"{platform.url}/bot",
            "base_file_url": f"{platform.url}/file/bot",
            "owners": [str(each) for each in owners],
        }
        text = {
            "llm": {"provider": "openai", "model": "m", "endpoint": model.url},
            "gateway": {
                "channels": {"telegram": telegram},
                "projects": {"shop": str(self.shop)},
                "per_minute": 10_000,
                "database": database,
            },
        }
        settings.write_text(json.dumps(text))

    @property
    def environ(self) -> dict[str, str]:
        """The variables of its processes."""
        own = {"HOME": str(self.home), "OPENAI_API_KEY": "k", "PYTHONPATH": str(TESTS)}
        return {**os.environ, **own}

    async def start(self, point: str = "-", count: int = 1) -> None:
        """Start it, to be killed at a point."""
        self.trap(point, count)
        words = (sys.executable, "-m", "chat_kills", "gateway", "start")
        with (self.home / "stderr").open("ab") as said:
            self.process = await asyncio.create_subprocess_exec(
                *words, env=self.environ, stdout=said, stderr=said
            )

    @property
    def all(self) -> "Sequence[GatewayProcess]":
        """All machines: this one."""
        return (self,)

    @property
    def is_running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self.process is not None and self.process.returncode is None

    def trap(self, point: str, count: int = 1) -> None:
        """Have it be killed at a point from now on, `-` at none."""
        fresh = self.home / "trap.new"
        fresh.write_text(f"{point} {count}")
        fresh.replace(self.home / "trap")
        if self.process is not None and self.is_running:
            self.process.send_signal(signal.SIGCONT)  # which ends no process that is about to start

    async def run(self, *words: str) -> str:
        """Run another command of the gateway and return what it prints."""
        command = (sys.executable, "-m", "ybs", "gateway", *words)
        process = await asyncio.create_subprocess_exec(
            *command,
            env=self.environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        return out.decode()

    def transcripts(self) -> Iterable[str]:
        """Return the transcripts."""
        sessions = self.home / ".config" / "ybs" / "sessions"
        return [file.read_text() for file in sessions.rglob("*.jsonl")]

    def shows(self, label: str, *, after: int = 0) -> bool:
        """Return whether a button of this label stands in a message behind the first so many."""
        rows = [row for sent in self.platform.sent[after:] for row in sent.buttons]
        return any(each["text"] == label for row in rows for each in row)

    def end(self) -> None:
        """Have it end."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)

    async def kill(self) -> None:
        """Kill it, where it still runs."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def ended(self, seconds: float) -> bool:
        """Wait for its end; return whether it came in time."""
        assert self.process is not None
        try:
            async with asyncio.timeout(seconds):
                await self.process.wait()
        except TimeoutError:
            return False
        return True


@asynccontextmanager
async def gateway(owners: Iterable[int] = CHATS) -> AsyncGenerator[GatewayProcess]:
    """Set a gateway up that has not been started; `owners` are persons whom the settings name."""
    with TemporaryDirectory(prefix="ybs-") as home:
        model = OpenAIServer([reply], is_repeated=True)
        async with ChatPlatform() as platform, model:
            process = GatewayProcess(Path(home) / "home", platform, model, owners)
            try:
                yield process
            finally:
                if process.process is not None:
                    await process.kill()


class Machines:
    """Machines that share a database and a folder of the project."""

    def __init__(self, all_: Sequence[GatewayProcess], server: Postgres) -> None:
        self.all, self.server = all_, server
        self.platform, self.model = all_[0].platform, all_[0].model
        self.home, self.shop = all_[0].home, all_[0].shop

    async def start(self) -> None:
        """Start all that do not run."""
        for each in self.all:
            if not each.is_running:
                await each.start()

    async def led(self) -> None:
        """Wait until one of them leads."""
        before = self.platform.polls
        await self.platform.until(lambda: self.platform.polls > before, 40)

    async def until(
        self, is_so: Callable[[], object], seconds: float = 40, *, restarts: bool = False
    ) -> None:
        """Wait until something holds; else say where everything stands, and in which lines the gateways do.

        `restarts` what has ended, as what started it would: on a machine that stands still for three seconds they take the database for gone.
        """
        try:
            async with asyncio.timeout(seconds):
                while not is_so():
                    await asyncio.sleep(0.05)
                    if restarts:
                        await self.start()
        except TimeoutError as error:
            raise AssertionError(await self._stand()) from error

    async def _stand(self) -> str:
        lines = [
            f"{each.chat}: {each.text[:200]!r} {bool(each.buttons)}" for each in self.platform.sent
        ]
        for table in ("workers", "lease", "chats", "questions"):
            lines += [f"{table}:", self.server.ask(f"SELECT * FROM {table}")]
        columns = "id, key, state, session, turns, tries, worker, live, showing"
        lines += ["inbox:", self.server.ask(f"SELECT {columns} FROM inbox")]
        lines += ["ledger:", self.server.ask("SELECT number, id, state, tries, error FROM ledger")]
        for each in self.all:
            if each.is_running and each.process is not None:
                each.process.send_signal(signal.SIGABRT)  # which has it print its stacks
                await each.process.wait()
            lines.append((each.home / "stderr").read_text()[-6_000:])
        return "\n".join(lines)

    def transcripts(self) -> Iterable[str]:
        """Return the transcripts as the database has them."""
        query = "SELECT encode(string_agg(lines, '' ORDER BY number), 'base64') FROM transcripts GROUP BY session"
        rows = self.server.ask(f"SELECT replace(e, E'\\n', '') FROM ({query}) AS t(e)").split()
        return [base64.b64decode(row).decode() for row in rows]


@asynccontextmanager
async def machines(count: int = 2) -> AsyncGenerator[Machines]:
    """Set machines up, of which none has been started."""
    with TemporaryDirectory(prefix="ybs-") as folder:
        os.chmod(folder, 0o711)  # noqa: PTH101 - the database is another user's
        model = OpenAIServer([reply], is_repeated=True)
        with postgres(Path(folder) / "database") as server:
            async with ChatPlatform() as platform, model:
                parts = (platform, model, CHATS, server.url)
                homes = [Path(folder) / f"machine{n}" for n in range(1, count + 1)]
                made = Machines([GatewayProcess(home, *parts) for home in homes], server)
                try:
                    yield made
                finally:
                    for each in made.all:
                        if each.process is not None:
                            await each.kill()


def reply(request: RecordedRequest) -> Entry:
    """Answer as a model that runs a command for each task, once, and then says that it is done."""
    messages = request.body["messages"]
    tasks = [re.search(r"task (\d+)", str(m["content"])) for m in messages if m["role"] == "user"]
    found = [each for each in tasks if each]
    if not found:
        return "hello"
    number = found[-1][1]
    begun = [m for m in messages for c in m.get("tool_calls") or () if c["id"] == f"id{number}"]
    if begun:
        return f"done {number}."
    made = call("run_shell", command=f"echo {number} >> effects")
    return answer(replace(made, id=f"id{number}"))


class Run:
    """One run of faults; `problems` are what it found."""

    def __init__(self, process: GatewayProcess | Machines, seed: int) -> None:
        self.process, self.platform = process, process.platform
        self.random = random.Random(seed)
        self.tasks: dict[int, int] = {}
        self.kills = Counter[str]()
        self._pressed = set[int]()

    async def play(self, faults: int) -> list[str]:
        """Play so many faults, let everything come to its end, and return what is wrong."""
        pressing = asyncio.create_task(self._press())
        try:
            await self._start_all()
            for chat in CHATS:
                self.platform.say("/project shop", chat=chat, person=chat)
            await self.platform.until(lambda: len(self.platform.sent) >= len(CHATS), 60)
            points = self.random.sample([*POINTS], len(POINTS))
            number = 0
            while self.kills.total() < faults:
                await self._fault(points[number % len(points)] if number % 3 else "-")
                await self._come_to_rest()
                if self._missing():
                    break
                number += 1
            await asyncio.sleep(2)  # for what should not come
        finally:
            pressing.cancel()
            await asyncio.gather(pressing, return_exceptions=True)
        return self._problems()

    async def _start_all(self) -> None:
        for each in self.process.all:
            if not each.is_running:
                await each.start()

    async def _fault(self, point: str) -> None:
        """Have people write, and kill twice: two machines at a point or some moment, or one and what is started in its place.

        Not more often: a turn is given up after three kills.
        """
        victims = self.random.sample(self.process.all, min(2, len(self.process.all)))
        if is_again := len(victims) == 1 or self.random.random() < 0.3:
            del victims[1:]
        for each in victims:
            each.trap(point, self._count(point))
        for _ in range(self.random.randint(2, 4)):
            number, chat = len(self.tasks) + 1, self.random.choice(CHATS)
            self.tasks[number] = chat
            self.platform.say(f"task {number}", chat=chat, person=chat)
        if self.random.random() < 0.2:
            fault = self.random.choice(("drop_before", "drop_after", "half", "fail", "wait"))
            self.platform.knob(fault, self.random.choice(("sendMessage", "editMessageText")))
        await asyncio.gather(*(self._die(each, point) for each in victims))
        if is_again and not victims[0].is_running:
            again = self.random.choice((point, "-", *POINTS))
            await victims[0].start(again, self._count(again))
            await self._die(victims[0], again)

    def _count(self, point: str) -> int:
        return self.random.randint(1, 40) if point in ("writing", "written") else 1

    async def _die(self, machine: GatewayProcess, point: str) -> None:
        """Wait until a machine dies at a point; kill it at some moment where it does not pass there, and leave it where all is done before."""
        until = monotonic() + (25 if point != "-" else self.random.uniform(0.1, 4))
        while monotonic() < until and machine.is_running:
            if point != "-" and not self._missing():
                return
            await asyncio.sleep(0.02)
        if machine.is_running:
            point = "some moment"
        await machine.kill()
        assert machine.process is not None
        if machine.process.returncode == -signal.SIGKILL:  # else it had lost its lease
            self.kills[point] += 1

    async def _press(self) -> None:
        """Say yes to every question."""
        while True:
            for sent in list(self.platform.sent):
                labels = [each["text"] for row in sent.buttons for each in row]
                if "Yes" in labels and sent.message not in self._pressed:
                    self._pressed.add(sent.message)
                    token = next(
                        each["callback_data"]
                        for row in sent.buttons
                        for each in row
                        if each["text"] == "Yes"
                    )
                    self.platform.press("Yes", chat=sent.chat, person=sent.chat, token=token)
            await asyncio.sleep(0.05)

    async def _come_to_rest(self) -> None:
        """Have every task answered by gateways that nobody kills, as long as answers come."""
        for each in self.process.all:
            each.trap("-")
        await self._start_all()
        last, missing = monotonic(), -1
        while (now := self._missing()) and monotonic() - last < 120:
            await self._start_all()  # one that lost its lease has ended
            if now != missing:
                last, missing = monotonic(), now
            await asyncio.sleep(0.05)

    def _missing(self) -> int:
        """Return how many tasks have no answer yet."""
        return len([number for number in self.tasks if not self._answers(number)])

    def _answers(self, number: int) -> list[Sent]:
        """Return the answers to a task; one that was still growing when the process died is none."""
        answer = re.compile(rf"\bdone {number}\.(?! …)")
        return [each for each in self.platform.sent if answer.search(each.text)]

    def _problems(self) -> list[str]:
        file = self.process.shop / "effects"
        effects = Counter(file.read_text().split() if file.exists() else ())
        found = [f"{n} ran {times} times" for n, times in effects.items() if times > 1]
        turns = self._turns()
        for number in self.tasks:
            if turns[str(number)] != 1:
                found.append(f"{number} is {turns[str(number)]} turns")
            found += self._problems_of(number)
        return found

    def _turns(self) -> Counter[str]:
        """Count how many times each task was said in a transcript."""
        said = Counter[str]()
        for text in self.process.transcripts():
            for record in map(json.loads, text.splitlines()):
                if record.get("type") == "user" and record.get("origin", "person") == "person":
                    said.update(re.findall(r"^task (\d+)", str(record.get("content"))))
        return said

    def _problems_of(self, number: int) -> list[str]:
        answers = self._answers(number)
        found = [] if answers else [f"{number} has no answer"]
        if len([each for each in answers if MARK not in each.text]) > 1:
            found.append(f"{number} has {len(answers)} answers, of which two have no mark")
        if any(each.chat != self.tasks[number] for each in answers):
            found.append(f"{number} was answered in another chat")
        return found


async def main(faults: int, seed: int, count: int) -> int:
    """Play, and print what was found."""
    async with machines(count) if count > 1 else gateway() as process:
        run = Run(process, seed)
        problems = await run.play(faults)
        sys.stdout.write(f"{run.kills.total()} kills, {len(run.tasks)} tasks\n")
        sys.stdout.write("".join(f"  {point}: {n}\n" for point, n in run.kills.most_common()))
        sys.stdout.write("".join(f"{each}\n" for each in problems) or "nothing is wrong\n")
        if problems:
            for each in process.all:
                sys.stdout.write((each.home / "stderr").read_text()[-3000:])
    return bool(problems)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--machines", type=int, default=1, help="so many that share a database")
    chosen = parser.parse_args()
    sys.exit(asyncio.run(main(chosen.faults, chosen.seed, chosen.machines)))
