"""What shows of which kind a project is, and what its tests, style and builds are run with."""
