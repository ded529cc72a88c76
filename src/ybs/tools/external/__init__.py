"""External tools: programs that say what they do, take JSON and return JSON, run in the sandbox."""
