"""What people would use instead, listed once.

To add a peer, write its file and put it here.
"""

from __future__ import annotations

from benchmarks.peers.first_fit import FirstFit
from benchmarks.peers.kai import KaiBinpack
from benchmarks.peers.kueue import KueueBestFit, KueueLeastFree
from benchmarks.peers.nemo_rl import NemoRl
from benchmarks.peers.peer import CannotExpress, NothingFound, Peer, TooLarge
from benchmarks.peers.plain import Highs, PlainCpSat
from benchmarks.peers.reference import Reference
from benchmarks.peers.slurm import SlurmBlock

PEERS: tuple[Peer, ...] = (
    Reference(),
    FirstFit(),
    NemoRl(),
    SlurmBlock(),
    KueueBestFit(),
    KueueLeastFree(),
    KaiBinpack(),
    PlainCpSat(),
    Highs(),
)
PEER_BY_NAME: dict[str, Peer] = {peer.name: peer for peer in PEERS}

__all__ = ["PEERS", "PEER_BY_NAME", "CannotExpress", "NothingFound", "Peer", "TooLarge"]
