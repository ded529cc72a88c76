"""What a project's files may set before and after the person trusts them."""
