"""The frontend in whole sentences, for terminals that cannot draw and for people who listen."""
