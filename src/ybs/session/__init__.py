"""A session: what every front door holds, with its commands and the wiring of all rooms."""
