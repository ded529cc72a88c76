"""What was searched is remembered, within bounds, and forgotten when another search would find more."""

import pytest

from ybs.security.firewall.masking import FindingCache, Firewall, SecretFinding


@pytest.fixture
def searches(firewall: Firewall, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Note what the engine searches."""
    seen: list[bytes] = []
    spans = firewall.spans
    monkeypatch.setattr(firewall, "spans", lambda data: seen.append(data) or spans(data))
    return seen


def test_the_oldest_texts_are_forgotten_first_and_long_ones_are_not_kept() -> None:
    memory = FindingCache(most=100)
    for letter in "abcde":
        memory.add(letter * 25)
    assert [memory.get(letter * 25) for letter in "abcde"] == [None, (), (), (), ()]
    memory.add("x" * 26)
    assert memory.get("x" * 26) is None
    assert len(memory) == 4
    memory.add("b" * 25, [SecretFinding("jwt", 0, 1)])
    assert memory.get("b" * 25) == ()  # the first answer stays, and is counted once
    memory.clear()
    for letter in "abcd":
        memory.add(letter * 25)
    assert len(memory) == 4


def test_a_text_is_searched_once_alone_or_among_others(firewall, token, searches):
    assert firewall.find("only words here") == firewall.find("only words here") == ()
    assert firewall.are_clean(["only words here", "short", "other words here"])
    assert firewall.are_clean(["other words here", "only words here"])
    assert searches == [b"only words here", b"other words here"]
    assert not firewall.are_clean(["only words here", f"with {token}"])
    assert firewall.find(f"with {token}") == firewall.find(f"with {token}")
    assert [one.kind for one in firewall.find(f"with {token}")] == ["github-token"]
    assert searches[2:] == [f"with {token}".encode()] * 2  # together it was not remembered
    assert not firewall.are_clean([f"with {token}"])
    assert len(searches) == 4


def test_a_text_found_clean_is_searched_again_when_a_secret_of_it_became_known(firewall):
    value = "correct" + "7horse8battery"
    assert firewall.mask(f"it is {value}") == f"it is {value}"
    assert firewall.are_clean([f"it is {value}"])
    mark = firewall.mask(f'db_password = "{value}"').split('"')[1]
    assert not firewall.are_clean([f"it is {value}"])
    assert firewall.mask(f"it is {value}") == f"it is {mark}"


def test_what_the_person_allows_is_found_no_more(firewall: Firewall, token: str) -> None:
    mark = firewall.mask(token)
    assert firewall.mask(token) == mark
    firewall.allow(mark)
    assert firewall.mask(token) == token
    assert firewall.are_clean([token])


def test_a_part_of_a_value_has_the_placeholder_of_its_whole_and_is_allowed_with_it(firewall, token):
    mark = firewall.mask(f"{token[:20]}\n{token[20:]}")
    assert firewall.mask(token[:20]) == firewall.mask(token[20:]) == mark
    assert len([*firewall.vault.known()]) == 1
    value = "q8Zk2Lm9-Rt4Vb"
    other = firewall.mask(f"DB_PASSWORD={value}").partition("=")[2]
    firewall.allow(mark)
    assert firewall.mask(f"{token[:20]} and {token[20:]}") == f"{token[:20]} and {token[20:]}"
    assert firewall.mask(value) == other


def test_nothing_shorter_than_a_secret_is_searched(firewall, searches):
    assert firewall.find("pwd=abc") == ()
    assert firewall.are_clean(["", "pwd=abc"])
    assert searches == []


def test_no_flood_of_secrets_has_an_older_one_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ybs.security.firewall.vault._MOST_KNOWN", 3)
    firewall, first = Firewall(), "q8Zk2Lm9-Rt4Vb"
    placeholder = firewall.mask(f"DB_PASSWORD={first}").partition("=")[2]
    assert placeholder.startswith("[ybs:secret:")
    for number in range(5):
        firewall.mask(f"API_PASSWORD=w7Yh1Jp0-{number}Ua2Qe")
    for text in ("{}", "x={}; y", '"{}"', "a: {},", "key:{}"):
        assert firewall.mask(text.format(first)) == text.format(placeholder)
    assert firewall.mask("nothing of it") == "nothing of it"
