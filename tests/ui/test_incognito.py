"""Incognito on the screen."""

from stage import staged

from fake_session import FakeSession


async def test_in_incognito_the_prompt_stands_on_a_ground_and_the_bottom_line_begins_with_it() -> (
    None
):
    session = FakeSession()
    session.is_incognito = True
    async with staged(session) as stage:
        await stage.sees(" incognito  scripted  ask")
    assert "\x1b[0;36;100m›" in stage.raw
