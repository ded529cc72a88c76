"""Compact a full window: elide old outputs, then summarize old turns."""
