"""verl's resource pools: recorded cases of the reference, and its defects V1..V8 mended.

The recorded cases say what verl does today. Where a mend changes a case, ``MENDED`` names the case and the defects, and
the expectation is rewritten by the rule of that defect; everything else of the case must still agree.
"""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from placewright.compat import verl
from placewright.compat._packing import pack
from placewright.compat.verl import (
    RayResourcePool,
    ResourcePool,
    ResourcePoolManager,
    SubRayResourcePool,
    even_resource_pool,
    extract_bundles_from_exist,
    extract_pg_from_exist,
    merge_resource_pool,
    sort_placement_group_by_node_ip,
    split_resource_pool,
    worker_layout,
)

CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "vectors" / "verl.jsonl").read_text().splitlines()]

# Recorded cases whose result a mend changes, with the defects that the recorded result shows.
MENDED = {
    "v027": "V5",  # "GPU": 0 hides 8 NPUs
    "v031": "V5",
    "v043": "V1 V6",  # parts in creation order; accelerator_type lost
    "v047": "V1",
    "v048": "V6",
    "v049": "V6",
    "v058": "V1",
    "v063": "V6",  # detached lost
    "v065": "V1 V3",
    "v067": "V6",
    "v072": "V1 V3",
    "v074": "V1",
    "v076": "V3",
    "v080": "V6",  # merging sub pools: TypeError
    "v081": "V6",
    "v087": "V1",  # the first call is unsorted
    "v092": "V1",
    "v095": "V1",
    "v101": "V7",  # equal requests served in reverse
    "v115": "V1",  # workers of a part in creation order
}


class Group:
    """A placement group of the stand-in."""

    def __init__(self, number: int, node: str, bundles: list[dict[str, float]], strategy: str, name: str, lifetime: Any):
        self.id, self.node, self.bundle_specs = number, node, bundles
        self.strategy, self.name, self.lifetime = strategy, name, lifetime
        self.bundle_count = len(bundles)

    def ready(self) -> str:
        return self.name

    def spec(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "strategy": self.strategy,
            "lifetime": self.lifetime,
            "bundles": self.bundle_specs,
        }


class FakeRay:
    """What the pools use of Ray, with Ray's check of the bundles; groups go to the nodes in ``placement``, in order."""

    def __init__(self, nodes: list[list[str]], placement: list[str], available: dict[str, dict[str, float]]):
        self._nodes, self._placement, self.created = nodes, list(placement), list[Group]()
        self.util = types.SimpleNamespace(placement_group_table=lambda group: {"bundles_to_node_id": {0: group.node}})
        self._private = types.SimpleNamespace(state=types.SimpleNamespace(available_resources_per_node=lambda: available))

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": node, "NodeManagerAddress": ip} for node, ip in self._nodes]

    def get(self, refs: list[str]) -> list[str]:
        return refs

    def placement_group(
        self, bundles: list[dict[str, float]], strategy: str = "PACK", name: str = "", lifetime: str | None = None
    ) -> Group:
        if not bundles:
            raise ValueError(
                "Bundles must be a non-empty list of resource dictionaries. For example: "
                '`[{"CPU": 1.0}, {"GPU": 1.0}]`. Got empty list instead.'
            )
        node = self._placement[len(self.created)]
        self.created.append(Group(len(self.created), node, bundles, strategy, name, lifetime))
        return self.created[-1]


@pytest.fixture
def use_ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a stand-in for Ray in place: nodes as (id, ip) or ips, the node of each group in creation order."""

    def install(
        nodes: list[Any] = (), placement: list[str] = (), available: dict[str, dict[str, float]] | None = None
    ) -> FakeRay:
        named = [[node, node] if isinstance(node, str) else node for node in nodes]
        fake = FakeRay(named, placement, available or {})
        monkeypatch.setattr(verl, "ray", fake)
        monkeypatch.setattr(verl, "placement_group", fake.placement_group)
        return fake

    return install


def describe(pool: ResourcePool) -> dict[str, Any]:
    fields = ["world_size", "store", "max_colocate_count", "n_gpus_per_node", "use_gpu", "name_prefix", "detached"]
    fields += ["accelerator_type", "start_bundle_index", "subgroup_world_size"]
    result = {field: getattr(pool, field) for field in fields if hasattr(pool, field)}
    result["store"] = list(pool.store)
    return result | {
        "local_world_size_list": pool.local_world_size_list(),
        "local_rank_list": pool.local_rank_list(),
    }


def names(groups: list[Any]) -> list[str]:
    return [group.name for group in groups]


def run_pool(case: dict[str, Any], fake: FakeRay) -> dict[str, Any]:
    keys = ("process_on_nodes", "max_colocate_count", "n_gpus_per_node")
    pool = ResourcePool(**{key: case[key] for key in keys if key in case})
    given = case.get("process_on_nodes")
    before = describe(pool)
    for count in case.get("add_node", []):
        pool.add_node(count)
    assert given is None or pool.store is given
    return {"before": before, "after": describe(pool), "call_is_store": pool() is pool.store}


def error_of(error: BaseException) -> dict[str, str]:
    return {"type": type(error).__name__, "message": str(error)}


def run_manager(case: dict[str, Any], fake: FakeRay) -> dict[str, Any]:
    manager = ResourcePoolManager(resource_pool_spec=case["spec"], mapping=case["mapping"])
    result: dict[str, Any] = {"n_gpus": manager.get_n_gpus(), "create": "ok", "roles": {}}
    try:
        manager.create_resource_pool()
    except ValueError as error:
        result["create"] = error_of(error)
    result["pools"] = {name: describe(pool) for name, pool in manager.resource_pool_dict.items()}
    for role in case["ask"]:
        try:
            result["roles"][role] = manager.get_resource_pool(role).name_prefix
        except KeyError as error:
            result["roles"][role] = error_of(error)
    return result


def run_split(case: dict[str, Any], fake: FakeRay) -> dict[str, Any]:
    pool = RayResourcePool(**case["pool"])
    parts = split_resource_pool(pool, case["split"])
    assert all(part.store is pool.store for part in parts)
    result = {
        "splits": [describe(part) for part in parts],
        "pgs_shared": all(part.pgs is pool.pgs for part in parts) if parts else None,
        "split_pgs": names(parts[0].pgs or []) if parts else [],
    }
    if "again" in case:
        index, sizes = case["again"]
        result["again"] = [describe(part) for part in split_resource_pool(parts[index], sizes)]
    return result


def run_merge(case: dict[str, Any], fake: FakeRay) -> dict[str, Any]:
    a, b = RayResourcePool(**case["a"]), RayResourcePool(**case["b"])
    b.n_gpus_per_node = case.get("n_gpus_per_node_b", 8)
    if case.get("split_first"):
        a, b = split_resource_pool(a, a.world_size)[0], split_resource_pool(b, b.world_size)[0]
    merged = merge_resource_pool(a, b)
    if case.get("twice"):
        assert merge_resource_pool(a, b).pgs == merged.pgs
    return {"merged": describe(merged), "pgs": [group.spec() for group in merged.get_placement_groups()]}


def run_groups(case: dict[str, Any], fake: FakeRay) -> dict[str, Any]:
    pool = RayResourcePool(**case["pool"])
    arguments = {key: case[key] for key in ("strategy", "name", "device_name") if key in case}
    first, second = pool.get_placement_groups(**arguments), pool.get_placement_groups(**arguments)
    assert first is second is pool.pgs
    return {
        "created": [group.spec() for group in fake.created],
        "first_call": names(first),
        "second_call": names(second),
    }


def run_extract(case: dict[str, Any], fake: FakeRay) -> dict[str, Any]:
    pools = {role: RayResourcePool(**arguments) for role, arguments in case["pools"].items()}
    return {"pgs": names(extract_pg_from_exist(pools, case["src"], RayResourcePool(**case["pool"])))}


def run_sort(case: dict[str, Any], fake: FakeRay) -> dict[str, Any]:
    groups = [fake.placement_group([{"CPU": 1}], name=f"pg{index}") for index in range(len(case["placement"]))]
    return {"order": names(sort_placement_group_by_node_ip(groups))}


def run_layout(case: dict[str, Any], fake: FakeRay) -> dict[str, Any]:
    pool = RayResourcePool(**case["pool"])
    if "split" in case:
        pool = split_resource_pool(pool, case["split"])[case["take"]]
    workers = verl_worker_group(pool)
    slots = [(slot.rank, slot.group.name, slot.bundle, slot.world_size, slot.local_world_size) for slot in worker_layout(pool)]
    told = ("rank", "pg_name", "bundle", "WORLD_SIZE", "RAY_LOCAL_WORLD_SIZE")
    assert slots == [tuple(worker[key] for key in told) for worker in workers]
    return {"workers": workers, "master": [workers[0]["pg_name"], workers[0]["bundle"]]}


def verl_worker_group(pool: RayResourcePool) -> list[dict[str, Any]]:
    """Where verl's RayWorkerGroup puts its ranks, told from the same attributes of the pool that it reads."""
    groups = pool.get_placement_groups(strategy="STRICT_PACK", device_name="cuda")
    local = pool.store[0]
    if isinstance(pool, SubRayResourcePool):
        places = [divmod(pool.start_bundle_index + rank, local) for rank in range(pool.world_size)]
    else:
        groups = sort_placement_group_by_node_ip(groups)
        places = [(index, bundle) for index in range(len(groups)) for bundle in range(local)]
    return [
        {
            "rank": rank,
            "pg_idx": index,
            "pg_name": groups[index].name,
            "bundle": bundle,
            "WORLD_SIZE": pool.world_size,
            "RAY_LOCAL_WORLD_SIZE": local,
        }
        for rank, (index, bundle) in enumerate(places)
    ]


RUN = {
    "ResourcePool": run_pool,
    "ResourcePoolManager": run_manager,
    "split_resource_pool": run_split,
    "merge_resource_pool": run_merge,
    "get_placement_groups": run_groups,
    "extract_pg_from_exist": run_extract,
    "sort_placement_group_by_node_ip": run_sort,
    "worker_layout": run_layout,
}


def run_case(case: dict[str, Any], use_ray: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    fake = use_ray(case.get("nodes", []), case.get("placement", []), case.get("available"))
    if "device" in case:
        monkeypatch.setattr(verl, "get_device_name", lambda: case["device"])
    try:
        return {"status": "ok"} | RUN[case["fn"]](case, fake)
    except Exception as error:
        return {"status": "error", "error": error_of(error)}


@pytest.mark.parametrize("case", [case for case in CASES if case["id"] not in MENDED], ids=lambda case: case["id"])
def test_recorded_case(case: dict[str, Any], use_ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_case(copy.deepcopy(case), use_ray, monkeypatch) == case["expect"]


def by_ip(case: dict[str, Any], counts: list[int], first: int = 0) -> list[int]:
    """Numbers of a pool's groups in ip order; its groups are ``first``, ``first + 1``, ... of the placement."""
    ips = dict(case["nodes"])
    return sorted(
        range(len(counts)), key=lambda index: [int(part) for part in ips[case["placement"][first + index]].split(".")]
    )


def mended(case: dict[str, Any]) -> dict[str, Any]:
    """The recorded result of a case with its defects' rules undone."""
    expect: dict[str, Any] = copy.deepcopy(case["expect"])
    if case["fn"] == "get_placement_groups":  # V1: every call gives the sorted list.
        expect["first_call"] = expect["second_call"]
    elif case["fn"] == "split_resource_pool":
        pool = case["pool"]
        order = by_ip(case, pool["process_on_nodes"])
        expect["split_pgs"] = [expect["split_pgs"][index] for index in order]  # V1
        for part in expect["splits"] + expect.get("again", []):
            part["store"] = [pool["process_on_nodes"][index] for index in order]  # V3
            part["local_world_size_list"] = [count for count in part["store"] for _ in range(count)]
            part["local_rank_list"] = [rank for count in part["store"] for rank in range(count)]
            part["detached"] = pool.get("detached", False)  # V6
            part["accelerator_type"] = pool.get("accelerator_type")
    elif case["fn"] == "merge_resource_pool" and expect["status"] == "ok":
        a, b = case["a"]["process_on_nodes"], case["b"]["process_on_nodes"]
        order_a, order_b = by_ip(case, a), by_ip(case, b, len(a))
        created = sorted(expect["pgs"], key=lambda spec: (spec["name"][0], int(spec["name"].split(":")[1])))
        order = order_a + [len(a) + index for index in order_b]
        expect["pgs"] = [created[index] for index in order]  # V1
        store = [(a + b)[index] for index in order]  # V3
        expect["merged"]["store"] = store
        expect["merged"]["local_world_size_list"] = [count for count in store for _ in range(count)]
        expect["merged"]["local_rank_list"] = [rank for count in store for rank in range(count)]
    elif case["id"] == "v027":  # V5: 1 GPU and 8 NPUs hold the 4 processes.
        expect["create"] = "ok"
    elif case["id"] == "v031":  # V5: 8 NPUs and 4 GPUs.
        expect["create"]["message"] = "Total available GPUs 12.0 is less than total desired GPUs 21"
    elif case["fn"] == "worker_layout":  # V1, nodes of one process each
        of_rank = [worker["pg_name"] for worker in expect["workers"]]
        for worker, index in zip(expect["workers"], by_ip(case, case["pool"]["process_on_nodes"]), strict=True):
            worker["pg_name"] = of_rank[index]
        expect["master"][0] = expect["workers"][0]["pg_name"]
    elif case["id"] == "v101":  # V7: equal requests in their order.
        expect["pgs"].reverse()
    return expect


@pytest.mark.parametrize("case", [case for case in CASES if case["id"] in MENDED], ids=lambda case: case["id"])
def test_recorded_case_with_mended_defects(case: dict[str, Any], use_ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_case(copy.deepcopy(case), use_ray, monkeypatch)
    assert result != case["expect"], "the case no longer shows a defect: take it off the list"
    if case.get("split_first"):  # V6: nothing to rewrite, the reference raises TypeError.
        assert case["expect"]["error"]["type"] == "TypeError"
        assert result["status"] == "ok"
        assert result["merged"]["world_size"] == sum(case["a"]["process_on_nodes"] + case["b"]["process_on_nodes"])
    else:
        assert result == mended(case)


def test_v1_splitting_before_the_groups_exist_uses_ip_order(use_ray: Any) -> None:
    use_ray(["10.0.0.1", "10.0.0.2"], ["10.0.0.2", "10.0.0.1"])
    parts = split_resource_pool(RayResourcePool([1, 1], name_prefix="p"), 1)
    assert [worker["pg_name"] for part in parts for worker in verl_worker_group(part)] == [
        "pverl_group_1_1:1",
        "pverl_group_1_1:0",
    ]


def test_v1_first_and_later_calls_give_the_same_sorted_list(use_ray: Any) -> None:
    use_ray(["10.0.0.1", "10.0.0.2"], ["10.0.0.2", "10.0.0.1"])
    pool = RayResourcePool([4, 4])
    first = pool.get_placement_groups()
    assert [group.node for group in first] == ["10.0.0.1", "10.0.0.2"]
    assert pool.get_placement_groups() is first is pool.pgs


def test_v2_unequal_nodes_every_rank_gets_its_own_bundle(use_ray: Any, caplog: pytest.LogCaptureFixture) -> None:
    use_ray(["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"])
    layout = worker_layout(RayResourcePool([1, 2]))
    assert [(slot.pg_idx, slot.bundle) for slot in layout] == [(0, 0), (1, 0), (1, 1)]
    assert [slot.local_world_size for slot in layout] == [1, 2, 2]
    assert {slot.world_size for slot in layout} == {3}
    assert "unequal nodes [1, 2]" in caplog.text


def test_v2_sub_pools_of_unequal_nodes_stay_inside_the_groups(use_ray: Any) -> None:
    use_ray(["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"])
    parts = split_resource_pool(RayResourcePool([1, 2]), 1)
    assert [(slot.pg_idx, slot.bundle) for part in parts for slot in worker_layout(part)] == [(0, 0), (1, 0), (1, 1)]


@pytest.mark.parametrize("store", [[1, 2], [2, 1], [4, 8, 4], [0, 6], [3]])
def test_v2_even_pool_runs_completely_under_rayworkergroup(store: list[int], use_ray: Any) -> None:
    use_ray(["10.0.0.1"], ["10.0.0.1"] * 12)
    even = even_resource_pool(RayResourcePool(store, name_prefix="p", detached=True, accelerator_type="H100"))
    workers = verl_worker_group(even)
    assert len(workers) == sum(store) == even.world_size
    assert len({(worker["pg_name"], worker["bundle"]) for worker in workers}) == sum(store)
    assert (even.detached, even.accelerator_type, even.name_prefix) == (True, "H100", "p")


def test_v2_even_pool_is_refused_once_the_groups_exist(use_ray: Any) -> None:
    use_ray(["10.0.0.1"], ["10.0.0.1"])
    pool = RayResourcePool([1])
    pool.get_placement_groups()
    with pytest.raises(ValueError, match="exist already"):
        even_resource_pool(pool)


def test_v3_the_counts_follow_the_groups_and_the_callers_list_stays(use_ray: Any) -> None:
    use_ray(["10.0.0.1", "10.0.0.2"], ["10.0.0.2", "10.0.0.1"])
    spec = [1, 2]
    pool = RayResourcePool(spec)
    groups = pool.get_placement_groups()
    assert pool.store == [2, 1] == [group.bundle_count for group in groups]
    assert spec == [1, 2]


def manager(spec: dict[str, list[int]]) -> ResourcePoolManager:
    return ResourcePoolManager(resource_pool_spec=spec, mapping={})


def test_v4_a_group_that_no_node_holds_is_refused(use_ray: Any) -> None:
    use_ray(available={"a": {"GPU": 1.0}, "b": {"GPU": 1.0}})
    asked = manager({"p": [2]})
    with pytest.raises(ValueError, match=r"\{'p': \[2\]\} do not fit.*\{'a': 1.0, 'b': 1.0\}"):
        asked.create_resource_pool()
    assert "p" in asked.resource_pool_dict


@pytest.mark.parametrize(
    ("spec", "free", "fits"),
    [
        ([4, 4, 4], [8, 4], True),
        ([6, 6], [8, 4], False),  # the sum fits, the nodes do not
        ([3, 3, 2, 2, 2], [6, 6], True),  # best fit alone fails here: 3 + 3 and 2 + 2 + 2
        ([5, 5, 5], [8, 8], False),
        ([], [], True),
        ([0], [], True),
    ],
)
def test_v4_packing_is_exact(spec: list[int], free: list[int], fits: bool, use_ray: Any) -> None:
    use_ray(available={str(node): {"GPU": float(count)} for node, count in enumerate(free)})
    try:
        manager({"p": spec}).create_resource_pool()
        fitted = True
    except ValueError:
        fitted = False
    assert fitted is fits


def test_v4_large_equal_cluster_is_checked_quickly(use_ray: Any) -> None:
    use_ray(available={str(node): {"GPU": 8.0} for node in range(1000)})
    manager({"p": [8] * 1000}).create_resource_pool()
    with pytest.raises(ValueError, match="do not fit"):
        manager({"p": [5] * 1001}).create_resource_pool()


def test_v5_a_gpu_entry_of_zero_does_not_hide_npus(use_ray: Any) -> None:
    use_ray(available={"a": {"GPU": 0, "NPU": 8}})
    manager({"p": [8]}).create_resource_pool()


@pytest.mark.parametrize("make", [lambda pool: pool, lambda pool: split_resource_pool(pool, 1)[0]])
def test_v5_groups_ask_for_what_the_cluster_has(make: Any, use_ray: Any) -> None:
    fake = use_ray(["n"], ["n"], {"n": {"GPU": 0, "NPU": 8}})
    make(RayResourcePool([2])).get_placement_groups()
    assert fake.created[0].bundle_specs == [{"CPU": 10, "NPU": 1}] * 2


def test_v5_extracting_and_merging_ask_for_what_the_cluster_has(use_ray: Any) -> None:
    fake = use_ray(["n"], ["n"] * 3, {"n": {"NPU": 8}})
    extract_pg_from_exist({"a": RayResourcePool([1])}, ["a"], RayResourcePool([1]))
    merge_resource_pool(RayResourcePool([1]), RayResourcePool([1]))
    assert [group.bundle_specs for group in fake.created] == [[{"CPU": 10, "NPU": 1}]] * 3


def test_v5_an_explicit_device_wins_and_verl_is_asked_first(use_ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use_ray(["n"], ["n"] * 3, {"n": {"NPU": 8}})
    RayResourcePool([1]).get_placement_groups(device_name="cuda")
    device = types.SimpleNamespace(get_device_name=lambda: "cuda")
    monkeypatch.setitem(sys.modules, "verl.utils.device", device)
    RayResourcePool([1]).get_placement_groups()
    device.get_device_name = lambda: "cpu"  # says only that the driver's node has no accelerator
    RayResourcePool([1]).get_placement_groups()
    assert [list(group.bundle_specs[0])[1] for group in fake.created] == ["GPU", "GPU", "NPU"]


def test_v6_splitting_keeps_detached_and_accelerator_type(use_ray: Any) -> None:
    use_ray(["n"], ["n"])
    pool = RayResourcePool([1], detached=True, accelerator_type="H100")
    for part in split_resource_pool(split_resource_pool(pool, 1)[0], 1):
        assert (part.detached, part.accelerator_type) == (True, "H100")


def test_v6_a_part_tells_its_own_local_ranks(use_ray: Any) -> None:
    use_ray(["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"])
    first, second = split_resource_pool(RayResourcePool([4, 4]), [3, 5])
    assert first.subgroup_local_rank_list() == [0, 1, 2]
    assert first.subgroup_local_world_size_list() == [3, 3, 3]
    assert second.subgroup_local_rank_list() == [0, 0, 1, 2, 3]
    assert second.subgroup_local_world_size_list() == [1, 4, 4, 4, 4]


def test_v6_merging_keeps_a_common_accelerator_type(use_ray: Any) -> None:
    use_ray(["n"], ["n"] * 4)
    same = merge_resource_pool(RayResourcePool([1], accelerator_type="A"), RayResourcePool([1], accelerator_type="A"))
    other = merge_resource_pool(RayResourcePool([1], accelerator_type="A"), RayResourcePool([1]))
    assert (same.accelerator_type, other.accelerator_type) == ("A", None)


def test_v6_neighbouring_parts_merge_into_a_part(use_ray: Any) -> None:
    use_ray(["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"])
    pool = RayResourcePool([4, 4], name_prefix="p")
    first, second, third = split_resource_pool(pool, [2, 4, 2])
    merged = merge_resource_pool(first, second)
    assert isinstance(merged, SubRayResourcePool)
    assert (merged.start_bundle_index, merged.world_size, merged.pgs) == (0, 6, pool.pgs)
    with pytest.raises(ValueError, match="holds 2 of the 4 bundles of group 0"):
        merge_resource_pool(first, third)


def test_v6_parts_of_whole_groups_merge_into_a_pool(use_ray: Any) -> None:
    use_ray([f"10.0.0.{n}" for n in range(1, 5)], [f"10.0.0.{n}" for n in range(1, 5)])
    a, b = RayResourcePool([2, 2], name_prefix="a"), RayResourcePool([2, 2], name_prefix="b")
    merged = merge_resource_pool(split_resource_pool(a, 2)[1], split_resource_pool(b, 2)[0])
    assert type(merged) is RayResourcePool
    assert names(merged.get_placement_groups()) == ["averl_group_2_2:1", "bverl_group_2_2:0"]
    assert [worker["bundle"] for worker in verl_worker_group(merged)] == [0, 1, 0, 1]


def test_v7_equal_requests_are_served_in_order(use_ray: Any) -> None:
    use_ray(["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"])
    found = extract_pg_from_exist({"a": RayResourcePool([1, 1], name_prefix="a")}, ["a"], RayResourcePool([1, 1]))
    assert names(found) == ["averl_group_1_1:0", "averl_group_1_1:1"]


def test_v7_one_group_serves_two_requests(use_ray: Any) -> None:
    use_ray(["n"], ["n"])
    sources = {"a": RayResourcePool([2], name_prefix="a")}
    found = extract_bundles_from_exist(sources, ["a"], RayResourcePool([1, 1]))
    assert [(group.name, first) for group, first in found] == [("averl_group_2:0", 0), ("averl_group_2:0", 1)]
    with pytest.raises(ValueError, match=r"requests of \[1, 2\] bundles in groups of \[2\]"):
        extract_bundles_from_exist(sources, ["a"], RayResourcePool([1, 2]))


def test_v8_ips_are_read_as_numbers(use_ray: Any) -> None:
    order = ["9.0.0.1", "10.0.0.9", "10.0.0.10", "fe80::9", "fe80::10", "node7", "node66"]
    use_ray(order, order[::-1])
    assert [group.node for group in RayResourcePool([1] * len(order)).get_placement_groups()] == order


def test_rayworkergroup_recognises_sub_pools_by_verls_class(use_ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use_ray(["n"], ["n"])
    part = split_resource_pool(RayResourcePool([2]), 1)[1]
    theirs = type("SubRayResourcePool", (), {})
    monkeypatch.setitem(sys.modules, "verl.single_controller.ray.base", types.SimpleNamespace(SubRayResourcePool=theirs))
    assert isinstance(part, theirs)
    assert isinstance(part, SubRayResourcePool)
    assert not isinstance(RayResourcePool([2]), theirs)
    for again in (copy.deepcopy(part), copy.copy(part)):
        assert type(again) is SubRayResourcePool
        assert again.start_bundle_index == 1
    part.pgs = []
    assert pickle.loads(pickle.dumps(part)).subgroup_world_size == 1


def test_ray_is_reached_through_its_private_table_where_the_public_one_is_missing(use_ray: Any) -> None:
    fake = use_ray(["n"], ["n"])
    fake.util = types.SimpleNamespace()
    fake._private.state.state = types.SimpleNamespace(placement_group_table=lambda number: {"bundles_to_node_id": {0: "n"}})
    assert len(RayResourcePool([1]).get_placement_groups()) == 1


def test_signatures_are_verls() -> None:
    def of(function: Any) -> list[str]:
        return list(inspect.signature(function).parameters)

    assert of(RayResourcePool) == [
        "process_on_nodes",
        "use_gpu",
        "name_prefix",
        "max_colocate_count",
        "detached",
        "accelerator_type",
    ]
    assert of(SubRayResourcePool)[:3] == ["placement_groups", "start_bundle_index", "subgroup_world_size"]
    assert of(RayResourcePool.get_placement_groups) == ["self", "strategy", "name", "device_name"]
    assert of(ResourcePoolManager)[:3] == ["resource_pool_spec", "mapping", "resource_pool_dict"]
    assert len(RayResourcePool().name_prefix) == 6
    assert RayResourcePool().name_prefix != RayResourcePool().name_prefix


def test_packing_finds_what_a_full_search_finds() -> None:
    import itertools

    for sizes in itertools.combinations_with_replacement(range(1, 5), 4):
        for capacities in ([4, 4, 4], [3, 5], [7, 2], [6, 6]):
            exists = any(
                all(
                    sum(size for size, b in zip(sizes, choice, strict=True) if b == bin_) <= capacity
                    for bin_, capacity in enumerate(capacities)
                )
                for choice in itertools.product(range(len(capacities)), repeat=len(sizes))
            )
            placed = pack(sizes, capacities)
            assert (placed is not None) is exists
            for bin_, capacity in enumerate(capacities):
                assert sum(size for size, b in zip(sizes, placed or [], strict=False) if b == bin_) <= capacity


def test_importing_needs_neither_ray_nor_ortools() -> None:
    code = "import sys, placewright.compat.verl; sys.exit(bool({'ray', 'ortools', 'verl'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0
