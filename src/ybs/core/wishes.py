"""Whether words ask for a change, as far as they show it: for small models, which answer where they should act."""

import re
from typing import Final

from ybs.core.lazy import lazy

#: Who begins so wants to know something.
_ASKS: Final = lazy(
    r"(?i)\W*(?:what|which|who|whose|where|when|why|how|is|are|was|were|do|does|did|has|have|explain|describe|tell|list|name|count)\b"
)
_CHANGES: Final = lazy(
    r"(?i)\b(?:add|append|bump|change|clean|convert|correct|create|cut|delete|drop|edit|erase|extend|fill|fix|get\s+rid|implement"
    r"|improve|insert|lower|make|mend|move|put|raise|refactor|remove|rename|repair|replace|rewrite|set|shorten|sort|swap|throw"
    r"|turn|update|write)\b|\btranslate\b.*?\w\.\w"  # what is translated may be a word
    r"|\b(?:has|have|needs?|ought)\s+to\s+be\b|\b(?:should|must|shall)\s+be\b|\bI\s+(?:need|want)\s+an?\b"
)


def wishes_change(words: str) -> bool:
    """Return whether the words ask for something to be changed or made, not for an answer."""
    return not re.match(_ASKS(), words) and re.search(_CHANGES(), words) is not None
