"""The terminal: a prompt that stays, events drawn above it, and questions to the person."""
