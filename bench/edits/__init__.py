"""Real edits from git histories, told as models tell them, and a judge for what a tool makes of them."""
