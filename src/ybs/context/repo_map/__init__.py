"""The repo map: the files and names of a project, those that a request is about first."""
