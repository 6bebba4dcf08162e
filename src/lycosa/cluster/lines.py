"""How an agent speaks to the others and to the coordinator; over Ray that is `cluster.ray_lines`, in tests a call."""

from typing import Protocol

from lycosa.cluster.cargo import Cargo
from lycosa.cluster.central import Centre
from lycosa.cluster.errands import Messengers
from lycosa.cluster.messages import Message, Reply
from lycosa.cluster.reports import Orders, Report


class Peers(Messengers, Protocol):
    """How an agent speaks to others."""

    async def tell(self, receiver: str, message: Message) -> Reply:
        """Hands a message over; ClusterError if that was not to be."""
        ...

    async def carry(self, receiver: str, cargo: Cargo) -> bool:
        """Hands rows over; True when they are on disk there, ClusterError if that was not to be."""
        ...


class Coordination(Centre, Protocol):
    """How an agent speaks to the coordinator."""

    async def beat(self, report: Report) -> Orders:
        """Reports; ClusterError if nobody answers."""
        ...
