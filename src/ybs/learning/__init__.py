"""Find recurring tasks in a person's saved sessions, and make commands or memories of them on request."""
