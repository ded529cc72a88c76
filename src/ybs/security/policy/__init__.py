"""The policy: what is allowed, asked about or refused, and what a grant covers."""
