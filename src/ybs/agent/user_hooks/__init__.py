"""Hooks of the person: programs that run around prompts, calls and turns, in the form that other agents know."""
