"""The service AudioWorker: finds the part that serves a call, and keeps every failure within its call."""

import functools
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import grpc

from .calls import CallRegistry
from .encoding import FORMATS
from .engine import Engine
from .failures import CallFailure, invalid
from .recordings import Recordings
from .speech import Speaker
from .streams import Streams, check_first
from .stubs import messages, services
from .synthesis import MODEL as SPEECH_MODEL
from .synthesis import Synthesis

log = logging.getLogger(__name__)
Handler = Callable[["AudioWorker", Any, Any], AsyncIterator[Any]]


def _reporting_failures(handler: Handler) -> Handler:
    """Ends the call with the code of a `CallFailure`, or INTERNAL for anything else. The server goes on."""

    @functools.wraps(handler)
    async def handle(self: "AudioWorker", request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            async with aclosing(handler(self, request, context)) as events:
                async for event in events:
                    yield event
        except CallFailure as failure:
            await context.abort(failure.code, failure.message)
        except Exception:
            log.exception("A call failed.")
            await context.abort(grpc.StatusCode.INTERNAL, "The speech engine failed. The log of the worker says why.")

    return handle


@dataclass(frozen=True)
class Loaded:
    """What exists once the models are loaded."""

    engine: Engine
    speaker: Speaker
    model: str
    max_batch: int


class AudioWorker(services.AudioWorkerServicer):  # type: ignore[misc]
    """Until `start`, calls are refused with UNAVAILABLE."""

    def __init__(self, worker_id: str, slots: CallRegistry, streams: CallRegistry) -> None:
        self._worker_id = worker_id
        self._slots = slots
        self._live = streams
        self._loaded: Loaded | None = None
        self._is_draining = False

    def start(self, loaded: Loaded) -> None:
        """Begins to serve calls."""
        self._recordings = Recordings(loaded.engine, loaded.model)
        self._streams = Streams(loaded.engine, loaded.model)
        self._synthesis = Synthesis(loaded.speaker)
        self._loaded = loaded

    async def drain(self) -> None:
        """Refuses new calls, says so in Health, and waits for the end of the others."""
        self._is_draining = True
        await self._slots.drain()
        await self._live.drain()

    def end_calls(self) -> None:
        """Ends the calls that still run with UNAVAILABLE."""
        self._slots.end_all()
        self._live.end_all()

    @_reporting_failures
    async def TranscribeFile(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self._check_loaded()
        first = await anext(request, None)
        if first is None or first.WhichOneof("part") != "options":
            raise invalid("The first part of a recording must be its options.")
        async with self._slots.enter(first.options.request_id or _request_id(context)) as call:
            async with aclosing(self._recordings.transcribe_file(call, first.options, request)) as events:
                async for event in events:
                    yield event

    @_reporting_failures
    async def TranscribeBatch(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self._check_loaded()
        async with self._slots.enter(_request_id(context)) as call:
            async with aclosing(self._recordings.transcribe_batch(call, request)) as events:
                async for event in events:
                    yield event

    @_reporting_failures
    async def TranscribeStream(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self._check_loaded()
        first = await anext(request, messages.AudioFrame())
        check_first(first)
        async with self._live.enter(first.options.session_id) as call:
            async with aclosing(self._streams.transcribe(call, first, request)) as events:
                async for event in events:
                    yield event

    @_reporting_failures
    async def Synthesize(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self._check_loaded()
        async with self._slots.enter(request.request_id or _request_id(context)) as call:
            async with aclosing(self._synthesis.synthesize(call, request)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def Cancel(self, request: Any, context: Any) -> Any:
        registry, call_id = (self._live, request.session_id) if request.session_id else (self._slots, request.request_id)
        acknowledged, stopped = await registry.cancel(call_id)
        return messages.CancelReply(acknowledged=acknowledged, stopped=stopped)

    async def Health(self, request: Any, context: Any) -> Any:
        return messages.HealthReply(
            status=self._status(),
            worker_id=self._worker_id,
            engine="faster-whisper, espeak-ng",
            models=_models(self._loaded) if self._loaded else [],
            slots=self._slots.limit,
            in_flight=self._slots.in_flight,
            max_streams=self._live.limit,
            streams=self._live.in_flight,
        )

    def _status(self) -> int:
        reply = messages.HealthReply
        if self._is_draining:
            return int(reply.DRAINING)
        return int(reply.SERVING if self._loaded else reply.LOADING)

    def _check_loaded(self) -> None:
        if self._loaded is None:
            raise CallFailure(grpc.StatusCode.UNAVAILABLE, "The models are not loaded yet.")


def _request_id(context: Any) -> str:
    """The id in the metadata; Cancel names a batch by it."""
    values = [value for key, value in context.invocation_metadata() or () if key == "x-request-id"]
    return str(values[0]) if values else ""


def _models(loaded: Loaded) -> list[Any]:
    tasks = [messages.TRANSCRIBE, messages.TRANSLATE] if loaded.engine.is_multilingual else [messages.TRANSCRIBE]
    recognition = messages.Model(
        name=loaded.model,
        tasks=tasks,
        languages=loaded.engine.languages,
        segments=True,
        words=True,
        deltas=True,
        max_batch=loaded.max_batch,
        streaming=True,
        server_vad=True,
    )
    speech = messages.Model(
        name=SPEECH_MODEL, tasks=[messages.SPEAK], voices=loaded.speaker.voices, speech_formats=FORMATS
    )
    return [recognition, speech]
