"""The repo map: the files and names of a project, those that a request is about first.

Read `repo_map.py` first: it puts the steps together. What each of them stands on follows it here.

- What is known of the files: `index.py`, over `documents.py` (what changed), `store.py` (what is kept), `caches.py`
  (where); of one file `reading.py`, `languages.py`, and `facts.py` with `words.py` and `outline.py` (a quick guess).
- What git knows: `history.py`.
- The order for a request: `query.py`, then `rank.py`, over `search.py` (words), `tags.py` (a parse, with `grammars.py`,
  `name_nodes.py` and `signature.py`; `tag_cache.py` keeps it) and `graph.py` (who uses whom).
- The text: `render.py`, over `naming.py` (which names) and `lines.py` (how they stand).
"""
