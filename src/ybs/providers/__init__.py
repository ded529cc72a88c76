"""Models behind a wire: adapters for each format, one HTTP client, and the registry of providers."""
