# SPDX-License-Identifier: BSD-3-Clause
"""What goes on beside a test, and has to succeed as well."""
import threading


class Beside(threading.Thread):
    """Calls FUNCTION; join() raises what that has raised."""

    def __init__(self, function, *args, **how):
        super().__init__(daemon=True)
        self.call = lambda: function(*args, **how)
        self.problem = None

    def run(self):
        try:
            self.call()
        except BaseException as problem:    # pylint: disable=broad-except
            self.problem = problem

    def join(self, timeout=None):
        super().join(timeout)
        if self.problem:
            raise self.problem
