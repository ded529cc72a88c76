"""The ground floor: messages, events, protocols and the loop. No I/O; standard library and msgspec only."""
