"""The calls in flight: slots, cancellation and drain."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import TypeVar

import grpc

from .failures import CallEnded, CallFailure

T = TypeVar("T")

# The gateway reuses a slot as soon as it sees the end of a call, which may be before the worker does.
SLOT_WAIT_S = 1.0
# The gateway waits 100 ms for the reply to a Cancel.
CANCEL_WAIT_S = 0.05
_END = object()
_SHUTTING_DOWN = "This audio worker is shutting down."


class Call:
    """One call in flight. Its computations run in threads, so the event loop can always answer Health."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._ended: asyncio.Future[CallEnded] = asyncio.get_running_loop().create_future()
        self._computations: set[asyncio.Future[None]] = set()

    def end(self, failure: CallEnded) -> None:
        """Ends the call with the failure. A computation stops at its next result."""
        if not self._ended.done():
            self._ended.set_result(failure)

    async def stopped(self, timeout_s: float) -> bool:
        """Waits until no thread computes for this call. False if the time was too short."""
        if self._computations:
            await asyncio.wait(set(self._computations), timeout=timeout_s)
        return not self._computations

    async def each(self, items: AsyncIterator[T]) -> AsyncIterator[T]:
        """The items, until the call is ended. @raises CallEnded that of `end`"""
        while (item := await self._unless_ended(anext(items, _END))) is not _END:
            yield item

    async def compute(self, work: Callable[[threading.Event], Iterator[T]]) -> AsyncIterator[T]:
        """
        Runs the iterator in a thread and yields its items as they come. The event is set when they are no longer
        wanted; the iterator is then left at its next item. @raises CallEnded that of `end`
        """
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[object] = asyncio.Queue()
        stop = threading.Event()

        def run() -> None:
            for item in work(stop):
                if stop.is_set():
                    return
                loop.call_soon_threadsafe(items.put_nowait, item)

        computation = loop.run_in_executor(self._executor, run)
        self._computations.add(computation)
        computation.add_done_callback(self._computations.discard)
        computation.add_done_callback(lambda _: items.put_nowait(_END))
        try:
            while (item := await self._unless_ended(items.get())) is not _END:
                yield item
            await computation
        finally:
            stop.set()
            computation.add_done_callback(_take_exception)

    async def _unless_ended(self, awaitable: Awaitable[T]) -> T:
        task = asyncio.ensure_future(awaitable)
        try:
            await asyncio.wait({task, self._ended}, return_when=asyncio.FIRST_COMPLETED)
            if self._ended.done():
                raise self._ended.result()
            return task.result()
        finally:
            task.cancel()


class CallRegistry:
    """Admits calls up to a number, and finds them by the id that a Cancel names."""

    def __init__(self, limit: int, executor: Executor) -> None:
        self.limit = limit
        self._executor = executor
        self._free = asyncio.Semaphore(limit)
        self._calls: dict[Call, str] = {}
        self._is_draining = False
        self._drained = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """Calls that have not ended."""
        return len(self._calls)

    @asynccontextmanager
    async def enter(self, call_id: str) -> AsyncIterator[Call]:
        """
        A call from its first message to its end. Several calls may have the same id.
        @raises CallFailure UNAVAILABLE while the worker drains, RESOURCE_EXHAUSTED if all slots are taken
        """
        self._check_draining()
        await self._take_slot()
        call = Call(self._executor)
        self._calls[call] = call_id
        try:
            self._check_draining()
            yield call
        finally:
            del self._calls[call]
            self._free.release()
            self._check_drained()

    async def cancel(self, call_id: str) -> tuple[bool, bool]:
        """Cancels all calls with the id. Returns whether there was one, and whether all of them have stopped."""
        found = [call for call, its_id in self._calls.items() if its_id == call_id and call_id]
        for call in found:
            call.end(CallEnded(grpc.StatusCode.CANCELLED, "The call was cancelled."))
        stopped = await asyncio.gather(*(call.stopped(CANCEL_WAIT_S) for call in found))
        return bool(found), bool(found) and all(stopped)

    async def drain(self) -> None:
        """Refuses new calls and waits for the end of the others."""
        self._is_draining = True
        self._check_drained()
        await self._drained.wait()

    def end_all(self) -> None:
        """Ends the calls that run as if the worker were gone, so that the gateway takes them to another one."""
        for call in self._calls:
            call.end(CallEnded(grpc.StatusCode.UNAVAILABLE, _SHUTTING_DOWN))

    async def _take_slot(self) -> None:
        try:
            await asyncio.wait_for(self._free.acquire(), SLOT_WAIT_S)
        except TimeoutError:
            message = f"All {self.limit} slots of this audio worker are taken."
            raise CallFailure(grpc.StatusCode.RESOURCE_EXHAUSTED, message) from None

    def _check_draining(self) -> None:
        if self._is_draining:
            raise CallFailure(grpc.StatusCode.UNAVAILABLE, _SHUTTING_DOWN)

    def _check_drained(self) -> None:
        if self._is_draining and not self._calls:
            self._drained.set()


def _take_exception(computation: asyncio.Future[None]) -> None:
    """Without this, asyncio logs the failure of a computation that no call waits for any more."""
    if not computation.cancelled():
        computation.exception()
