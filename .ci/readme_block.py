"""Print the code block of README.md that follows ``<!-- NAME -->``: ``python3 .ci/readme_block.py NAME``.

The CI run and the tests take the README's commands from here, so what is shown is what is run.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def block(name: str) -> str:
    """The text of the block, without its fences."""
    pattern = rf"<!-- {re.escape(name)} -->\s*```[a-z]*\n(.*?)```"
    found = re.findall(pattern, README.read_text(encoding="utf-8"), re.DOTALL)
    if len(found) != 1:
        raise SystemExit(f"README.md has {len(found)} blocks marked {name}, there must be one")
    text: str = found[0]
    return text


if __name__ == "__main__":
    print(block(sys.argv[1]), end="")
