"""The RPC Synthesize."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

from .calls import Call
from .encoding import FORMATS, SpeechEncoder
from .failures import invalid, model_not_found
from .speech import DEFAULT_VOICE, Speaker
from .stubs import messages

MODEL = "espeak-ng"
PIECE_BYTES = 32 * 1024


class Synthesis:
    """Speaks texts."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    async def synthesize(self, call: Call, request: Any) -> AsyncIterator[Any]:
        """Chunks of audio as they are made. The last one has the usage, and perhaps no audio."""
        voice = self._checked(request)
        async with aclosing(call.compute(lambda stop: self._chunks(request, voice, stop))) as chunks:
            async for chunk in chunks:
                yield chunk

    def _chunks(self, request: Any, voice: str, stop: threading.Event) -> Iterator[Any]:
        encoder = SpeechEncoder(request.format or "mp3", self._speaker.rate_hz)
        spoken = self._speaker.speak(request.input, voice=voice, speed=request.speed or 1, stop=stop)
        for samples in spoken:
            yield from _pieces(encoder.add(samples))
        yield from _pieces(encoder.finish())
        yield messages.SpeechChunk(
            duration_s=encoder.duration_s, usage=messages.Usage(audio_seconds=encoder.duration_s)
        )

    def _checked(self, request: Any) -> str:
        """The voice to use."""
        if request.model != MODEL:
            raise model_not_found(request.model)
        if not request.input.strip():
            raise invalid("The input is empty.")
        if request.format and request.format not in FORMATS:
            raise invalid(f"The format {request.format!r} is not supported. Use one of {', '.join(FORMATS)}.")
        if request.speed and not 0.25 <= request.speed <= 4:
            raise invalid(f"The speed {request.speed:g} is not between 0.25 and 4.")
        voice: str = request.voice or DEFAULT_VOICE
        if voice not in self._speaker.voices:
            raise invalid(f"There is no voice {voice!r}. A voice is a language, such as en-us, en-gb, de or fr-fr.")
        return voice


def _pieces(audio: bytes) -> Iterator[Any]:
    for at in range(0, len(audio), PIECE_BYTES):
        yield messages.SpeechChunk(audio=audio[at : at + PIECE_BYTES])
