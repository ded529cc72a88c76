"""Trust in a project: the settings that its files may change before and after the person trusts them."""
