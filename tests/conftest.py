"""Shared test set-up: ``oracle`` and other helpers beside the tests are importable wherever pytest is started."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
# At the end: a folder here may have the name of an installed package (ray) and must not hide it. The mutations run the
# verifier's tests again.
sys.path += [str(HERE), str(HERE / "verify")]
