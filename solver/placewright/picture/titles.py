"""What stands above the nodes of a domain, in every kind of picture. Modify this file to say it differently."""

from __future__ import annotations

from placewright.picture.scene import Domain, Scene, shortened


def domain_title(domain: Domain, scene: Scene) -> tuple[str, str]:
    """A domain's name (empty where there is none), and what more there is to say about it."""
    count = f"{domain.end - domain.start:,} node{'' if domain.end - domain.start == 1 else 's'}"
    where = f", {domain.above}" if domain.above else ""
    if domain.name is not None:
        return shortened(domain.name), f"{count}{where}"
    bare = all(not scene.content(node).gpus for node in scene.nodes[domain.start : domain.end])
    return "", f"{count} without GPU{where}" if bare else f"{count}, NVLink domain unknown{where}"
