"""Record the changes of a turn on disk, and undo them."""
