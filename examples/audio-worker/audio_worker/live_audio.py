"""Decodes the audio of a live stream to 16 kHz."""

import numpy as np
from numpy.typing import NDArray

from .decoding import SAMPLE_RATE_HZ
from .failures import invalid
from .resampling import Resampler, Samples

SLOWEST_HZ, FASTEST_HZ = 8_000, 48_000


class LiveDecoder:
    """Decodes `pcm16` (little-endian), `mulaw` or `alaw` of one channel."""

    def __init__(self, encoding: str, rate_hz: int) -> None:
        """@raises CallFailure INVALID_ARGUMENT for another encoding or rate"""
        if encoding not in ("pcm16", "mulaw", "alaw"):
            raise invalid(f"The encoding {encoding!r} is not supported. Use pcm16, mulaw or alaw.")
        if not SLOWEST_HZ <= rate_hz <= FASTEST_HZ:
            raise invalid(f"The sample rate {rate_hz} Hz is not between {SLOWEST_HZ} and {FASTEST_HZ} Hz.")
        self._table = {"mulaw": MULAW, "alaw": ALAW}.get(encoding)
        self._resampler = Resampler(rate_hz, SAMPLE_RATE_HZ)
        self._odd = b""

    def decode(self, audio: bytes) -> Samples:
        """The next samples. Half a sample at the end of a frame belongs to the next one."""
        if self._table is not None:
            return self._resampler.add(self._table[np.frombuffer(audio, np.uint8)])
        audio = self._odd + audio
        whole = len(audio) - len(audio) % 2
        self._odd = audio[whole:]
        return self._resampler.add(np.frombuffer(audio[:whole], "<i2").astype(np.int16))


def _mulaw_table() -> NDArray[np.int16]:
    """ITU-T G.711, µ-law."""
    code = ~np.arange(256, dtype=np.uint8)
    exponent, mantissa = (code >> 4 & 7).astype(np.int32), (code & 15).astype(np.int32)
    magnitude = (((mantissa << 3) + 0x84) << exponent) - 0x84
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _alaw_table() -> NDArray[np.int16]:
    """ITU-T G.711, A-law."""
    code = np.arange(256, dtype=np.uint8) ^ 0x55
    exponent, mantissa = (code >> 4 & 7).astype(np.int32), (code & 15).astype(np.int32)
    small = (mantissa << 4) + 8
    magnitude = np.where(exponent == 0, small, (small + 0x100) << np.maximum(exponent - 1, 0))
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)


MULAW = _mulaw_table()
ALAW = _alaw_table()
