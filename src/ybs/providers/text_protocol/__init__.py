"""Tool calls as text, for models that cannot call functions, and for servers that take no tools."""
