"""Context: what the model is told before the person says anything.

`prompt.py` writes it, out of sections (`section.py`); `agent/prompt_context.py` puts them together. They come from

- the machine and the folder: `machine.py`, `project.py`, `commits.py`, and `detect.py` with `kinds/`;
- documents: `documents.py`, over `document_places.py` (where), `document_text.py` (how) and `preferences.py`;
  `focus.py` and `identity.py` write two of them;
- memories: `memory.py`, over `memory_file.py` and `memory_names.py`; `memory_recent.py` is the section.

The map of the project, `repo_map/`, is a message of its own.
"""
