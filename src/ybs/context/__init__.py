"""Context: what the model is told before the person says anything.

`prompt.py` writes it, out of sections; `agent/prompt_context.py` puts them together. They come from

- the machine and the folder: `project.py` and `detect.py`;
- documents: `documents.py`, over `document_places.py` (where) and `document_text.py` (how); `focus.py` and `identity.py`
  write two of them;
- memories: `memory.py`, over `memory_file.py`.

The map of the project, `repo_map/`, is a message of its own.
"""
