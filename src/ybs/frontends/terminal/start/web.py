"""The last choice of `ybs setup`: whether the model gets the tools that search the web and read pages."""

from ybs.config.host import Host
from ybs.frontends.headless.ready_tools import WEB, install
from ybs.frontends.terminal.questions.late import says_yes
from ybs.frontends.terminal.start.offers import Read
from ybs.frontends.terminal.start.remarks import say

QUESTION = (
    "The model can search the web and read pages with two tools that are not installed yet. "
    "ybs asks before it uses them."
)
ASK = "Install web_search and web_fetch?"


def offer_web(host: Host, read: Read) -> None:
    """Ask, and install them on a yes; nothing is asked where one is there already."""
    if any((host.config_folder / f"tools/{name}.py").exists() for name in WEB):
        return
    say(QUESTION)
    try:
        is_yes = says_yes(ASK, read)
    except (EOFError, KeyboardInterrupt):
        say("")
        return
    if is_yes:
        install(host, "web")
    say("")
