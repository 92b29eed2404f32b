"""The pages on adding a rule, a goal, an export and a topology source are followed to the letter, in a copy."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r'^```(\w+) title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def applied(text: str, diff: str) -> str:
    """The text with one change: context and removed lines are found as they stand, once."""
    old = "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[0] in " -")
    new = "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[0] in " +")
    assert text.count(f"\n{old}") == 1, f"not there, or more than once:\n{old}"
    return text.replace(f"\n{old}", f"\n{new}")


@pytest.mark.parametrize("page", ["rule", "goal", "export", "topology-source"])
def test_the_page_can_be_followed(page: str, tmp_path: Path) -> None:
    for folder in ("models", "solver"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    attempts = []
    for kind, title, body in BLOCK.findall((ROOT / "docs" / "adding" / f"{page}.md").read_text(encoding="utf-8")):
        path = tmp_path / title
        if title == "try":
            attempts.append(body)
        elif kind == "diff":
            path.write_text(applied(path.read_text(encoding="utf-8"), body.replace("\n\n", "\n \n")), encoding="utf-8")
        else:
            assert not path.exists(), f"{title} is there already"
            path.write_text(body, encoding="utf-8")
    assert attempts
    for body in attempts:
        code = f"import sys; sys.path[:0] = {[str(tmp_path / 'solver'), str(tmp_path / 'models')]!r}\n{body}"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
