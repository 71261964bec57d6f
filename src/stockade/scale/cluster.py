"""Workers as actors of a Ray cluster, one for each share of its cores.

Actors that the cluster has no room for yet wait, and begin when a node joins. The nodes need Stockade and its extras
installed, and see models and data under the same names as the machine that writes.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from stockade.core.errors import OptionError, ResourceMissing
from stockade.core.trust import Trust, current_trust, with_trust
from stockade.scale.leases import Died, Failed, Found, Message, Ready, Work
from stockade.scale.local import finish_lease, limit_threads, portable

_DRAINED_AT_ONCE = 64
_SECONDS_TO_CONNECT = 10.0


class Actor:
    """A worker on a node: opens the work once, then finishes one lease after the other.

    Parameters
    ----------
    packed
        The work.
    trust
        Whose code may run.
    threads
        How many threads it computes on.
    """

    def __init__(self, packed: bytes, trust: Trust, threads: int) -> None:
        self._packed, self._trust, self._threads = packed, trust, threads
        self._run: Any = None

    def open(self) -> Message:
        """Load what the work needs."""
        try:
            with_trust(self._trust)
            limit_threads(self._threads)
            self._run = pickle.loads(self._packed).open()
        except Exception as error:
            return Failed(portable(error))
        return Ready()

    def finish(self, items: Sequence[Any]) -> Iterator[Message]:
        """Finish a lease, a message for each result."""
        try:
            with_trust(self._trust)
            yield from finish_lease(self._run, items)
        except Exception as error:
            yield Failed(portable(error))


class RayCarrier:
    """Starts workers on a Ray cluster.

    Parameters
    ----------
    address
        That of the cluster, such as `ray://head:10001`; `auto` finds the one that this machine belongs to.
    cores
        How many cores each worker takes.
    """

    def __init__(self, address: str, cores: int = 1) -> None:
        self._ray = import_ray()
        self._connected_here = not self._ray.is_initialized()
        if self._connected_here:
            try:
                _check_reachable(address)  # Ray itself would try for minutes
                self._ray.init(address=address, log_to_driver=False, logging_level="ERROR")
            except (OSError, RuntimeError, ValueError) as error:
                reason = str(error).strip().partition("\n")[0]
                raise OptionError(
                    f"There is no Ray cluster at {address} ({reason}). Start one with ray start --head, and name its "
                    "address, or auto on one of its machines."
                ) from None
        self._actor = self._ray.remote(num_cpus=cores, max_restarts=0)(Actor)
        self._threads = cores
        self._waiting: dict[int, tuple[Any, Any]] = {}
        """Of each worker: its actor, and the reference or stream that it answers on."""

    def start(self, worker: int, work: Work) -> None:
        actor = self._actor.remote(pickle.dumps(work), current_trust(), self._threads)
        self._waiting[worker] = actor, actor.open.remote()

    def lease(self, worker: int, items: Sequence[Any]) -> None:
        actor, _ = self._waiting[worker]
        self._waiting[worker] = actor, actor.finish.options(num_returns="streaming").remote(list(items))

    def messages(self, seconds: float) -> Iterable[tuple[int, Message]]:
        streams = {worker: stream for worker, (_, stream) in self._waiting.items() if stream is not None}
        if not streams:
            return
        ready, _ = self._ray.wait(list(streams.values()), num_returns=1, timeout=seconds)
        for worker, stream in streams.items():
            if any(stream is item for item in ready):
                yield from ((worker, message) for message in self._drained(worker, stream))

    def _drained(self, worker: int, stream: Any) -> Iterator[Message]:
        """What a worker has said already."""
        for _ in range(_DRAINED_AT_ONCE):
            message = self._next(worker, stream)
            yield message
            if not isinstance(message, Found) or not self._ray.wait([stream], num_returns=1, timeout=0)[0]:
                return

    def _next(self, worker: int, stream: Any) -> Message:
        actor, _ = self._waiting[worker]
        try:
            reference = next(stream) if hasattr(stream, "__next__") else stream
            message: Message = self._ray.get(reference)
        except (StopIteration, self._ray.exceptions.RayError) as error:
            del self._waiting[worker]
            return Died(f"its actor is gone ({str(error).strip().partition(chr(10))[0] or type(error).__name__})")
        if not isinstance(message, Found):
            self._waiting[worker] = actor, None
        return message

    def stop(self) -> None:
        for actor, _ in self._waiting.values():
            self._ray.kill(actor)
        self._waiting = {}
        if self._connected_here:
            self._ray.shutdown()


def _check_reachable(address: str) -> None:
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_CONNECT).close()


def import_ray() -> Any:
    """Ray, or a sentence that says how to get it."""
    try:
        import ray
    except ImportError:
        raise ResourceMissing(
            "Working on a Ray cluster needs the package ray, which is not installed. Run pip install 'stockade[ray]' "
            "here and on its nodes."
        ) from None
    return ray
