"""What is kept of sessions: transcripts, line by line, and the checkpoints of files."""
