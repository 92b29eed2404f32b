"""Benchmarks of placewright and of what people would use instead; see ``benchmarks/README.md``.

Usage: ``python -m benchmarks run``, ``python -m benchmarks check DIR``, ``python -m benchmarks report DIR``. Nothing here is
part of the package. Modify this file never; a new family goes into ``families/``, a new peer into ``peers/``.
"""
