"""Tools that `ybs tools install NAME` puts in place: each a file of its own, to be read and changed."""
