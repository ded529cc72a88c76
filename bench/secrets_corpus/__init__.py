"""Texts with and without secrets, for judging the firewall."""
