"""`ybs mcp serve`: the tools of ybs for any other agent, as an MCP server on standard input and output.

It is imported by that subcommand alone: the MCP SDK takes a second to load.
"""
