"""Finding the text that an edit means, and putting the new one there."""
