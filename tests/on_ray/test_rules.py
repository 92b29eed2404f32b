"""What needs no cluster: bundles, matching, ports, domains; and that importing brings no Ray along."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planhelp import make_plan, one_each

from placewright.apply import rayapi
from placewright.apply.bundles import Bundle, lay_out
from placewright.apply.exact import match_bundles
from placewright.apply.groups import MadeGroup, check_pinnable
from placewright.apply.match import match_nodes
from placewright.apply.ports import port_limit, port_windows
from placewright.apply.probe import Found, _found
from placewright.apply.view import LiveNode
from placewright.discover import SOURCES
from placewright.discover.source import choose_domains, label_source
from placewright_models.cluster import Node
from placewright_models.errors import PlanMismatch
from placewright_models.quantities import UNITS


@pytest.mark.parametrize("module", ["placewright.apply", "placewright.discover"])
def test_importing_brings_neither_ray_nor_a_solver(module: str) -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; import {module}; print([m for m in ('ray', 'ortools') if m in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_the_package_can_be_called() -> None:
    import placewright.apply as package

    with pytest.raises(ValueError, match="layout 'rack'"):
        package(make_plan({"n0": 1}, {"train": one_each("n0", [0])}), layout="rack")  # type: ignore[operator]


class TestBundles:
    def test_one_gpu_with_what_runs_there(self) -> None:
        workers = {"train": one_each("n0", [0, 1]), "env": [("n0", [1])] * 3, "buffer": [("n0", [])]}
        plan = make_plan(
            {"n0": 2}, workers, train={"cpus": 2}, env={"gpus": "0.1", "cpus": "0.5"}, buffer={"cpus": 1, "memory": 7}
        )
        (group,) = lay_out(plan).groups
        assert [(bundle.gpus, bundle.cpu_units, bundle.memory) for bundle in group.bundles] == [
            ((0,), 20_000, 0),
            ((1,), 35_000, 0),
            ((), 10_000, 7),
        ]

    def test_ascending_by_id_within_a_node_in_topological_order(self) -> None:
        nodes = [Node("node10", 2, topo_rank=2), Node("node9", 2, topo_rank=3), Node("z", 2, topo_rank=1)]
        workers = {"train": one_each("node9", [1, 0]) + one_each("node10", [1]) + one_each("z", [0])}
        (group,) = lay_out(make_plan(nodes, workers)).groups
        assert [(bundle.node_id, bundle.gpus) for bundle in group.bundles] == [
            ("z", (0,)),
            ("node10", (1,)),
            ("node9", (0,)),
            ("node9", (1,)),
        ]

    def test_groups_that_meet_on_a_gpu_are_one(self) -> None:
        workers = {"a": one_each("n0", [0]), "b": one_each("n0", [0, 1]), "c": one_each("n0", [1]), "d": one_each("n0", [2])}
        assert sorted(group.name for group in lay_out(make_plan({"n0": 4}, workers), "component").groups) == ["a+b+c", "d"]

    def test_shares_never_exceed_a_gpu(self) -> None:
        workers = {"a": one_each("n0", [0]), "b": one_each("n0", [0]), "c": one_each("n0", [0])}
        # FC-18 c: 0.33 + 0.56 + 0.11 is exactly one.
        shares = {"a": {"gpu_share": "0.33"}, "b": {"gpu_share": "0.56"}, "c": {"gpu_share": "0.11"}}
        seats = lay_out(make_plan({"n0": 1}, workers, **shares)).seats
        assert sum(seats[name][0].parts[0].gpu_units for name in workers) == UNITS
        # FC-18 b: 1.0 and 0.01.
        over = {"a": {"gpu_share": "1.0"}, "b": {"gpu_share": "0.01"}, "c": {"gpu_share": "0.01"}}
        with pytest.raises(PlanMismatch, match=r"node n0 GPU 0: the shares of a 0, b 0, c 0 come to 1\.02"):
            lay_out(make_plan({"n0": 1}, workers, **over))
        with pytest.raises(PlanMismatch, match="leave nothing for b 0"):
            lay_out(make_plan({"n0": 1}, {"a": one_each("n0", [0]), "b": one_each("n0", [0])}, a={"gpu_share": 1}))
        thirds = lay_out(make_plan({"n0": 1}, workers)).seats
        assert [thirds[name][0].parts[0].gpu_units for name in workers] == [3333, 3333, 3333]

    @given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(0, 3))
    def test_every_gpu_and_cpu_is_in_one_bundle(self, widths: list[int], cpus: int) -> None:
        placed, start = [], 0
        for width in widths:
            placed.append(("n0", list(range(start, start + width))))
            start += width
        workers: dict[str, Any] = {f"c{index}": [one] for index, one in enumerate(placed)}
        for kind in ("auto", "gpu"):
            layout = lay_out(make_plan({"n0": 20}, workers, **{name: {"cpus": cpus} for name in workers}), "component", kind)
            gpus = [gpu for group in layout.groups for bundle in group.bundles for gpu in bundle.gpus]
            assert sorted(gpus) == list(range(start))
            assert sum(bundle.cpu_units for group in layout.groups for bundle in group.bundles) == cpus * UNITS * len(widths)


class TestMatchingBundles:
    def test_interleaved_nodes(self) -> None:
        """FC-07: the bundle order that Ray gave on three nodes, and the order by node and GPU that is right."""
        given_nodes = [2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 0, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0]
        right = [12, 17, 18, 19, 20, 21, 22, 23, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 10, 11, 13, 14, 15, 16]
        count = [0, 0, 0]
        wanted, answers = [], []
        for node in given_nodes:
            wanted.append(Bundle(f"n{node}", (count[node],), 0, 0, ()))
            answers.append(Found(f"ray{node}", (count[node],)))
            count[node] += 1
        index = match_bundles(wanted, answers)
        assert index is not None
        order = sorted(range(24), key=lambda bundle: (wanted[bundle].node_id, wanted[bundle].gpus))
        assert [index[bundle] for bundle in order] == right

    def test_another_order_of_the_same_ids(self) -> None:
        wanted = [Bundle("n0", (gpu,), 0, 0, ()) for gpu in range(3)]
        answers = [Found("r", (gpu,)) for gpu in (2, 0, 1)]
        assert match_bundles(wanted, answers) == (1, 2, 0)

    def test_other_ids(self) -> None:
        wanted = [Bundle("n0", (gpu,), 0, 0, ()) for gpu in (4, 5)]
        answers = [Found("r", (gpu,)) for gpu in (1, 0)]
        assert match_bundles(wanted, answers) is None
        assert match_bundles(wanted, answers, exact=False) == (1, 0)

    def test_bundles_that_reserve_different_things_do_not_stand_in(self) -> None:
        wanted = [Bundle("n0", (0,), 10_000, 0, ()), Bundle("n0", (1,), 20_000, 0, ())]
        assert match_bundles(wanted, [Found("r", (1,)), Found("r", (0,))]) is None


def live(name: str, host: str, ip: str, **more: Any) -> LiveNode:
    return LiveNode(f"id-{name}", ip, host, name, **more)


class TestReadingIds:
    group = MadeGroup("g", None, (Bundle("n0", (0,), 0, 0, ()),), {})

    @staticmethod
    def answer(*ids: str) -> dict[str, Any]:
        return {"node": "r", "ids": list(ids), "uuids": {}, "floor": None}

    def test_text_in_any_order(self) -> None:
        assert _found(self.group, 0, self.answer("10", "2"), {}).gpus == (2, 10)

    def test_uuids_where_the_node_tells_their_numbers(self) -> None:
        uuids = {"r": {0: "GPU-a", 3: "GPU-b"}}
        assert _found(self.group, 0, self.answer("GPU-b"), uuids).gpus == (3,)
        with pytest.raises(PlanMismatch, match="node n0 names its GPUs 'GPU-c', not by number"):
            _found(self.group, 0, self.answer("GPU-c"), uuids)


class TestMatchingNodes:
    nodes = (live("a", "host1", "10.0.0.1"), live("10.0.0.2", "host2", "10.0.0.2"), live("c", "host1", "10.0.0.3"))

    @pytest.mark.parametrize(
        ("node", "ray_id"),
        [
            (Node("host2"), "id-10.0.0.2"),
            (Node("a"), "id-a"),
            (Node("10.0.0.3"), "id-c"),
            (Node("old-name", ip="10.0.0.2"), "id-10.0.0.2"),
            (Node("x", node_name="c"), "id-c"),
            (Node("host1", ip="10.0.0.3"), "id-c"),
            # The host name comes first, whatever ip was recorded; a stored Ray id counts for nothing.
            (Node("host2", ip="10.0.0.1", ray_node_id="id-a"), "id-10.0.0.2"),
        ],
    )
    def test_by_host_name_then_name_then_ip(self, node: Node, ray_id: str) -> None:
        assert match_nodes([node], self.nodes)[node.id].ray_id == ray_id

    def test_none_or_two(self) -> None:
        with pytest.raises(PlanMismatch, match="host1 could be any of 2 live nodes"):
            match_nodes([Node("host1")], self.nodes)
        with pytest.raises(PlanMismatch, match="node x is gone"):
            match_nodes([Node("x", ray_node_id="id-a")], self.nodes)
        with pytest.raises(PlanMismatch, match="node d is gone: it is dead in Ray: lost"):
            match_nodes([Node("d")], [*self.nodes, live("d", "d", "10.0.0.9", alive=False, death="lost")])

    def test_pins_by_ip_need_ips_of_their_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("ray")
        monkeypatch.setattr(rayapi, "has_label_selector", lambda: False)
        twins = [live("a", "a", "10.0.0.1"), live("b", "b", "10.0.0.1")]
        with pytest.raises(PlanMismatch, match=r"node a shares its ip 10\.0\.0\.1 with b"):
            check_pinnable({"a": twins[0]}, twins)
        check_pinnable({"a": twins[0]}, [twins[0], self.nodes[1]])


class TestPorts:
    """FC-32: windows follow from node-local GPUs."""

    @staticmethod
    def starts(nodes: dict[str, int], workers: Any, **options: Any) -> list[tuple[str, int]]:
        plan = make_plan(nodes, workers)
        windows = port_windows(
            plan,
            "rollout",
            dict.fromkeys(nodes, ""),
            **{"base": 7000, "per_gpu": 100, "per_worker": None, "limit": 9000, **options},
        )
        return [(window.node_id, window.start) for window in windows]

    def test_engines_of_two_gpus(self) -> None:
        nodes = {f"n{index}": 4 for index in range(4)}
        workers = {"rollout": [(node, ids) for node in nodes for ids in ([0, 1], [2, 3])]}
        assert self.starts(nodes, workers, per_worker=100) == [(node, port) for node in nodes for port in (7000, 7100)]
        assert self.starts(nodes, workers) == [(node, port) for node in nodes for port in (7000, 7200)]

    def test_engines_wider_than_a_node(self) -> None:
        nodes = {f"n{index}": 4 for index in range(4)}
        starts = self.starts(nodes, {"rollout": [(node, [gpu]) for node in nodes for gpu in range(4)]}, per_worker=100)
        assert [starts[lead] for lead in (0, 8)] == [("n0", 7000), ("n2", 7000)]
        assert starts[:4] == [("n0", 7000), ("n0", 7100), ("n0", 7200), ("n0", 7300)]

    def test_all_windows_of_a_node_are_apart(self) -> None:
        gpus = one_each("n0", [2, 3])
        workers = {"train": one_each("n0", [0]), "rollout": [("n0", [2, 3])], "ref": gpus, "env": [("n0", [])] * 3}
        plan = make_plan({"n0": 4}, workers)
        windows = [
            (window.start, window.end)
            for name in workers
            for window in port_windows(plan, name, {"n0": ""}, base=20_000, per_gpu=100, per_worker=None, limit=32_000)
        ]
        windows.sort()
        assert all(first[1] < second[0] for first, second in pairwise(windows))

    def test_the_limit(self) -> None:
        with pytest.raises(ValueError, match=r"rollout 0 on n0 would get ports 7700-7799, but only ports below 7750"):
            self.starts({"n0": 8}, {"rollout": one_each("n0", [7])}, limit=7750)
        assert port_limit([32_768]) == 32_000
        assert port_limit([25_000, 32_768]) == 25_000
        assert port_limit([1024]) == 32_000


class TestDomains:
    @staticmethod
    def node(name: str, gpus: int = 4, resources: dict[str, float] | None = None, **labels: str) -> LiveNode:
        texts = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
        return live(name, name, name, total={"GPU": gpus, **(resources or {})}, labels=texts)

    def test_void_ids_are_unknown(self) -> None:
        source = label_source("rack")
        values = {"a": "r1", "b": "", "c": "0", "d": "N/A", "e": "00000000-0000-0000-0000-000000000000"}
        nodes = {name: live(name, name, name, total={"GPU": 4}, labels={"rack": value}) for name, value in values.items()}
        domains, warnings = choose_domains(nodes, SOURCES, source)
        assert domains == {"a": "r1"}
        assert warnings[0] == "label rack names no domain (empty, zero or N/A) for b, c, d, e: unknown"

    def test_unset_fabric(self) -> None:
        nodes = {
            "a": live(
                "a", "a", "a", total={"GPU": 4}, labels={"nvidia.com/gpu.clique": "00000000-0000-0000-0000-000000000000.32766"}
            ),
            "b": live(
                "b", "b", "b", total={"GPU": 4}, labels={"nvidia.com/gpu.clique": "7b968a6d-c8aa-45e1-9e07-e1e51be99c31.1"}
            ),
        }
        assert choose_domains(nodes, SOURCES)[0] == {"b": "7b968a6d-c8aa-45e1-9e07-e1e51be99c31.1"}

    def test_two_sources_are_never_mixed(self) -> None:
        nodes = {
            "a": live("a", "a", "a", total={"GPU": 4, "nvlink_domain_0": 1.0}),
            "b": live("b", "b", "b", total={"GPU": 4, "nvlink_domain_r1": 1.0}),
            "c": live("c", "c", "c", total={"GPU": 4}, labels={"ray.io/gpu-domain": "x"}),
            "d": live("d", "d", "d", total={"GPU": 4}, labels={"ray.io/gpu-domain": "x"}),
        }
        domains, warnings = choose_domains(nodes, SOURCES)
        assert domains == {"c": "x", "d": "x"}
        assert any("resource nvlink_domain_<id> names domains too, for b" in text for text in warnings)

    def test_a_node_in_two_domains(self) -> None:
        nodes = {"a": live("a", "a", "a", total={"GPU": 4, "nvlink_domain_x": 1.0, "nvlink_domain_y": 1.0})}
        assert choose_domains(nodes, SOURCES)[0] == {}
