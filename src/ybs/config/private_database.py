"""Tells a damaged database (SQLite) from one that cannot be used just now."""

import sqlite3

#: What SQLite says of a file that cannot be used now, though nothing is wrong with it.
_NOT_NOW = frozenset(
    {
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL),
        *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM),
    }
)


def is_damage(error: Exception) -> bool:
    """Return whether a file is damaged, and not just unusable now (locked, read-only, the disk is full)."""
    code = getattr(error, "sqlite_errorcode", None)
    return not (isinstance(code, int) and code & 0xFF in _NOT_NOW)
