"""The lowest layer: messages, events, protocols and the loop. No I/O; standard library and msgspec only."""
