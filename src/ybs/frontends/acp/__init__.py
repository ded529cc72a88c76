"""`ybs acp`: an agent for editors, which speak the Agent Client Protocol with it on standard input and output.

https://agentclientprotocol.com. The official SDK is an extra, `ybs[acp]`, and takes half a second to load: `initialize` is answered before.
"""
