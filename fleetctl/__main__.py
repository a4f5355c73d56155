"""Where the process of a command begins and ends: `python -m fleetctl`, and the console script."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line."""
    # A command makes what it needs, ends, and leaves no cycles worth finding; a service turns this on again.
    gc.disable()
    from fleetctl.cli.main import cli

    try:
        cli.main()
    except SystemExit as done:
        _end(done.code)
        raise


def _end(code: object) -> None:
    """End the process, where nothing is left to do: the system takes memory back at once, the interpreter object by object."""
    import threading

    if type(code) is not int or threading.active_count() > 1 or sys.gettrace() or sys.getprofile():
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return
    os._exit(code)


if __name__ == "__main__":
    main()
