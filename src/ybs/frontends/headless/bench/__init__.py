"""`ybs bench tasks`: small tasks by which a person measures a model on their own machine."""
