"""The chat template that a model is served with."""

from pathlib import Path


def template_of(model: Path) -> str:
    """Return the chat template that a model is served with; empty: its own.

    It is the text and not the file's name, so that a server of an older ybs is not taken for a fitting one.
    """
    if not model.name.lower().startswith("qwen2.5-coder"):
        return ""
    return Path(__file__).with_name("template.jinja").read_text("utf-8")
