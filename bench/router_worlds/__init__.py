"""The simulator: made-up models that change, fail and are judged late, to compare routers on the same course of events."""
