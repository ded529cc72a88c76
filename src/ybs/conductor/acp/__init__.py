"""Kinds of sub-agents that are other agents, programs which speak the Agent Client Protocol."""
