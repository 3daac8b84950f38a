"""The RPC TranscribeStream."""

import math
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import numpy as np

from .calls import Call
from .engine import Engine, Recording, RecognitionOptions
from .failures import invalid, model_not_found
from .live_audio import LiveDecoder
from .stubs import messages
from .transcripts import word_messages
from .turns import SpeechPart, SpeechStarted, SpeechStopped, TurnDetector, TurnDone, TurnEvent, TurnSettings
from .voice_detector import VoiceDetector

DEFAULT_THRESHOLD = 0.5
DEFAULT_SILENCE_MS = 500
MAX_PREFIX_MS = 5_000
_EVENT = messages.TranscriptEvent


class Streams:
    """Transcribes live audio."""

    def __init__(self, engine: Engine, model: str) -> None:
        self._engine = engine
        self._model = model

    async def transcribe(self, call: Call, first: Any, frames: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """
        `first` is the frame with the options; `frames` are the others. Frames wait while a turn is recognized: gRPC
        then holds back the sender, so no audio is lost.
        """
        stream = _Stream(self._engine, self._model, first.options)
        async with aclosing(stream.events(call, first)) as events:
            async for event in events:
                yield event
        async with aclosing(call.each(frames)) as arriving:
            async for frame in arriving:
                if frame.HasField("options"):
                    stream.update(frame.options)
                async with aclosing(stream.events(call, frame)) as events:
                    async for event in events:
                        yield event
                if frame.last:
                    return


class _Stream:
    """One live stream."""

    def __init__(self, engine: Engine, model: str, options: Any) -> None:
        if options.model != model:
            raise model_not_found(options.model)
        self._engine = engine
        self._segments = 0
        self.update(options)
        self._decoder = LiveDecoder(options.encoding, options.sample_rate_hz)
        self._turns = TurnDetector(
            TurnSettings(
                detect_turns=options.server_vad,
                threshold=options.vad_threshold or DEFAULT_THRESHOLD,
                prefix_ms=min(options.prefix_ms, MAX_PREFIX_MS),
                silence_ms=options.silence_ms or DEFAULT_SILENCE_MS,
                start_ms=options.start_ms,
            ),
            VoiceDetector().probability,
        )

    def update(self, options: Any) -> None:
        """Later options of a stream change its language and prompt."""
        wanted = RecognitionOptions(options.language, options.prompt, want_words=options.want_words)
        self._engine.check(wanted)
        self._wanted = wanted

    async def events(self, call: Call, frame: Any) -> AsyncIterator[Any]:
        """What a frame leads to."""
        if not frame.audio and not frame.commit and not frame.last:
            return
        async with aclosing(call.compute(lambda stop: self._compute(frame, stop))) as computed:
            async for event in computed:
                yield event

    def _compute(self, frame: Any, stop: threading.Event) -> Iterator[Any]:
        for event in self._turn_events(frame):
            if stop.is_set():
                return
            if isinstance(event, SpeechPart):
                yield from self._recognize(event)
            else:
                yield self._message(event)

    def _turn_events(self, frame: Any) -> Iterator[TurnEvent]:
        yield from self._turns.add(self._decoder.decode(frame.audio))
        if frame.commit:
            yield from self._turns.commit()
        if frame.last:
            yield from self._turns.end()

    def _message(self, event: SpeechStarted | SpeechStopped | TurnDone) -> Any:
        match event:
            case SpeechStarted(start_ms):
                return _EVENT(kind=_EVENT.SPEECH_STARTED, segment_id=self._segments, start_ms=start_ms)
            case SpeechStopped(end_ms):
                return _EVENT(kind=_EVENT.SPEECH_STOPPED, segment_id=self._segments, end_ms=end_ms)
            case TurnDone(start_ms, end_ms):
                usage = messages.Usage(audio_seconds=(end_ms - start_ms) / 1000)
                times = {"start_ms": start_ms, "end_ms": end_ms}
                return _EVENT(kind=_EVENT.ITEM_DONE, segment_id=self._segments, usage=usage, **times)

    def _recognize(self, part: SpeechPart) -> Iterator[Any]:
        """One FINAL; none if no words were recognized."""
        audio = part.audio.astype(np.float32) / 32_768
        results = list(self._engine.recognize(audio, self._wanted))
        language = next(result.language for result in results if isinstance(result, Recording))
        segments = [result for result in results if not isinstance(result, Recording)]
        text = "".join(segment.text for segment in segments).strip()
        if not text:
            return
        yield _EVENT(
            kind=_EVENT.FINAL,
            segment_id=self._segments,
            text=text,
            start_ms=part.start_ms,
            end_ms=part.end_ms,
            confidence=math.exp(sum(segment.avg_logprob for segment in segments) / len(segments)),
            language=language,
            words=word_messages(segments, part.start_ms / 1000),
        )
        self._segments += 1


def check_first(frame: Any) -> None:
    """@raises CallFailure INVALID_ARGUMENT if the frame has no options"""
    if not frame.HasField("options"):
        raise invalid("The first frame of a stream must have options.")
