"""NeMo-RL's cluster section, executables, port ranges and topology keys, with today's values.

Usage: through :mod:`placewright.compat.nemo_rl`.

When to modify: when NeMo-RL changes one of these values.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from pydantic import BaseModel


class ClusterConfig(BaseModel, extra="allow"):
    """The ``cluster`` section of a NeMo-RL configuration; unknown keys are kept.

    The master port range is half-open; None means the default range. ``segment_size`` counts nodes of one NVLink domain;
    None switches topology off.
    """

    gpus_per_node: int
    num_nodes: int
    master_port_range_low: int | None = None
    master_port_range_high: int | None = None
    segment_size: int | None = None


def _find_git_root() -> str:
    """The NeMo-RL checkout, found without importing it; where there is none, the folder two levels up, as in NeMo-RL."""
    try:
        spec = importlib.util.find_spec("nemo_rl")
    except (ImportError, ValueError):  # ValueError: a stand-in without a spec is loaded
        spec = None
    if spec is not None and spec.submodule_search_locations:
        return os.path.dirname(os.path.abspath(next(iter(spec.submodule_search_locations))))
    return os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))


git_root = _find_git_root()


def _uv_run(extra: str = "") -> str:
    return f"uv run --locked {f'--extra {extra} ' if extra else ''}--directory {git_root}"


class PY_EXECUTABLES:
    """The Python command of each kind of worker: this interpreter, or ``uv run`` with the extra that it needs."""

    SYSTEM = sys.executable
    BASE = _uv_run()
    VLLM = _uv_run("vllm")
    FSDP = _uv_run("fsdp")
    AUTOMODEL = _uv_run("automodel")
    MCORE = _uv_run("mcore")
    NEMO_GYM = _uv_run("nemo_gym")
    SGLANG = _uv_run("sglang")
    TRTLLM = _uv_run("trtllm")


# Ports: half-open ranges [low, high) below 9000, where the kernel's own source ports begin on some nodes.
DEFAULT_GENERATION_ROUTER_PORT_RANGE_LOW = 1202
DEFAULT_GENERATION_ROUTER_PORT_RANGE_HIGH = 1300
DEFAULT_GENERATION_PORT_RANGE_LOW = 3000
DEFAULT_GENERATION_PORT_RANGE_HIGH = 4999
DEFAULT_DYNAMO_CONTROL_PORT_RANGE_LOW = 1313
DEFAULT_DYNAMO_CONTROL_PORT_RANGE_HIGH = 1400
DEFAULT_DYNAMO_HTTP_PORT_RANGE_LOW = 3000
DEFAULT_DYNAMO_HTTP_PORT_RANGE_HIGH = 4000
DEFAULT_DYNAMO_SYSTEM_PORT_RANGE_LOW = 4000
DEFAULT_DYNAMO_SYSTEM_PORT_RANGE_HIGH = 4100
DEFAULT_GYM_PORT_RANGE_LOW = 5000
DEFAULT_GYM_PORT_RANGE_HIGH = 5999
DEFAULT_VLLM_PORT_RANGE_LOW = 7000
DEFAULT_VLLM_PORTS_PER_ENGINE = 100
DEFAULT_SGLANG_ROUTER_PORT_RANGE_LOW = 8600
DEFAULT_SGLANG_ROUTER_PORT_RANGE_HIGH = 8799
DEFAULT_SGLANG_PROMETHEUS_PORT_RANGE_LOW = 8800
DEFAULT_SGLANG_PROMETHEUS_PORT_RANGE_HIGH = 8999
DEFAULT_MASTER_PORT_RANGE_LOW = 1400
DEFAULT_MASTER_PORT_RANGE_HIGH = 1999

NVLINK_DOMAIN_PREFIX = "nvlink_domain_"
"""Each node carries the Ray resource ``nvlink_domain_<ClusterUUID>: 1``; nodes with the same key share a switch fabric."""

TOPO_RANK_KEY = "topo_rank"
"""Ray resource with the node's place in the physical order, 1 or more (Ray drops resources of value 0)."""

NVLINK_DOMAIN_UNKNOWN = "unknown"
"""Domain of a node that tells none."""

TOPO_RANK_UNKNOWN: int = -1
"""Rank of a node that tells none."""
