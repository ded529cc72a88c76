"""Whether words ask for a change, as far as they show it: for small models, which answer where they should act."""

import re
from typing import Final

from ybs.core.lazy import lazy

_POLITE: Final = (
    r"(?:(?:a|again|and|can|could|hello|hey|hi|i|if|i'?d|i'?m|just|kindly|like|me|ok|please|pls|quickly?|so|then|to|trying|u|us|want|we|will"
    r"|wonder(?:ing)?|would|you)\W+)*"
)
#: Who begins so wants to know something,
_ASKS: Final = lazy(
    rf"(?i)\W*(?:(?:is|are|was|were|do|does|did|has|have)\b|{_POLITE}(?:(?:what|who|where|how)(?:'?s|'?re)?|when(?!\s+(?:I|we|you)\b)|which|whose|why|explain"
    r"|describe|know|tell|list|name|count|show|need\s+the\s+(?:list|names?|number|path|value|version)s?)\b)"
)
_TOLD: Final = lazy(r"(?i)\btell\s+(?:me|us)\b|\blet\s+(?:me|us)\s+know\b")
#: and who begins a sentence so as well, unless it is said what to change.
_LOOKS: Final = lazy(
    rf"(?i)(?:^|[.!?;:,])\W*{_POLITE}(?:check|compare|find|give\s+(?:me|us)|look|need\s+to\s+know|print|read|remember|review|search|see"
    r"|summari[sz]e|what|which|who|where|when|why|how)\b"
)
_CHANGES: Final = lazy(
    r"(?i)\b(?:add|append|bump|change|clean|convert|correct|create|cut|delete|drop|edit|erase|extend|fill|fix|get\s+rid|implement"
    r"|improve|insert|lower|make(?!\s+(?:sense|sure))|mend|move|put|raise|refactor|remove|rename|repair|replace|rewrite|set|shorten|sort|swap|throw"
    r"|turn|update|write)\b|\btranslate\b.*?\w\.\w"  # what is translated may be a word
    r"|\b(?:(?:has|have|needs?|ought)\s+to|should|must|shall)\s+(?:be|become|contain|have|read|say)\b|\bI\s+(?:need|want)\s+an?\b"
    r"|\binstead\s+of\b|\bno\s+longer\b|\bneeds?\s+(?:an?|another|one|some|two)\s+(?:\w+\s+){0,2}?(?:column|comment|entry|field|function|import|item|key|line|option|row|section|test)s?\b"
)

#: Whoever wants something run wants to know what comes of it, not what stands in the file.
_RUN: Final = lazy(r"(?i)\W*(?:please\s+)?(?:run|start|execute|launch)(?=\s)")
_NEW: Final = lazy(
    r"(?i)\b(?:new|create|make|write|save|called|named)\b|\b(?:I|we)\s+(?:also\s+|still\s+)?(?:need|want)\b|\bthere\s+should\s+be\b"
    r"|\b(?:add|draft|generate|give|need|prepare|produce|provide|start|want)\s+(?:(?:a|an|another|file|it|me|new|project|the|this|us)\s+)*"
    r"[`'\"]?[\w./-]*\.[A-Za-z][\w-]*"
)
#: What is wrong is within, not where it begins.
_WRONG: Final = lazy(
    r"(?i)\b(?:broken|bug|correct|crash\w*|error|fail\w*|fault|fix|mend|mistake|repair|right|wrong)\b"
)
_BLANKS: Final = lazy(r"(?i)\b(?:blanks?|indent\w*|spaces?|tabs?|whitespace)\b")
_GONE: Final = lazy(
    r"(?i)\b(?:delete|drop|erase|remove|trash|throw\s+away|get\s+rid\s+of)\s+(?:the\s+)?(?:files?\s+)?[`'\"]?[\w./-]*\w\.\w"
    r"|\b(?:delete|drop|erase|get\s+rid\s+of|remove|trash|throw)\s+(?:it|them|this|that)\b"
    r"|\w\.\w+[`'\"]?\s+(?:(?:can|must|should)|(?:has|have|needs?)\s+to)\s+(?:go|be\s+(?:deleted|removed))\b"
)
#: A command as people quote one: of several words.
_COMMAND: Final = lazy(r"`([^`\n]* [^`\n]*)`")
_PRINTS: Final = lazy(r"(?i)\bwhat\b.*`\s+(?:print|output|show|say)")
_MORE: Final = lazy(
    r"(?i)\b(?:add|append|insert|goes|needs?\s+another|one\s+more|put)\b|\bis missing\b"
)
#: What is added within a line, not as one.
_WITHIN: Final = lazy(
    r"(?i)\b(?:argument|attribute|brace|bracket|character|colon|comma|dot|parameter|parenthes[ie]s|period|prefix|quote|quotation"
    r"|semicolon|space|suffix)s?\b|\bput\b.*\bright\b"
)
_EVERYWHERE: Final = lazy(
    r"(?i)\brename\b|\w\s*(?:->|=>|\u2192)\s*\w|\beverywhere\b|\btwice\b|\bboth (?:lines|places|times)\b|\b(?:all|each|every)\s+(?:of\s+the\s+)?(?:occurrences?|places?|uses?)\b"
)
_MANY: Final = lazy(r"(?i)\bhow\s+many\b|\bcount\b|\bnumber\s+of\b")
_LAST: Final = lazy(
    r"(?i)\bappend|\bat\s+the\s+(?:very\s+)?(?:end|bottom)\b|\bto\s+the\s+(?:end|bottom)\b|\bas\s+(?:the\s+|its\s+)?last\b|\blast\s+line\b|\b(?:below|under|after)\s+(?:all\s+)?the\s+(?:others?|rest)\b"
)
_PATH: Final = lazy(r"[\w./-]*\w/?")
#: A dot and a short word is an ending (`.sh`), with a longer one it is a file (`.gitignore`).
_IS_FILE: Final = lazy(r"\w\.[A-Za-z]\w{0,5}$|(?:^|/)\.[A-Za-z][\w.-]{5,}$")
_CALLED: Final = lazy(r"(?i)\bfile\s+(?:called|named)\s+[`'\"]?([\w./-]*\w)")


def wishes_change(words: str) -> bool:
    """Return whether the words ask for something to be changed or made, not for an answer.

    Who names a file and asks nothing, as in a note, wants something of it.
    """
    if wishes_answer(words) or wishes_run(words):
        return False
    return re.search(_CHANGES(), words) is not None or bool(files_in(words))


def wishes_answer(words: str) -> bool:
    """Return whether the words are a question, or ask to be shown something, and not for a change."""
    if re.match(_ASKS(), words) or re.search(_TOLD(), words):
        return True
    is_question = "?" in words or re.search(_LOOKS(), words) is not None
    return is_question and not re.search(_CHANGES(), words)


def wishes_run(words: str) -> bool:
    """Return whether the words begin by asking for something to be run."""
    return re.match(_RUN(), words) is not None


def without_commands(words: str) -> str:
    """Return the words without the commands that are quoted in them."""
    return re.sub(_COMMAND(), " ", words)


def output_wanted_of(words: str) -> list[str]:
    """Return the commands that the words quote, where they ask for something to be run or for what a command prints."""
    asks = wishes_run(words) or re.search(_PRINTS(), words)
    return re.findall(_COMMAND(), words) if asks else []


def wishes_more(words: str) -> bool:
    """Return whether the words ask for lines to be added to those there are."""
    is_within = re.search(_WITHIN(), words) is not None and not wishes_last(words)
    return re.search(_MORE(), words) is not None and not is_within


def wishes_everywhere(words: str) -> bool:
    """Return whether something is to be changed wherever it stands, as a name that is to be another one."""
    return re.search(_EVERYWHERE(), words) is not None


def wishes_repair(words: str) -> bool:
    """Return whether something is wrong, and is to be put right."""
    return re.search(_WRONG(), words) is not None


def wishes_blanks(words: str) -> bool:
    """Return whether it is about blanks, such as an indentation."""
    return re.search(_BLANKS(), words) is not None


def wishes_count(words: str) -> bool:
    """Return whether it is asked how many there are of something."""
    return re.search(_MANY(), words) is not None


def wishes_last(words: str) -> bool:
    """Return whether what is to be added comes at the end."""
    return re.search(_LAST(), words) is not None


def wishes_new(words: str) -> bool:
    """Return whether the words may ask for something new."""
    return re.search(_NEW(), words) is not None


def wishes_gone(words: str) -> bool:
    """Return whether the words ask for a file to be deleted."""
    return re.search(_GONE(), words) is not None


def paths_in(words: str) -> list[str]:
    """Return what may be a path in the words, in their order, each once."""
    return list(dict.fromkeys(path.rstrip(".") for path in re.findall(_PATH(), words)))


def files_in(words: str) -> list[str]:
    """Return what the words name as files: by how the name ends, or by calling it one ("a file named VERSION")."""
    named = {found.rstrip(".") for found in re.findall(_CALLED(), words)}
    return [path for path in paths_in(words) if path in named or is_file_name(path)]


def is_file_name(path: str) -> bool:
    """Return whether a path ends as the names of files do."""
    return re.search(_IS_FILE(), path) is not None
