"""A session: the object that every frontend holds, with its commands and the wiring of all packages."""
