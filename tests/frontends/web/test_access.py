"""Who may use the page: links, logins, passwords, and the bound on tries."""

from pathlib import Path

import pytest

from ybs.core.errors import YbsError
from ybs.frontends.web.access import (
    FIRST_WAIT_SECONDS,
    FREE_TRIES,
    LINK_SECONDS,
    LOGIN_SECONDS,
    MOST_LINKS,
    MOST_LOGINS,
    MOST_TRIES_A_MINUTE,
    Password,
    TooManyTries,
    Tries,
    WebLogins,
)

HERE = "http://127.0.0.1:8707"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_link_works_once():
    access = WebLogins(None)
    key = access.new_link()
    assert not access.take_link(f"{key}x")
    assert access.take_link(key)
    assert not access.take_link(key)


def test_a_link_that_nobody_used_is_forgotten():
    clock = Clock()
    access = WebLogins(None, clock)
    key = access.new_link()
    clock.now += LINK_SECONDS + 1
    assert not access.take_link(key)


def test_only_the_newest_links_are_kept():
    access = WebLogins(None)
    keys = [access.new_link() for _ in range(MOST_LINKS + 1)]
    assert not access.take_link(keys[0])
    assert access.take_link(keys[1])


def test_a_login_needs_both_of_its_secrets():
    access = WebLogins(None)
    one, other = access.begin("one", "127.0.0.1", HERE), access.begin("other", "127.0.0.1", HERE)
    assert access.find(one.cookie, one.token, HERE) == one.login
    for cookie, token in ((one.cookie, ""), ("", one.token), (one.cookie, other.token)):
        assert access.find(cookie, token, HERE) is None
    assert access.end(one.login.id)
    assert not access.end(one.login.id)
    assert access.find(one.cookie, one.token, HERE) is None
    assert access.find(other.cookie, other.token, HERE) is not None


def test_logins_with_a_file_outlive_the_process_without_their_secrets(tmp_path: Path):
    path = tmp_path / "state" / "logins.json"
    secrets = WebLogins(path).begin("Firefox\x1b[31m", "127.0.0.1", HERE)
    kept = path.read_text()
    assert secrets.cookie not in kept
    assert secrets.token not in kept
    assert path.stat().st_mode & 0o777 == 0o600
    again = WebLogins(path)
    found = again.find(secrets.cookie, secrets.token, HERE)
    assert found is not None
    assert "\x1b" not in found.browser
    again.end(found.id)
    assert WebLogins(path).find(secrets.cookie, secrets.token, HERE) is None


def test_a_spoiled_file_logs_everybody_out(tmp_path: Path):
    path = tmp_path / "logins.json"
    path.write_text("[{]")
    path.chmod(0o600)
    assert WebLogins(path).logins == []


def test_a_login_that_nobody_uses_ends():
    clock = Clock()
    access = WebLogins(None, clock)
    secrets = access.begin("a browser", "127.0.0.1", HERE)
    clock.now += LOGIN_SECONDS - 1
    assert access.find(secrets.cookie, secrets.token, HERE) is not None
    clock.now += LOGIN_SECONDS - 1  # it was used meanwhile
    assert access.find(secrets.cookie, secrets.token, HERE) is not None
    clock.now += LOGIN_SECONDS + 1
    assert access.find(secrets.cookie, secrets.token, HERE) is None


def test_the_oldest_of_too_many_logins_ends():
    clock = Clock()
    access = WebLogins(None, clock)
    first = access.begin("first", "127.0.0.1", HERE)
    for _ in range(MOST_LOGINS):
        clock.now += 1
        access.begin("later", "127.0.0.1", HERE)
    assert access.find(first.cookie, first.token, HERE) is None
    assert len(access.logins) == MOST_LOGINS


def test_wrong_tries_make_their_place_wait_longer_and_longer():
    clock = Clock()
    tries = Tries(clock)
    for _ in range(FREE_TRIES):
        tries.check("10.0.0.1")
        tries.note_wrong("10.0.0.1")
    tries.check("10.0.0.2")  # others need not wait
    for wait in (FIRST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2):
        with pytest.raises(TooManyTries) as refused:
            tries.check("10.0.0.1")
        assert refused.value.seconds == pytest.approx(wait)
        clock.now += wait
        tries.check("10.0.0.1")
        tries.note_wrong("10.0.0.1")
    tries.note_right("10.0.0.1")
    tries.check("10.0.0.1")


def test_tries_from_everywhere_are_bounded_together():
    clock = Clock()
    tries = Tries(clock)
    for number in range(MOST_TRIES_A_MINUTE):
        tries.check(f"10.0.1.{number}")
        tries.note_wrong(f"10.0.1.{number}")
    with pytest.raises(TooManyTries):
        tries.check("10.0.2.1")
    clock.now += 60
    tries.check("10.0.2.1")


@pytest.mark.integration  # stretching takes its time on purpose
def test_of_a_password_a_hash_is_kept(tmp_path: Path):
    path = tmp_path / "password.json"
    password = Password(path)
    assert not password.is_set
    assert not password.is_right("")
    with pytest.raises(YbsError, match="at least"):
        password.set("short")
    words = "-".join(("a", "long", "password"))
    password.set(words)
    assert password.is_set
    assert words not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert password.is_right(words)
    assert not password.is_right(f"{words} ")


def test_a_login_holds_at_its_origin_alone():
    access = WebLogins(None)
    secrets = access.begin("a browser", "127.0.0.1", HERE)
    elsewhere = "http://127.0.0.1:8708"
    assert access.of(secrets.cookie, HERE) == secrets.login
    assert access.of(secrets.cookie, elsewhere) is None
    assert access.find(secrets.cookie, secrets.token, elsewhere) is None
    assert access.end(secrets.login.id)
    assert access.of(secrets.cookie, HERE) is None
