"""The toolbox of the tools' own tests, for cases that go through real tools."""

from tools.conftest import bench, make_bench

__all__ = ["bench", "make_bench"]
