"""The git client of ybs itself: hardened, and inside a sandbox of its own."""
