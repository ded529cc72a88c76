"""Context: what the model is told before the person says anything."""
