"""Types that several threads begin to use at once, and JSON that may be anything."""

import subprocess
import sys

import pytest

from rows import every_row
from ybs.core.decoding import decodable, object_in

#: Two threads come to a Struct, of which msgspec has looked at one field when it lets the other thread go on.
PROGRAM = """
import sys, threading, time
from msgspec import Struct, json
from ybs.core.decoding import decodable

def kind():
    looking.set()
    time.sleep(0.3)
    return int

class Inner(Struct):
    number: "kind()"

class Outer(Struct):
    inner: Inner
    name: str

def use():
    found.append(json.decode(b'{"inner":{"number":1},"name":"n"}', type=decodable(Outer)))

looking, found = threading.Event(), []
thread = threading.Thread(target=use)
thread.start()
looking.wait()
use()
thread.join()
print(found[0] == found[1], found[0].inner.number)
"""


@pytest.mark.integration
def test_two_threads_that_come_to_a_type_at_once_do_not_end_the_process():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, b"True 1\n"), ran.stderr.decode()


def test_a_type_is_returned_as_it_is_and_what_cannot_be_decoded_is_refused():
    assert decodable(int) is int
    assert decodable(int) is int
    with pytest.raises(TypeError):
        decodable(dict[int, str] | dict[str, int])


@every_row(
    ("data", "found"),
    [(b'{"a": [1]}', {"a": [1]}), (b"[1]", None), (b'{"a"', None), (b'{"\xff": 1}', None)],
)
def test_only_an_object_is_one(data: bytes, found: object):
    assert object_in(data) == found


def test_json_that_is_too_deep_is_no_object():
    assert object_in(b'{"a":' * 100_000) is None
