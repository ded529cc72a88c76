"""Settings: what can be set, where values come from, and how they are shown."""
