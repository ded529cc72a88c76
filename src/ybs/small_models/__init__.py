"""Support for small models: requests are interpreted, files read ahead, calls guided, turns ended."""
