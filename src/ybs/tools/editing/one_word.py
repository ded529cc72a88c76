"""Finds a block that differs from the file in one word of a comment or of a sentence in a string."""

from ybs.tools.editing.lines import Lines
from ybs.tools.editing.prefix import shared
from ybs.tools.editing.prose import is_prose, word_at
from ybs.tools.editing.spelling import letters, says_enough, spaced

_FEWEST_LINES = 3
_ENOUGH_LETTERS = 24  # that a block of fewer lines has beside the word
_MOST_TRIED = 200
_NEARLY = 2  # a place that differs in so many lines casts doubt on one that differs in one
_ALIKE = 0.5  # of the words that such lines share


def one_word_off(lines: Lines, wanted: list[str]) -> tuple[list[int], int]:
    """Find the run of solid lines that differs in one word of one line: where it begins, and which line.

    Several runs mean doubt: another place comes as near, or nearly so, be it in code.
    """
    signs = lines.coded(wanted)
    if sum(not sign for sign in signs) > 1:
        return [], -1
    near = [(run, _unlike(lines, run, signs)) for run in _tried(lines, signs, wanted)]
    for run, unlike in near:
        if len(unlike) != 1:
            continue
        index = unlike[0]
        if _is_one_word(lines, lines.solid[run + index], wanted, index):
            others = [
                other
                for other, unlike in near
                if other != run and _comes_near(lines, other, unlike, wanted)
            ]
            return [run, *others], index
    return [], -1


def _tried(lines: Lines, signs: list[str], wanted: list[str]) -> list[int]:
    """List where the run may begin: one part of the block, in thirds, is as the file has it."""
    if len(signs) == 1:
        return _lines_like(lines, wanted[0].strip())
    third = max(len(signs) // 3, 1)
    parts = (0, third), (third, 2 * third), (2 * third, len(signs))
    runs: set[int] = set()
    for start, stop in parts:
        part = signs[start:stop]
        if part and all(part):
            runs.update(place - start for place in lines.coded_runs("".join(part)))
    inside = sorted(run for run in runs if 0 <= run <= len(lines.solid) - len(signs))
    return inside if len(inside) <= _MOST_TRIED else []


def _lines_like(lines: Lines, wanted: str) -> list[int]:
    """List the solid lines that have one half of a line."""
    halves = wanted[: len(wanted) // 2], wanted[len(wanted) // 2 :]
    found = [
        run
        for run, number in enumerate(lines.solid)
        if any(half in lines.all[number] for half in halves)
    ]
    return found if len(found) <= _MOST_TRIED else []


def _comes_near(lines: Lines, run: int, unlike: list[int], wanted: list[str]) -> bool:
    """Return whether a place differs in few lines only, and they have words of the wanted ones."""
    if len(unlike) > _NEARLY:
        return False
    return all(
        _shares_words(wanted[index], lines.all[lines.solid[run + index]]) for index in unlike
    )


def _shares_words(one: str, two: str) -> bool:
    mine, theirs = set(spaced(one).split()), set(spaced(two).split())
    return len(mine & theirs) >= _ALIKE * max(len(mine), len(theirs))


def _unlike(lines: Lines, run: int, signs: list[str]) -> list[int]:
    found: list[int] = []
    for index, sign in enumerate(signs):
        if sign != lines.sign(run + index):
            found.append(index)
            if len(found) > _NEARLY:
                break
    return found


def _is_one_word(lines: Lines, number: int, wanted: list[str], index: int) -> bool:
    mine, theirs = spaced(wanted[index]), spaced(lines.all[number])
    head = shared(mine, theirs)
    tail = shared(mine[head:][::-1], theirs[head:][::-1])
    word, other = (word_at(text, head, len(text) - tail) for text in (mine, theirs))
    if word is None or other is None:
        return False
    above_and_below = "".join(line for at, line in enumerate(wanted) if at != index)
    before, after = mine[: word[0]], mine[word[1] :]
    is_enough = len(wanted) >= _FEWEST_LINES and says_enough(above_and_below)
    if not is_enough and letters(above_and_below + before + after) < _ENOUGH_LETTERS:
        return False
    is_alone = (before, after) == (theirs[: other[0]], theirs[other[1] :])
    return is_alone and is_prose(theirs, other, lines, number)
