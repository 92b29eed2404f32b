"""Runs the notebooks, so that what they say stays true.

::

    python notebooks/run.py              # run all, in a temporary copy; fails where a cell fails
    python notebooks/run.py 02 03        # some
    python notebooks/run.py --write      # store the outputs in the notebooks

Needs ``pip install 'placewright[notebook,picture]'``; 04 also the benchmarks' peers (``[benchmark]``) where no results are
stored, 05 Ray. Modify this file when a notebook needs another setting.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LARGEST = 200_000
"""Bytes of a stored notebook."""
SECONDS = 120
"""Most for one cell."""


def run(path: Path) -> Any:
    """The notebook with fresh outputs, run from the root of the repository."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}})
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = with_few_colours(output.data["image/png"])
    notebook.metadata.pop("language_info", None)
    return notebook


def with_few_colours(png: str) -> str:
    """A picture (base64) at about a third of its size; ours have few colours."""
    picture = Image.open(BytesIO(base64.b64decode(png))).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    out = BytesIO()
    picture.save(out, "png", optimize=True)
    return base64.b64encode(out.getvalue()).decode()


def problems(path: Path) -> list[str]:
    """What is wrong with a stored notebook: too large, or without outputs."""
    found = []
    if path.stat().st_size > LARGEST:
        found.append(f"{path.name}: {path.stat().st_size:,} bytes, at most {LARGEST:,}")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    if not any(cell.get("outputs") for cell in cells):
        found.append(f"{path.name}: stored without outputs: python notebooks/run.py --write")
    return found


def main(arguments: list[str]) -> int:
    """Run the notebooks whose names begin as asked; returns the exit code."""
    wanted = [argument for argument in arguments if not argument.startswith("-")]
    wrong = []
    for path in sorted(HERE.glob("*.ipynb")):
        if wanted and not path.name.startswith(tuple(wanted)):
            continue
        started = time.perf_counter()
        notebook = run(path)
        if "--write" in arguments:
            nbformat.write(notebook, path)
        print(f"{path.name}: {time.perf_counter() - started:.1f} s", flush=True)
        wrong += problems(path)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
