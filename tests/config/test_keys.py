from ybs.config.key_store import find_key, mask

LONG = "sk-" + "a1b2c3d4" * 4


def test_no_key_is_found_where_none_is_set():
    assert find_key(["A_KEY", "B_KEY"], {}) is None
    assert find_key(["A_KEY"], {"A_KEY": " \n"}) is None
    assert find_key([], {"A_KEY": "x"}) is None


def test_the_first_variable_that_is_set_wins():
    assert find_key(["A_KEY", "B_KEY"], {"A_KEY": "", "B_KEY": " second\n"}) == "second"
    assert find_key(["A_KEY", "B_KEY"], {"A_KEY": "first", "B_KEY": "second"}) == "first"


def test_a_short_secret_is_not_shown_at_all():
    assert mask("") == "****"
    assert mask("fifteen-letters") == "****"


def test_a_long_secret_shows_its_last_four_characters():
    assert mask(LONG) == "****c3d4"


def test_a_secret_that_ends_in_odd_characters_is_not_shown_at_all():
    assert mask(LONG + "\x1b[2J") == "****"
