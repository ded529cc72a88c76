"""Saved sessions: transcripts, line by line."""
