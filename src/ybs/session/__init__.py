"""A session: what every frontend holds, with its commands and the wiring of all rooms."""
