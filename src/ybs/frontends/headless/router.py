"""`ybs router`: what the router does and why, and how it compares with other ways to choose."""

from typing import TYPE_CHECKING

from ybs.frontends.headless.router_simulate import simulate

if TYPE_CHECKING:
    from argparse import Namespace


def router(arguments: "Namespace") -> int:
    """Run an action of `ybs router` and return its exit code."""
    return simulate(arguments)
