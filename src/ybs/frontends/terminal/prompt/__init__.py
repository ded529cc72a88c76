"""The input line: what is typed, pasted, completed and remembered, and what the keys do."""
