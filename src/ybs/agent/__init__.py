"""What an agent is made of, how it is built, and what runs around its turns."""
