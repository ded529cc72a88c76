"""The conductor: sub-agents that work for the main agent of a session, each with less than that may do."""
