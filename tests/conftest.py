"""Shared test set-up: ``oracle`` and other helpers beside the tests are importable wherever pytest is started."""

import sys
from pathlib import Path

# At the end: a folder here may have the name of an installed package (ray) and must not hide it.
sys.path.append(str(Path(__file__).parent))
