"""Draws what happens: events become lines that scroll away, and a few that pass by."""
