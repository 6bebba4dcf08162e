"""From name to request: what was checked is what is connected to, even when the name server changes its mind."""

import asyncio
from ipaddress import ip_network

from rig import Rig, with_rig
from rough_server import rough_server

from lycosa.mapping.guard import AddressGuard
from lycosa.mapping.mapper import Mapped, Mapper
from lycosa.records import Failure, Resolved


class FlippingResolver:
    """A good address for the first to ask, a bad one ever after."""

    def __init__(self) -> None:
        self.asked = 0

    async def resolve(self, name: str) -> Resolved:
        self.asked += 1
        return Resolved(name, ("127.0.0.1",) if self.asked == 1 else ("127.0.0.2",), 0.0)

    def flush(self) -> None:
        pass

    async def close(self) -> None:
        pass


def test_request_goes_to_the_address_that_was_checked_and_never_to_a_later_answer() -> None:
    async def work(rig: Rig) -> None:
        delivered: asyncio.Queue[list[Mapped]] = asyncio.Queue()
        guard = AddressGuard([ip_network("127.0.0.1/32")])
        resolver = FlippingResolver()
        mapper = Mapper(resolver, guard, delivered.put_nowait, now=asyncio.get_running_loop().time)

        async with rough_server(host="127.0.0.2") as inner:
            mapper.want("flip.example")
            (mapped,) = await delivered.get()
            await resolver.resolve("flip.example")  # the name server has changed its mind by now
            first = await rig.get("/", host="flip.example", address=mapped.address)
            again = await rig.get("/", host="flip.example", address=mapped.address)
            mapper.forget("flip.example")
            mapper.want("flip.example")
            (remapped,) = await delivered.get()

            assert (first.status, again.status) == (200, 200)
            assert len(rig.server.heads) == 2
            assert inner.lines == 0
            assert (remapped.failure, remapped.address) == (Failure.ADDRESS_REFUSED, "")
        await mapper.close()

    with_rig(work)
