"""What happens when the window fills: old outputs are elided, then old turns are summarized."""
