"""HTTP for providers: a small client of its own for http, httpx2 for https."""
