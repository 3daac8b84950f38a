"""Says how likely it is that a piece of live audio contains speech."""

import numpy as np
from faster_whisper.vad import get_vad_model

from .resampling import Samples

WINDOW = 512
"""Samples of one decision: 32 ms at 16 kHz."""
_CONTEXT = 64


class VoiceDetector:
    """Silero's model, whose weights are part of faster-whisper, with its state kept between windows."""

    def __init__(self) -> None:
        # faster-whisper's own function analyses a whole recording and begins with a new state each time.
        self._session = get_vad_model().session
        self._h = np.zeros((1, 1, 128), np.float32)
        self._c = np.zeros((1, 1, 128), np.float32)
        self._context = np.zeros(_CONTEXT, np.float32)

    def probability(self, window: Samples) -> float:
        """The probability of speech in the next `WINDOW` samples."""
        audio = window.astype(np.float32) / 32_768
        inputs = {"input": np.concatenate([self._context, audio])[None], "h": self._h, "c": self._c}
        output, self._h, self._c = self._session.run(None, inputs)
        self._context = audio[-_CONTEXT:]
        return float(output.reshape(-1)[0])
