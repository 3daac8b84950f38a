"""Encodes speech while it is made."""

import io
import struct

import av

from .resampling import Resampler, Samples, frame_of

# The rate of OpenAI's `pcm`, used for all formats.
SPEECH_RATE_HZ = 24_000
# FFmpeg's muxer and encoder of each format. `write_xing` would need to go back to the beginning of the file.
CONTAINERS: dict[str, tuple[str, str, dict[str, str]]] = {
    "mp3": ("mp3", "libmp3lame", {"write_xing": "0"}),
    "opus": ("ogg", "libopus", {}),
    "aac": ("adts", "aac", {}),
    "flac": ("flac", "flac", {}),
}
BIT_RATE = 48_000
FORMATS = [*CONTAINERS, "wav", "pcm"]


class SpeechEncoder:
    """Takes samples and returns the bytes that are ready. One of `FORMATS`."""

    def __init__(self, audio_format: str, from_hz: int) -> None:
        self._resampler = Resampler(from_hz, SPEECH_RATE_HZ)
        self._samples = 0
        self._packets = _Packets(audio_format) if audio_format in CONTAINERS else None
        self._header = wav_header() if audio_format == "wav" else b""

    @property
    def duration_s(self) -> float:
        """Length of what was encoded."""
        return self._samples / SPEECH_RATE_HZ

    def add(self, samples: Samples) -> bytes:
        """Encodes a piece. May return nothing, because encoders work on blocks."""
        return self._encode(self._resampler.add(samples))

    def finish(self) -> bytes:
        """The rest. To be called once, after the last piece."""
        encoded = self._encode(self._resampler.finish())
        return encoded + (self._packets.finish() if self._packets else b"")

    def _encode(self, samples: Samples) -> bytes:
        self._samples += samples.size
        if self._packets:
            return self._packets.add(samples) if samples.size else b""
        header, self._header = self._header, b""
        return header + samples.astype("<i2").tobytes()


class _Packets:
    """An encoder and muxer of FFmpeg that writes to memory."""

    def __init__(self, audio_format: str) -> None:
        muxer, codec, options = CONTAINERS[audio_format]
        self._output = _Output()
        self._container = av.open(self._output, mode="w", format=muxer, options=options)
        self._stream = self._container.add_stream(codec, rate=SPEECH_RATE_HZ, layout="mono")
        self._stream.bit_rate = BIT_RATE

    def add(self, samples: Samples) -> bytes:
        self._container.mux(self._stream.encode(frame_of(samples, SPEECH_RATE_HZ)))
        return self._output.take()

    def finish(self) -> bytes:
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._output.take()


class _Output(io.RawIOBase):
    """A file that cannot seek, because what was written is already with the client."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._written += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


def wav_header() -> bytes:
    """The header of a WAV whose length is not known yet: both sizes are 0xFFFFFFFF."""
    unknown = 0xFFFFFFFF
    layout = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, SPEECH_RATE_HZ, 2 * SPEECH_RATE_HZ, 2, 16)
    return struct.pack("<4sI4s", b"RIFF", unknown, b"WAVE") + layout + struct.pack("<4sI", b"data", unknown)
