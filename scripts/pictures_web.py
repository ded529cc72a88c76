"""Takes the pictures of the page for docs/pictures: states at the widths of a phone, a tablet and a desk.

scripts/pictures_web.py [FOLDER]
"""

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from web_pages import PHONE, SCRIPT, TABLET, WIDE, Look, chromium, fill, states, web  # noqa: E402

#: Those that stand in the docs; with a folder of one's own all are taken.
SHOWN = {("wide", "turn"), ("wide", "question"), ("phone", "turn"), ("dark", "board")}
SIZES = {
    "wide": (WIDE, "light"),
    "dark": (WIDE, "dark"),
    "tablet": (TABLET, "light"),
    "phone": (PHONE, "light"),
}


def main() -> None:
    """Take them."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with chromium() as browser:
        for name, (size, scheme) in SIZES.items():
            with tempfile.TemporaryDirectory() as place:
                home = Path(place) / "home"
                project = home / "shop"
                project.mkdir(parents=True)
                os.environ["HOME"] = str(home)
                fill(project)
                with web(SCRIPT, project, home) as served:
                    look = Look(browser, size, color_scheme=scheme, reduced_motion="reduce")
                    look.page.goto(served.link)
                    look.page.wait_for_selector("body.ready")
                    for state in states(look.page, served):
                        if folder is not None or (name, state) in SHOWN:
                            target = folder or ROOT / "docs" / "pictures"
                            target.mkdir(parents=True, exist_ok=True)
                            look.page.screenshot(path=target / f"web-{name}-{state}.png")
                    look.context.close()


if __name__ == "__main__":
    main()
