"""Files as they are on disk, and what a model gets to see of them."""
