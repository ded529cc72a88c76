"""Downloads: whole and right or not at all, nothing twice, and no trust in what a hub says."""

import asyncio
import errno
import fcntl
import os
import shutil
import stat
from base64 import b64encode
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import pytest
from local.loopback_hub import (
    MODEL,
    SHA256,
    Behaviour,
    Hub,
    does_not_say_how_much,
    gives,
    open_hub,
    redirects,
    says,
    sends_without_end,
)

from rows import every_row
from ybs.core.errors import ProviderDown, YbsError
from ybs.providers.http import plain_http
from ybs.providers.http.transport import Route
from ybs.providers.local import download
from ybs.providers.local.download import Downloaded, redirected

STATED = {"X_Linked_Etag": f'"{SHA256}"', "X_Linked_Size": len(MODEL)}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAUSE_SECONDS", 0)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "models" / "m.gguf"


async def fetch(
    hub: Hub, target: Path, *, known: str = "", steps: list[Any] | None = None
) -> Downloaded:
    seen = [] if steps is None else steps
    return await download.download(
        f"{hub.url}/m.gguf", target, lambda *step: seen.append(step), known_sha256=known
    )


def content(target: Path) -> bytes:
    return target.read_bytes()


def left(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


@pytest.mark.integration
async def test_a_file_arrives_with_progress_and_leaves_nothing_else_behind(target: Path):
    steps: list[Any] = []
    with open_hub(gives(**STATED)) as hub:
        found = await fetch(hub, target, steps=steps)
    assert content(target) == MODEL
    assert found == Downloaded(target, SHA256, is_checked=True)
    assert left(target) == ["m.gguf"]
    assert [done for done, _, _ in steps] == sorted(done for done, _, _ in steps)
    assert steps[-1] == (len(MODEL), len(MODEL), "checking the hash")
    assert {total for _, total, _ in steps} == {len(MODEL)}


@pytest.mark.integration
async def test_a_download_that_breaks_off_goes_on_where_it_broke_off(target: Path):
    with open_hub(gives(most=300_000), gives(most=300_000), gives()) as hub:
        await fetch(hub, target, known=SHA256)
    assert content(target) == MODEL
    begins = [asked[1:] for asked in hub.asked]
    assert begins[0] == (None, None)
    assert begins[1] == ("bytes=300000-", '"1"')
    assert begins[2] == ("bytes=600000-", '"1"')


@pytest.mark.integration
async def test_what_is_here_is_kept_for_the_next_run(target: Path):
    with open_hub(gives(most=500_000), says(503)) as hub:
        with pytest.raises(ProviderDown, match="answered 503"):
            await fetch(hub, target)
        hub.script = (gives(),)
        await fetch(hub, target, known=SHA256)
    assert hub.asked[-1][1] == "bytes=500000-"
    assert content(target) == MODEL


@pytest.mark.integration
async def test_a_download_that_is_cancelled_is_kept_too(target: Path):
    arrived = asyncio.Event()
    with open_hub(gives(most=500_000)) as hub:
        task = asyncio.create_task(
            download.download(f"{hub.url}/m.gguf", target, lambda *_: arrived.set())
        )
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert "m.gguf.part" in left(target)


@pytest.mark.integration
async def test_a_run_that_was_killed_after_the_last_byte_fetches_nothing_again(target: Path):
    target.parent.mkdir()
    target.with_name("m.gguf.part").write_bytes(MODEL)
    target.with_name("m.gguf.etag").write_text('"1"')
    with open_hub(gives()) as hub:
        await fetch(hub, target, known=SHA256)
    assert hub.asked == [("/m.gguf", f"bytes={len(MODEL)}-", '"1"')]
    assert content(target) == MODEL


@pytest.mark.integration
@pytest.mark.parametrize("mark", ['"2"', "", 'W/"1"'])
async def test_a_file_that_changed_meanwhile_is_fetched_from_the_beginning(target: Path, mark: str):
    with open_hub(gives(b"GGUF" + bytes(500_000), etag=mark, most=300_000), gives()) as hub:
        await fetch(hub, target, known=SHA256)
    assert content(target) == MODEL


@pytest.mark.integration
async def test_a_part_that_is_longer_than_the_file_is_thrown_away(target: Path):
    target.parent.mkdir()
    target.with_name("m.gguf.part").write_bytes(MODEL * 2)
    target.with_name("m.gguf.etag").write_text('"1"')
    with open_hub(gives()) as hub:
        await fetch(hub, target, known=SHA256)
    assert content(target) == MODEL


@pytest.mark.integration
async def test_a_connection_that_always_breaks_is_given_up_and_what_came_is_kept(target: Path):
    with open_hub(gives(most=10)) as hub, pytest.raises(ProviderDown) as caught:
        await fetch(hub, target)
    assert len(hub.asked) == download.TRIES
    assert "broke off 5 times" in str(caught.value)
    assert "run it again to continue" in str(caught.value)
    assert target.with_name("m.gguf.part").stat().st_size == 50


async def test_a_hub_that_is_not_there_is_named(target: Path):
    with open_hub(gives()) as hub:
        pass
    with pytest.raises(ProviderDown, match=r"from 127\.0\.0\.1 broke off"):
        await fetch(hub, target)


@pytest.mark.integration
@every_row(
    ("behaviour", "known", "words"),
    [
        (gives(), "0" * 64, f"has the SHA-256 {SHA256}, and not 000"),
        (gives(X_Linked_Etag="1" * 64), "", "and not 111"),
        (gives(b"GGUF" + MODEL), SHA256, "and not"),
        (gives(b"<html>Please log in</html>"), "", "is not a GGUF file"),
        (sends_without_end, "", "sends more than the 1,000 bytes"),
        (gives(X_Linked_Size=50), "", "sends more than the 50 bytes"),
        (does_not_say_how_much, "", "does not say how large"),
        (gives(X_Linked_Size="9" * 30, Content_Length="x"), "", "does not say how large|broke off"),
        (says(401), "", "answered 401"),
        (says(404), "", "answered 404"),
        (says(416), "", "broke off 5 times"),
        (says(503), "", r"^127\.0\.0\.1 answered 503 5 times\.\nRun it again later\.$"),
        (redirects("http://[::1"), "", r"redirects the download to 'http://\[::1', which is not"),
        (redirects("http://127.0.0.1:99999/x"), "", "99999/x', which is not followed"),
        (redirects("http://no host/x"), "", "no host/x', which is not followed"),
        (redirects("file:///etc/passwd"), "", "redirects the download to 'file:///etc/passwd'"),
        (redirects("/again"), "", "more than 5 times"),
        (gives(X_Linked_Size=900_000_000_000_000), "", "Not enough room"),
    ],
)
async def test_a_hub_that_does_not_play_fair_installs_nothing(
    tmp_path_factory: pytest.TempPathFactory, behaviour: Behaviour, known: str, words: str
):
    target = tmp_path_factory.mktemp("models") / "m.gguf"
    with open_hub(behaviour) as hub, pytest.raises(YbsError, match=words):
        await fetch(hub, target, known=known)
    assert not target.exists()
    kept = target.with_name("m.gguf.part")
    assert not kept.exists() or kept.stat().st_size <= len(MODEL)


@pytest.mark.integration
async def test_what_was_wrong_is_not_gone_on_with(target: Path):
    with open_hub(gives(b"GGUF" + b"wrong" * 100_000), gives()) as hub:
        with pytest.raises(ProviderDown, match="It was not installed"):
            await fetch(hub, target, known=SHA256)
        assert left(target) == []
        await fetch(hub, target, known=SHA256)
    assert hub.asked[-1][1] is None


def sends_part(begin: int, data: bytes = MODEL, **headers: Any) -> Behaviour:
    """Send a part of the file, whatever was asked for."""

    def answer(to: Any) -> None:
        rest = data[begin:]
        ranged = {"Content_Range": f"bytes {begin}-{len(data) - 1}/{len(data)}"}
        to.head(206, **({"Content_Length": len(rest), "ETag": '"1"'} | ranged | headers))
        to.wfile.write(rest)

    return answer


OTHER = b"GGUF" + bytes(len(MODEL))


@pytest.mark.integration
@every_row(
    "behaviour",
    [
        sends_part(7),
        sends_part(100, OTHER, ETag='"2"'),  # another file: If-Range was ignored
        sends_part(100, Content_Range="bytes */*"),
        sends_part(100, Content_Range="of it all"),
    ],
)
async def test_another_part_than_the_one_asked_for_is_not_put_behind_what_is_here(
    tmp_path_factory: pytest.TempPathFactory, behaviour: Behaviour
):
    target = tmp_path_factory.mktemp("models") / "m.gguf"
    with open_hub(gives(most=100), behaviour, gives()) as hub:
        await fetch(hub, target)
    assert content(target) == MODEL
    assert [asked for _, asked, _ in hub.asked] == [None, "bytes=100-", None]


@pytest.mark.integration
@every_row("end", [50_100, len(MODEL)])
async def test_a_part_of_a_file_whose_size_is_not_said_is_not_taken_for_its_end(
    tmp_path_factory: pytest.TempPathFactory, end: int
):
    target = tmp_path_factory.mktemp("models") / "m.gguf"
    unsized = sends_part(100, MODEL[:end], Content_Range=f"bytes 100-{end - 1}/*")
    with open_hub(gives(most=100), unsized, gives()) as hub:
        await fetch(hub, target)
    assert content(target) == MODEL
    assert [asked for _, asked, _ in hub.asked] == [None, "bytes=100-", None]


@pytest.mark.integration
@every_row("mark", ['W/"1"', '"1"', None])
async def test_a_rest_is_taken_where_its_mark_is_only_weaker_or_left_out(tmp_path_factory, mark):
    target = tmp_path_factory.mktemp("models") / "m.gguf"

    def part(to: Any) -> None:
        begin, end = 100, len(MODEL)
        marked = {"ETag": mark} if mark else {}
        ranged = f"bytes {begin}-{end - 1}/{end}"
        to.head(206, Content_Range=ranged, Content_Length=end - begin, **marked)
        to.wfile.write(MODEL[begin : begin + 100])

    with open_hub(gives(most=100), part, gives()) as hub:
        await fetch(hub, target)
    assert content(target) == MODEL
    assert [asked for _, asked, _ in hub.asked] == [None, "bytes=100-", "bytes=200-"]


@pytest.mark.integration
async def test_a_server_that_is_overloaded_for_a_moment_is_asked_again(target: Path):
    script = (says(503), gives(most=100), says(502), says(429), gives())
    with open_hub(*script) as hub:
        await fetch(hub, target)
    assert content(target) == MODEL
    assert hub.asked[-1][1] == "bytes=100-"


@pytest.mark.integration
async def test_what_is_said_of_a_download_that_failed_is_what_happened(target: Path):
    with (
        open_hub(gives(most=100), says(429), says(429), says(503)) as hub,
        pytest.raises(ProviderDown) as caught,
    ):
        await fetch(hub, target)
    busy, again, broken, kept = str(caught.value).split("\n")
    assert busy == "127.0.0.1 answered 429 2 times."
    assert again == "127.0.0.1 answered 503 2 times."
    assert broken.startswith("The download from 127.0.0.1 broke off 1 time: ")
    assert kept == "What has been downloaded is kept; run it again to continue."


@pytest.mark.integration
async def test_a_server_that_says_when_to_ask_again_is_asked_then_but_not_after_hours(
    target: Path, monkeypatch: pytest.MonkeyPatch
):
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(download, "sleep", sleep)
    script = (says(429, Retry_After=7), says(503, Retry_After=86_400), says(503), gives())
    with open_hub(*script) as hub:
        await fetch(hub, target)
    assert content(target) == MODEL
    assert pauses == [7, download.MOST_PAUSE_SECONDS, 0]


@pytest.mark.integration
async def test_the_hub_says_what_the_file_is_and_not_the_host_that_it_redirects_to(target: Path):
    with (
        open_hub(gives(X_Linked_Etag="2" * 64, X_Linked_Size=3)) as store,
        open_hub(redirects(f"{store.url}/blob", **STATED)) as hub,
    ):
        found = await fetch(hub, target)
    assert found.is_checked
    assert content(target) == MODEL
    assert store.asked[0][0] == "/blob"


async def test_a_file_that_nobody_knows_the_checksum_of_is_taken_and_it_is_said(target: Path):
    with open_hub(gives()) as hub:
        assert await fetch(hub, target) == Downloaded(target, SHA256, is_checked=False)


class Usage(NamedTuple):
    total: int = 100
    used: int = 100
    free: int = 1000


async def test_a_disk_without_room_is_noticed_before_anything_is_taken(target, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage())
    with open_hub(gives()) as hub, pytest.raises(YbsError, match="Not enough room in"):
        await fetch(hub, target)
    assert left(target) == []


async def test_a_disk_that_gets_full_meanwhile_is_said_and_what_came_is_kept(target, monkeypatch):
    async def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download, "_write", full)
    with open_hub(gives()) as hub, pytest.raises(YbsError) as caught:
        await fetch(hub, target)
    assert "No space left on device. What has been downloaded is kept." in str(caught.value)


async def test_two_runs_do_not_download_at_the_same_time(target: Path):
    target.parent.mkdir()
    with (target.parent / "fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(YbsError, match="Another ybs"):
            async with download.alone(target.parent):
                pass


@every_row(
    ("url", "location", "there"),
    [
        ("https://hub.example/a/b", "/c", "https://hub.example/c"),
        ("https://hub.example/a", "https://cdn.example/x", "https://cdn.example/x"),
        ("http://10.0.0.1/a", "http://10.0.0.2/a", "http://10.0.0.2/a"),
        ("http://127.0.0.1/a", "https://cdn.example/x", "https://cdn.example/x"),
        ("https://hub.example/a", "http://cdn.example/x", None),
        ("https://hub.example/a", "https://127.0.0.1/x", None),
        ("https://hub.example/a", "https://192.168.1.1/x", None),
        ("https://hub.example/a", "https://[::1]/x", None),
        ("https://hub.example/a", "https://localhost/x", None),
        ("https://hub.example/a", "ftp://cdn.example/x", None),
    ],
)
def test_a_redirect_is_followed_only_where_it_does_no_harm(url, location, there):
    if there is not None:
        assert redirected(url, location) == there
        return
    with pytest.raises(ProviderDown, match="not followed"):
        redirected(url, location)


@pytest.mark.integration
async def test_a_hub_on_this_machine_is_asked_at_the_persons_own_server_and_by_no_proxy(
    target: Path, monkeypatch: pytest.MonkeyPatch
):
    """Another user may listen at the other address that `localhost` means, and would get the login."""
    with open_hub(gives()) as hub, open_hub(says(404)) as other:
        monkeypatch.setenv("HTTP_PROXY", other.url)
        monkeypatch.setattr(plain_http, "loopback_hosts", lambda _port: ["127.0.0.1", "::1"])
        place = f"http://me:sesame@localhost:{hub.server_port}"
        for known in (SHA256, ""):
            await download.download(f"{place}/m.gguf", target, nothing, known_sha256=known)
        monkeypatch.setattr(plain_http, "loopback_hosts", lambda _port: ["::1"])
        with pytest.raises(ProviderDown, match="from localhost broke off 5 times"):
            await download.download(f"{place}/m.gguf", target, nothing)
    assert hub.logins == [f"Basic {b64encode(b'me:sesame').decode()}"] * 2
    assert other.asked == []


@pytest.mark.integration
async def test_a_hub_elsewhere_is_asked_by_the_proxy_of_the_settings(target: Path, monkeypatch):
    with open_hub(redirects("http://files.example/f.gguf"), gives()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        route = Route(proxy=proxy.url)
        address = "http://me:sesame@hub.example/\u00fc.gguf"
        await download.download(address, target, nothing, route=route)
    assert content(target) == MODEL
    assert [each[0] for each in proxy.asked] == [
        "http://hub.example/%C3%BC.gguf",
        "http://files.example/f.gguf",
    ]
    assert proxy.logins == [f"Basic {b64encode(b'me:sesame').decode()}", None]


@pytest.mark.integration
@pytest.mark.parametrize("words", ["no answer within 0.2 s", "nothing came for 0.2 s"])
async def test_a_hub_that_falls_silent_is_not_waited_for(target: Path, monkeypatch, words: str):
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(download, "TRIES", 1)
    done = Event()

    def answer(to: Any) -> None:
        if words.startswith("nothing"):
            to.head(200, Content_Length=100)
        done.wait(10)

    with open_hub(answer) as hub:
        with pytest.raises(ProviderDown, match=words):
            await fetch(hub, target)
        done.set()


@pytest.mark.integration
async def test_what_a_download_makes_is_the_persons_alone_whatever_the_umask(target: Path):
    """While it comes, and when it is there."""
    before = os.umask(0)
    try:
        with open_hub(gives(most=10), says(404), gives()) as hub:
            async with download.alone(target.parent):
                with pytest.raises(ProviderDown, match="answered 404"):
                    await fetch(hub, target)
                assert rights(target) == {"fetch.lock": 0o600, "m.gguf.part": 0o600, "m.gguf.etag": 0o600}  # fmt: skip
                await fetch(hub, target)
    finally:
        os.umask(before)
    assert rights(target) == {"fetch.lock": 0o600, "m.gguf": 0o600}
    assert stat.S_IMODE(target.parent.stat().st_mode) == 0o700


@pytest.mark.integration
@pytest.mark.parametrize("name", ["m.gguf.part", "m.gguf.etag", "fetch.lock", ""])
async def test_a_link_in_the_place_of_what_a_download_makes_is_not_followed(
    target: Path, tmp_path: Path, name: str
):
    elsewhere = tmp_path / "elsewhere"
    if name:
        target.parent.mkdir(0o700)
        elsewhere.write_bytes(b"of the person")
    else:
        elsewhere.mkdir(0o700)
    (target.parent / name).symlink_to(elsewhere)
    with open_hub(gives()) as hub, pytest.raises(YbsError, match="link"):
        async with download.alone(target.parent):
            await fetch(hub, target)
    assert (elsewhere.read_bytes() if name else list(elsewhere.iterdir())) == ((name and b"of the person") or [])  # fmt: skip


def rights(target: Path) -> dict[str, int]:
    """Return the rights of what lies beside a file."""
    return {each.name: stat.S_IMODE(each.lstat().st_mode) for each in target.parent.iterdir()}


def nothing(*_: object) -> None:
    """Tell nobody how far it is."""
