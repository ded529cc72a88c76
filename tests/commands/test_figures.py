"""Numbers in few characters."""

from ybs.commands.figures import cost
from ybs.core.messages import Usage


def test_what_is_not_known_is_not_left_out_of_a_cost():
    used, priced = Usage(input_tokens=1), Usage(input_tokens=1, cost_usd=0.25)
    free = Usage(input_tokens=1, cost_usd=0.0)
    assert [cost(each) for each in (used, priced, free, Usage())] == [
        "cost unknown",
        "$0.25",
        "",
        "",
    ]
    assert [cost(used + each) for each in (priced, free)] == ["$0.25 + unknown", "$0 + unknown"]
