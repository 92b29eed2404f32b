"""What makes a detached plan findable: a small detached actor that keeps it under its name.

The actor runs on the head node (the record is worth as much as the cluster) with no CPU. Creating it claims the name, since
Ray allows one actor of a name in a namespace. Groups carry the name too, so ``release`` also finds what a driver left behind
that was killed half-way. Modify this file when drivers should agree on something new.
"""

from __future__ import annotations

import pickle
import re
import zlib
from typing import Any

from placewright.apply import rayapi
from placewright.apply.errors import DetachedNameError
from placewright.apply.view import live_nodes

NAMESPACE = "placewright"
"""Namespace of the records unless another is given."""
_TIMEOUT_S = 30.0
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


class Record:
    """Handle of the record of one detached plan."""

    def __init__(self, name: str, namespace: str, actor: Any) -> None:
        self.name = name
        self.namespace = namespace
        self._actor = actor

    @staticmethod
    def claim(name: str, namespace: str | None) -> Record:
        """Make the record and with it take the name.

        Raises:
            DetachedNameError: if the name is taken.
            ValueError: if the name has other characters than letters, digits, ``_``, ``.`` and ``-``.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a name for a detached plan: use letters, digits, '_', '.' and '-'")
        space = namespace or NAMESPACE
        options: dict[str, Any] = {"name": _actor_name(name), "namespace": space, "lifetime": "detached"}
        head = next((node for node in live_nodes() if node.alive and node.head), None)
        if head is not None:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(head.ray_id, soft=True)
        try:
            actor = _keeper().options(**options).remote()
            rayapi.ray_module().get(actor.get.remote(), timeout=_TIMEOUT_S)
        except ValueError as error:
            raise DetachedNameError(name, f"a plan is applied under the name {name} already; release it first") from error
        return Record(name, space, actor)

    @staticmethod
    def find(name: str, namespace: str | None) -> Record:
        """The record of a name.

        Raises:
            DetachedNameError: if nothing is applied under the name.
        """
        space = namespace or NAMESPACE
        try:
            actor = rayapi.ray_module().get_actor(_actor_name(name), namespace=space)
        except ValueError as error:
            raise DetachedNameError(name, f"no plan is applied under the name {name} in namespace {space}") from error
        return Record(name, space, actor)

    def store(self, content: Any) -> None:
        """Keep the applied plan."""
        text = zlib.compress(pickle.dumps(content))
        rayapi.ray_module().get(self._actor.put.remote(text), timeout=_TIMEOUT_S)

    def load(self) -> Any:
        """The applied plan.

        Raises:
            DetachedNameError: if the driver that applied it never finished.
        """
        text = rayapi.ray_module().get(self._actor.get.remote(), timeout=_TIMEOUT_S)
        if text is None:
            raise DetachedNameError(self.name, f"the plan {self.name} is not applied yet, or its driver was lost; release it")
        return pickle.loads(zlib.decompress(text))

    def agree(self, key: str, value: Any) -> Any:
        """The value that the first driver gave for this key."""
        return rayapi.ray_module().get(self._actor.agree.remote(key, value), timeout=_TIMEOUT_S)

    def drop(self) -> None:
        """Give up the record and its name."""
        ray = rayapi.ray_module()
        if ray.is_initialized():
            ray.kill(self._actor)


def group_prefix(name: str, namespace: str | None) -> str:
    """Start of the Ray names of all groups of a detached plan."""
    return f"placewright/{namespace or NAMESPACE}/{name}/"


def _actor_name(name: str) -> str:
    return f"placewright/{name}"


def _keeper() -> Any:
    """The actor class. Defined inside, so that Ray ships its code: the head node needs no placewright."""

    class Keeper:
        def __init__(self) -> None:
            self.text: bytes | None = None
            self.agreed: dict[str, Any] = {}

        def put(self, text: bytes) -> None:
            self.text = text

        def get(self) -> bytes | None:
            return self.text

        def agree(self, key: str, value: Any) -> Any:
            return self.agreed.setdefault(key, value)

    return rayapi.ray_module().remote(num_cpus=0, max_restarts=0)(Keeper)
