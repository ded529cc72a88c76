"""What looks drawn at random, and what people wrote."""

from rows import every_row
from ybs.security.firewall.checks import is_random, stands_in


@every_row(
    "value",
    [
        "051978998" + "420692",  # as many digits as a key of digits alone has at least
        "INd8WAPaHplf1gRz7" + "Ouzy5AQ526W5x",
        "dykNLAN" + "5n83v9J",
        "9abc9sesame" + "77Vault",  # words, but digits in three places
        "abababbmo" + "0l3r0",
    ],
)
def test_what_has_letters_and_digits_all_over_it_is_random(value: str) -> None:
    assert is_random(value.encode())


@every_row(
    "value",
    [
        "05197899842069",
        "a1a1a1a1a1a10w2g3",
        "12121212121212121212jdbynifabs1",
        "openXkXksesameQVaultzzzz",
        "correct-horse-battery-staple",
    ],
)
def test_words_numbers_and_patterns_are_not(value: str) -> None:
    assert not is_random(value.encode())


def test_a_value_of_mostly_one_sign_stands_in_and_one_with_a_few_of_them_does_not() -> None:
    assert stands_in(b"k-aaaaaaaaaaaa")
    assert not stands_in(b"QXkaaaaaaaa779Xk")
