"""What a person asks for again and again, found in their saved sessions, and made into something lasting when they want it."""
