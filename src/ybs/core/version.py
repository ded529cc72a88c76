"""The version of ybs, for who must not import the package's front (`ybs.__version__` says the same)."""

from typing import Final

VERSION: Final = "0.1.0"
