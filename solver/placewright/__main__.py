"""``python -m placewright`` is the command line."""

from __future__ import annotations

from placewright.cli import main

if __name__ == "__main__":
    main()
