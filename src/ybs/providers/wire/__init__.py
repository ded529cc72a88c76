"""Wire formats: one adapter per protocol, and what they share."""
