"""Commands as processes: started, followed, kept within bounds, ended."""
