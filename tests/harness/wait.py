"""Waiting for a condition, never for a time."""
import time


def until(condition, seconds, what, pause=0.01):
    """The first true value of condition(); an AssertionError that says `what` after the deadline."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {seconds} s: {what() if callable(what) else what}"
        time.sleep(pause)
        pause = min(pause * 1.3, 0.2)
