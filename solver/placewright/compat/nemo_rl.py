"""NeMo-RL's ``virtual_cluster`` module, with the names, arguments, results and errors it has today, and what it lacks.

Usage: import from here what a script imports from ``nemo_rl.distributed.virtual_cluster``, or run it unchanged::

    python -m placewright.compat.nemo_rl examples/run_grpo.py --config grpo.yaml

With ``PLACEWRIGHT_PLAN`` set to a plan file, its clusters get exactly the planned nodes. Beyond NeMo-RL:
``select_segments`` plans several roles jointly (N1, N2), ``check_group_span`` tells whether parallel groups stay inside
a segment or a domain, ``node_pins`` pins logical nodes to chosen nodes (N7), and
``RayVirtualCluster(..., bundle_order="nested")`` numbers ranks without interleaving domains or nodes (N3..N6).

When to modify: when NeMo-RL's module gains a name. Functions that use Ray or each other stay in this file: callers and
tests replace its globals (``ray``, ``PlacementGroupSchedulingStrategy``, the helpers), so they are looked up here at
call time. Ray is imported on first use only.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import random
import runpy
import socket
import sys
import time  # noqa: F401 - the cluster sleeps through this global
from collections.abc import Callable, Sequence
from typing import Any, Literal

from placewright.compat._lazy import LazyAttribute, LazyModule, LazyRemote
from placewright.compat._nemo_cluster import RayVirtualCluster
from placewright.compat._nemo_config import (
    DEFAULT_DYNAMO_CONTROL_PORT_RANGE_HIGH,
    DEFAULT_DYNAMO_CONTROL_PORT_RANGE_LOW,
    DEFAULT_DYNAMO_HTTP_PORT_RANGE_HIGH,
    DEFAULT_DYNAMO_HTTP_PORT_RANGE_LOW,
    DEFAULT_DYNAMO_SYSTEM_PORT_RANGE_HIGH,
    DEFAULT_DYNAMO_SYSTEM_PORT_RANGE_LOW,
    DEFAULT_GENERATION_PORT_RANGE_HIGH,
    DEFAULT_GENERATION_PORT_RANGE_LOW,
    DEFAULT_GENERATION_ROUTER_PORT_RANGE_HIGH,
    DEFAULT_GENERATION_ROUTER_PORT_RANGE_LOW,
    DEFAULT_GYM_PORT_RANGE_HIGH,
    DEFAULT_GYM_PORT_RANGE_LOW,
    DEFAULT_MASTER_PORT_RANGE_HIGH,
    DEFAULT_MASTER_PORT_RANGE_LOW,
    DEFAULT_SGLANG_PROMETHEUS_PORT_RANGE_HIGH,
    DEFAULT_SGLANG_PROMETHEUS_PORT_RANGE_LOW,
    DEFAULT_SGLANG_ROUTER_PORT_RANGE_HIGH,
    DEFAULT_SGLANG_ROUTER_PORT_RANGE_LOW,
    DEFAULT_VLLM_PORT_RANGE_LOW,
    DEFAULT_VLLM_PORTS_PER_ENGINE,
    NVLINK_DOMAIN_PREFIX,
    NVLINK_DOMAIN_UNKNOWN,
    PY_EXECUTABLES,
    TOPO_RANK_KEY,
    TOPO_RANK_UNKNOWN,
    ClusterConfig,
    git_root,
)
from placewright.compat._nemo_planned import planned_pins, planned_ray_ids  # noqa: F401 - the cluster pins through this global
from placewright.compat._nemo_segments import GroupSpan, SegmentRole, check_group_span, select_segments
from placewright.compat._nemo_topology import (
    ResourceInsufficientError,
    _sort_bundle_indices_by_topology,
    _topology_of,
    order_bundles_by_topology,
    select_segment_nodes,
)
from placewright.compat._plan_in_force import PLAN_VARIABLE

__all__ = [
    "DEFAULT_DYNAMO_CONTROL_PORT_RANGE_HIGH",
    "DEFAULT_DYNAMO_CONTROL_PORT_RANGE_LOW",
    "DEFAULT_DYNAMO_HTTP_PORT_RANGE_HIGH",
    "DEFAULT_DYNAMO_HTTP_PORT_RANGE_LOW",
    "DEFAULT_DYNAMO_SYSTEM_PORT_RANGE_HIGH",
    "DEFAULT_DYNAMO_SYSTEM_PORT_RANGE_LOW",
    "DEFAULT_GENERATION_PORT_RANGE_HIGH",
    "DEFAULT_GENERATION_PORT_RANGE_LOW",
    "DEFAULT_GENERATION_ROUTER_PORT_RANGE_HIGH",
    "DEFAULT_GENERATION_ROUTER_PORT_RANGE_LOW",
    "DEFAULT_GYM_PORT_RANGE_HIGH",
    "DEFAULT_GYM_PORT_RANGE_LOW",
    "DEFAULT_MASTER_PORT_RANGE_HIGH",
    "DEFAULT_MASTER_PORT_RANGE_LOW",
    "DEFAULT_SGLANG_PROMETHEUS_PORT_RANGE_HIGH",
    "DEFAULT_SGLANG_PROMETHEUS_PORT_RANGE_LOW",
    "DEFAULT_SGLANG_ROUTER_PORT_RANGE_HIGH",
    "DEFAULT_SGLANG_ROUTER_PORT_RANGE_LOW",
    "DEFAULT_VLLM_PORTS_PER_ENGINE",
    "DEFAULT_VLLM_PORT_RANGE_LOW",
    "NVLINK_DOMAIN_PREFIX",
    "NVLINK_DOMAIN_UNKNOWN",
    "PY_EXECUTABLES",
    "TOPO_RANK_KEY",
    "TOPO_RANK_UNKNOWN",
    "ClusterConfig",
    "GroupSpan",
    "RayVirtualCluster",
    "ResourceInsufficientError",
    "SegmentRole",
    "_bind_socket_in_range",
    "_get_free_consecutive_ports_local",
    "_get_free_port_local",
    "_get_gpu_id_info",
    "_get_node_ip_and_free_port",
    "_get_node_ip_local",
    "_sort_bundle_indices_by_topology",
    "check_group_span",
    "get_ray_cluster_topology",
    "get_reordered_bundle",
    "git_root",
    "init_ray",
    "node_pins",
    "order_bundles_by_topology",
    "prepare_segment_topology",
    "select_segment_nodes",
    "select_segments",
]

logger = logging.getLogger(__name__)
dir_path = os.path.join(git_root, "nemo_rl", "distributed")

# Module globals on purpose: tests and callers replace them.
ray: Any = LazyModule("ray")
PlacementGroup: Any = LazyAttribute("ray.util.placement_group", "PlacementGroup")
placement_group: Any = LazyAttribute("ray.util.placement_group", "placement_group")
placement_group_table: Any = LazyAttribute("ray.util.placement_group", "placement_group_table")
remove_placement_group: Any = LazyAttribute("ray.util.placement_group", "remove_placement_group")
PlacementGroupSchedulingStrategy: Any = LazyAttribute("ray.util.scheduling_strategies", "PlacementGroupSchedulingStrategy")

_TAG_PREFIX = "nrl_tag_"
# A launcher's variables would make a worker's MPI believe that the launcher started it.
_LAUNCHER_PREFIXES = ("PMIX_", "PMI_", "MPI_", "OMPI_", "SLURM_")


def _remote(**options: Any) -> Callable[[Callable[..., Any]], LazyRemote]:
    """Like ``ray.remote``, made on first use with the ``ray`` that this module holds then."""
    return lambda function: LazyRemote(function, lambda: ray, **options)


@_remote()
def _get_node_ip_and_free_port(
    port_range_low: int = DEFAULT_MASTER_PORT_RANGE_LOW, port_range_high: int = DEFAULT_MASTER_PORT_RANGE_HIGH
) -> tuple[str, int]:
    """Ray task: ip of its node and a free port there."""
    return _get_node_ip_local(), _get_free_port_local(port_range_low, port_range_high)


def _get_node_ip_local() -> str:
    """Ip of this node as Ray knows it."""
    ip: str = ray._private.services.get_node_ip_address()
    return ip


def _bind_socket_in_range(
    sock: socket.socket,
    port_range_low: int,
    port_range_high: int,
    max_retries: int | None = 50,
    excluded_ports: set[int] | None = None,
) -> int:
    """Bind ``sock`` to a random free port of [low, high) and return the port.

    ``max_retries`` random tries, or each port once where it is None; ``excluded_ports`` are never taken. Raises
    RuntimeError when no try succeeds.
    """
    excluded = excluded_ports or set()
    if max_retries is None:
        tries = [port for port in range(port_range_low, port_range_high) if port not in excluded]
        random.shuffle(tries)
        told = f"all {len(tries)} available ports"
    else:
        tries = [random.randint(port_range_low, port_range_high - 1) for _ in range(max_retries)]
        told = f"{max_retries} attempts"
    for port in tries:
        if port in excluded:
            continue
        try:
            sock.bind(("", port))
        except OSError:
            continue
        return port
    raise RuntimeError(f"Could not find a free port in range [{port_range_low}, {port_range_high}) after {told}.")


def _get_free_port_local(
    port_range_low: int = DEFAULT_MASTER_PORT_RANGE_LOW,
    port_range_high: int = DEFAULT_MASTER_PORT_RANGE_HIGH,
    *,
    max_retries: int | None = 50,
    excluded_ports: set[int] | None = None,
) -> int:
    """A port of [low, high) that was free a moment ago; arguments and errors of ``_bind_socket_in_range``."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        port = _bind_socket_in_range(
            sock, port_range_low, port_range_high, max_retries=max_retries, excluded_ports=excluded_ports
        )
        sock.listen(1)
    return port


def _get_free_consecutive_ports_local(
    port_range_low: int, port_range_high: int, consecutive: int = 1, start_port: int | None = None
) -> int:
    """First port of the next block of ``consecutive`` bindable ports in [low, high), looking upward from ``start_port``.

    Raises ValueError for a count below 1, RuntimeError when there is no such block.
    """
    if consecutive < 1:
        raise ValueError(f"consecutive must be >= 1, got {consecutive}")
    base = port_range_low if start_port is None else max(start_port, port_range_low)
    while base + consecutive <= port_range_high:
        taken = _first_taken_port(base, consecutive)
        if taken is None:
            return base
        base = taken + 1  # every block that starts at or before the taken port contains it
    raise RuntimeError(f"Could not find {consecutive} consecutive free ports in [{port_range_low}, {port_range_high}).")


def _first_taken_port(base: int, count: int) -> int | None:
    """The first port of ``base .. base + count - 1`` that cannot be bound, all held at the same time."""
    held: list[socket.socket] = []
    try:
        for port in range(base, base + count):
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            held.append(sock)
            try:
                sock.bind(("", port))
                sock.listen(1)
            except OSError:
                return port
    finally:
        for sock in held:
            sock.close()
    return None


def init_ray(log_dir: str | None = None) -> None:
    """Connect to Ray: to a running cluster if it is not another driver's local one, otherwise start a local cluster.

    The environment (launcher variables of MPI and Slurm removed) is handed to every worker. A local cluster is tagged
    with the driver's CUDA_VISIBLE_DEVICES and reused by drivers with the same. ``log_dir`` holds Ray's temporary files.
    """
    for name in [name for name in os.environ if name.startswith(_LAUNCHER_PREFIXES)]:
        del os.environ[name]
    env_vars = dict(os.environ)
    env_vars.pop("RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", None)
    common: dict[str, Any] = {
        "log_to_driver": True,
        "runtime_env": {"env_vars": env_vars},
        "_temp_dir": os.path.abspath(log_dir) if log_dir else None,
    }
    tag = _TAG_PREFIX + "_".join(sorted(os.environ.get("CUDA_VISIBLE_DEVICES", "ALL").split(",")))
    try:
        ray.init(address="auto", include_dashboard=False, **common)
    except ConnectionError:
        logger.debug("No running Ray cluster found, starting one.")
        ray.shutdown()
    else:
        resources = ray.cluster_resources()
        tags = [key for key in resources if key.startswith(_TAG_PREFIX)]
        if not tags or tag in tags:
            logger.info("Connected to the running Ray cluster: %s", resources)
            return
        logger.info("The running Ray cluster is tagged %s, not %s; starting another one.", tags[0], tag)
        ray.shutdown()
        # The driver remembers which packages it uploaded; the new cluster has none of them.
        importlib.reload(importlib.import_module("ray._private.runtime_env.packaging"))
    ray.init(include_dashboard=True, resources={tag: 1}, **common)
    logger.info("Started a local Ray cluster tagged %s: %s", tag, ray.cluster_resources())


@_remote(num_gpus=1)
def _get_gpu_id_info() -> tuple[int, str, int]:
    """Ray task: GPU id of its bundle, and NVLink domain and topo rank of its node."""
    # Where Slurm set CUDA_VISIBLE_DEVICES the ids are text; as text "10" would sort before "2".
    gpu = ray.get_gpu_ids()[0]
    gpu = int(gpu) if isinstance(gpu, str) and gpu.isdigit() else gpu
    here = ray.get_runtime_context().get_node_id()
    for node in ray.nodes():
        if node.get("NodeID") == here:
            return (gpu, *_topology_of(node.get("Resources", {})))
    return gpu, NVLINK_DOMAIN_UNKNOWN, TOPO_RANK_UNKNOWN


def get_reordered_bundle(
    pg: Any,
    segment_size: int | None = None,
    gpus_per_node: int | None = None,
    order: Literal["nemo", "nested"] = "nemo",
) -> tuple[list[int], list[int], tuple[str, ...]]:
    """Bundle indices in topological order, their GPU ids in that order, and the NVLink domain by bundle index.

    A short task in every bundle tells its GPU and node. ``order`` "nested" is ``order_bundles_by_topology``. Raises
    ValueError when ``segment_size`` is given without ``gpus_per_node``.
    """
    table = placement_group_table(pg)
    nodes = table["bundles_to_node_id"]
    refs = [
        _get_gpu_id_info.options(
            # A hundredth of each, so that the task fits beside a running worker.
            num_cpus=0.01,
            num_gpus=0.01,
            resources=None,
            scheduling_strategy=PlacementGroupSchedulingStrategy(placement_group=pg, placement_group_bundle_index=index),
        ).remote()
        for index in range(len(table["bundles"]))
    ]
    infos = ray.get(refs)
    data = [(gpu, domain, rank, nodes[index]) for index, (gpu, domain, rank) in enumerate(infos)]
    sort = _sort_bundle_indices_by_topology if order == "nemo" else order_bundles_by_topology
    indices = sort(data, segment_size=segment_size, gpus_per_node=gpus_per_node)
    return indices, [infos[index][0] for index in indices], tuple(domain for _, domain, _ in infos)


def get_ray_cluster_topology() -> dict[str, tuple[str, int]]:
    """Node id -> (NVLink domain, topo rank) of all living nodes."""
    return {node.get("NodeID", ""): _topology_of(node.get("Resources", {})) for node in ray.nodes() if node.get("Alive", False)}


def prepare_segment_topology(
    segment_size: int | None,
    num_nodes: int,
    *,
    topology: dict[str, tuple[str, int]] | None = None,
    role: str = "training",
) -> tuple[list[dict[str, float]] | None, list[str], dict[str, tuple[str, int]]]:
    """Choose segment nodes; gives the domain pin of each logical node, the ids not chosen, and the topology used.

    No pins where ``segment_size`` is None or no node tells a domain. ``topology`` is asked from Ray by default, ``role``
    is a word for the message. Raises what ``select_segment_nodes`` raises.
    """
    if segment_size is None:
        return None, [], {}
    if topology is None:
        topology = get_ray_cluster_topology()
    if PLAN_VARIABLE in os.environ:
        # Domains leave open which of their nodes it is (N7), and roles one after another get in each other's way (N2).
        planned = planned_ray_ids(role, num_nodes)
        if planned is not None:
            print(f"  ✓ Planned allocation: {num_nodes} {role} nodes (segment_size={segment_size})", flush=True)
            return node_pins(planned), [node for node in topology if node not in set(planned)], topology
    if all(domain == NVLINK_DOMAIN_UNKNOWN for domain, _ in topology.values()):
        print(
            f"  ⚠ segment_size={segment_size} is set but no NVLink domain info found, falling back to unordered allocation",
            flush=True,
        )
        return None, list(topology), topology
    selected, remaining = select_segment_nodes(topology, segment_size, num_nodes)
    domains = [topology[node][0] for node in selected]
    print(
        f"  ✓ Topology-aware allocation: {num_nodes} {role} nodes in {len(set(domains))} NVLink domains "
        f"(segment_size={segment_size})",
        flush=True,
    )
    return [{domain: 0.001} for domain in domains], remaining, topology


def node_pins(node_ids: Sequence[str]) -> list[dict[str, float]]:
    """The exact pin ``{"node:<ip>": 0.001}`` of each node, for ``node_resource_constraints`` (N7).

    Raises KeyError for a node that is not alive, ValueError where two of the cluster's nodes share an ip.
    """
    ips = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node.get("Alive", False)}
    wanted = [ips[node] for node in node_ids]
    shared = {ip for ip in wanted if list(ips.values()).count(ip) > 1}
    if shared:
        raise ValueError(f"The ips {sorted(shared)} belong to several nodes each and pin none of them")
    return [{f"node:{ip}": 0.001} for ip in wanted]


def run_script(script: str, arguments: Sequence[str] = ()) -> None:
    """Run a NeMo-RL script in this process with this module in place of its ``virtual_cluster``.

    Workers that import NeMo-RL's own module in their processes are not affected: groups are made by the driver.
    """
    module = importlib.import_module("placewright.compat.nemo_rl")
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    # First ours, then its parents: they may import it themselves, and "import a.b.c as x" needs them loaded.
    sys.modules["nemo_rl.distributed.virtual_cluster"] = module
    with contextlib.suppress(ModuleNotFoundError):  # Without NeMo-RL the script itself says best what is missing.
        importlib.import_module("nemo_rl.distributed").virtual_cluster = module  # type: ignore[attr-defined]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m placewright.compat.nemo_rl SCRIPT [ARGS ...]")
    # Through the import system: as __main__ this file is another module than the one that scripts get.
    importlib.import_module("placewright.compat.nemo_rl").run_script(sys.argv[1], sys.argv[2:])
