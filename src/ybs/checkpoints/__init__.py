"""What a turn changed on disk, and the way back."""
