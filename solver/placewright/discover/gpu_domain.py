"""NVLink domains from Ray's own node label ``ray.io/gpu-domain``.

Modify this file when Ray names that label in another way.
"""

from __future__ import annotations

from placewright.discover.source import label_source

SOURCE = label_source("ray.io/gpu-domain")
