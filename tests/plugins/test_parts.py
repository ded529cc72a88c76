"""Plugins of a collection, with what the collection says of them."""

import json

import pytest

from ybs.plugins.content import BadPlugin, PluginFiles
from ybs.plugins.parts import named_plugins, parts_of, plugin_in

SERVER = {"command": "npx", "args": ["-y", "tracker"]}


def collection(*, manifest: object = None) -> PluginFiles:
    content = PluginFiles()
    plugins = [
        {"name": "tracker", "source": "./plugins/tracker", "version": "2", "mcpServers": {"tracker": SERVER}},
        {"name": "all", "source": "./", "mcpServers": {"whole": SERVER}},
        {"name": "elsewhere", "source": "https://example.org/x.git"},
        {"name": "hub", "source": {"source": "github", "repo": "who/what"}},
        {"name": "part", "source": {"source": "git-subdir", "url": "https://example.org/y.git", "path": "in/it"}},
        "what is no entry",
    ]  # fmt: skip
    content.add(".claude-plugin/marketplace.json", json.dumps({"plugins": plugins}).encode())
    content.add("plugins/tracker/commands/look.md", b"Look.")
    if manifest is not None:
        content.add("plugins/tracker/.claude-plugin/plugin.json", json.dumps(manifest).encode())
    return content


def test_servers_in_the_entry_of_a_collection_are_the_plugins():
    content = collection()
    assert named_plugins(content) == [("tracker", "plugins/tracker"), ("all", "")]
    inner = plugin_in(content, "tracker")
    parts = parts_of(inner)
    assert (parts.name, parts.version, parts.servers) == ("tracker", "2", {"tracker": SERVER})
    assert parts.commands == ("commands/look.md",)
    assert parts_of(plugin_in(content, "all")).servers == {"whole": SERVER}
    assert ".claude-plugin/plugin.json" not in content.files


def test_the_plugins_own_manifest_counts_before_the_collection():
    own = {"name": "mine", "mcpServers": {"mine": SERVER}}
    parts = parts_of(plugin_in(collection(manifest=own), "tracker"))
    assert (parts.name, parts.version, parts.servers) == ("mine", "2", {"mine": SERVER})


def test_a_plugin_is_taken_by_its_folder_too():
    assert parts_of(plugin_in(collection(), "plugins/tracker"), "tracker").servers == {}
    with pytest.raises(BadPlugin, match="no folder nowhere"):
        plugin_in(collection(), "nowhere")


def test_a_plugin_of_a_collection_that_lies_elsewhere_is_told_with_its_address():
    for name, address in {
        "elsewhere": "https://example.org/x.git",
        "hub": "https://github.com/who/what",
        "part": "https://example.org/y.git in/it",
    }.items():
        with pytest.raises(BadPlugin, match=f"lies elsewhere; its own address is {address}"):
            plugin_in(collection(), name)
