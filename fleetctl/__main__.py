"""`python -m fleetctl`."""

from __future__ import annotations

from fleetctl.cli.main import main

if __name__ == "__main__":
    main()
