"""Asking a server that the person named whether it is there, whether it wants a key, and which models it has."""

import asyncio
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ybs.core.errors import AuthError, ModelError, ProviderDown
from ybs.providers.catalog import answers_in_words
from ybs.providers.http.client import HttpClient, Patience
from ybs.providers.http.failures import Site
from ybs.providers.probe import find_models
from ybs.providers.wire.adapter import Listing

PATIENCE_SECONDS: Final = 5.0
#: `locked`: it answers 401 or 403; `odd`: it answers with something else than a list of models.
State: TypeAlias = Literal["open", "locked", "odd", "silent"]


class Knock(Struct, frozen=True):
    """What a server answered: the names of its models, or why there are none."""

    state: State
    models: tuple[str, ...] = ()
    why: str = ""


async def knock(endpoint: str, key: str = "") -> Knock:
    """Ask an OpenAI-compatible server for its models, with a key where there is one. Never fails."""
    host = endpoint.partition("://")[2].partition("/")[0].rpartition("@")[2]
    client = HttpClient(
        Site(provider="the server", endpoint=endpoint, host=host),
        patience=Patience(connect=PATIENCE_SECONDS, first=PATIENCE_SECONDS, later=PATIENCE_SECONDS),
        headers={"Authorization": f"Bearer {key}"} if key else {},
        secret=key or None,
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            found = await find_models(client, Listing())
    except AuthError as error:
        return Knock("locked", why=str(error))
    except (ProviderDown, TimeoutError) as error:
        return Knock("silent", why=str(error))
    except ModelError as error:
        return Knock("odd", why=str(error))
    finally:
        await client.aclose()
    return Knock("open", tuple(name for name in found if answers_in_words(name)))
