"""What small models get besides: their requests understood, files looked at ahead, calls guided, and an end to their turns."""
