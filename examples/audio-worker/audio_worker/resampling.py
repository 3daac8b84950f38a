"""Changes the sample rate of 16-bit mono audio that arrives in pieces."""

from collections.abc import Iterable

import av
import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.int16]


class Resampler:
    """Keeps its state between pieces, so that there are no clicks at their borders."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self._from_hz = from_hz
        self._resampler = av.AudioResampler(format="s16", layout="mono", rate=to_hz)

    def add(self, samples: Samples) -> Samples:
        """What the piece yields; a few samples are held back until the next one."""
        if samples.size == 0:
            return samples
        return _joined(self._resampler.resample(frame_of(samples, self._from_hz)))

    def finish(self) -> Samples:
        """What was held back. To be called once, after the last piece."""
        return _joined(self._resampler.resample(None))


def frame_of(samples: Samples, rate_hz: int) -> av.AudioFrame:
    """The samples as a frame of PyAV."""
    frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = rate_hz
    return frame


def _joined(frames: Iterable[av.AudioFrame]) -> Samples:
    return np.concatenate([np.empty(0, np.int16), *(frame.to_ndarray().reshape(-1) for frame in frames)])
