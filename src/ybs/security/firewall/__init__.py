"""The secret firewall: what must not reach a model is found, masked, and given back only where it already stands."""
