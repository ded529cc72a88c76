"""Guards: they watch a turn, remind the model, and end what does not end by itself."""
