"""`ybs serve`: the sessions of one person behind a socket, and `ybs attach`, the terminal on one of them."""
