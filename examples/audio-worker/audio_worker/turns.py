"""Divides live audio into turns, by commits or by the silence between them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .decoding import SAMPLE_RATE_HZ
from .resampling import Samples
from .voice_detector import WINDOW

SAMPLES_PER_MS = SAMPLE_RATE_HZ // 1000
# Whisper works on windows of 30 s. A longer turn is recognized in parts.
MAX_PART = 28 * SAMPLE_RATE_HZ
# A part ends where it is quietest in its last seconds, to avoid a cut within a word.
CUT_RANGE = 5 * SAMPLE_RATE_HZ
CUT_WINDOW = SAMPLE_RATE_HZ // 10
# Within speech, a window must be this much below the threshold to count as silence.
HYSTERESIS = 0.15


@dataclass(frozen=True)
class SpeechStarted:
    """A turn begins."""

    start_ms: int


@dataclass(frozen=True)
class SpeechStopped:
    """A turn ends, because the speaker was silent for long enough."""

    end_ms: int


@dataclass(frozen=True)
class SpeechPart:
    """Audio to be recognized: a turn, or a part of a long one."""

    audio: Samples
    start_ms: int
    end_ms: int


@dataclass(frozen=True)
class TurnDone:
    """All parts of the turn were given. Its audio may have been silent."""

    start_ms: int
    end_ms: int


TurnEvent = SpeechStarted | SpeechStopped | SpeechPart | TurnDone


@dataclass(frozen=True)
class TurnSettings:
    """`detect_turns`: turns end by silence, not only by commits. Times are ms of the session."""

    detect_turns: bool
    threshold: float
    prefix_ms: int
    silence_ms: int
    start_ms: int


class TurnDetector:
    """Keeps the audio of one part at most, about 30 s."""

    def __init__(self, settings: TurnSettings, probability: Callable[[Samples], float]) -> None:
        self._settings = settings
        self._probability = probability
        self._pending = np.empty(0, np.int16)
        """Less than a window: not judged yet."""
        self._part: list[Samples] = []
        self._part_size = 0
        self._end = settings.start_ms * SAMPLES_PER_MS
        """Where the judged audio ends, in samples of the session."""
        self._turn_start = self._end
        self._is_speaking = False
        self._has_speech = False
        self._silence = 0

    def add(self, samples: Samples) -> Iterator[TurnEvent]:
        """Takes the next audio."""
        self._pending = np.concatenate([self._pending, samples])
        while self._pending.size >= WINDOW:
            window, self._pending = self._pending[:WINDOW], self._pending[WINDOW:]
            yield from self._judge(window)

    def commit(self) -> Iterator[TurnEvent]:
        """Ends the turn, also a silent one."""
        self._append(self._pending)
        self._pending = self._pending[:0]
        yield from self._finish()

    def end(self) -> Iterator[TurnEvent]:
        """Ends the audio. A turn that has begun is finished."""
        if self._is_speaking or (not self._settings.detect_turns and self._part_size + self._pending.size > 0):
            yield from self.commit()

    def _judge(self, window: Samples) -> Iterator[TurnEvent]:
        probability = self._probability(window)
        threshold = self._settings.threshold
        self._append(window)
        if probability >= threshold:
            self._has_speech = True
            self._silence = 0
        elif probability < threshold - HYSTERESIS or not self._is_speaking:
            self._silence += window.size
        if self._settings.detect_turns:
            yield from self._detect(probability >= threshold)
        if self._part_size >= MAX_PART:
            yield from self._cut()

    def _detect(self, is_speech: bool) -> Iterator[TurnEvent]:
        if not self._is_speaking and not is_speech:
            self._forget_before(self._settings.prefix_ms * SAMPLES_PER_MS)
        elif not self._is_speaking:
            self._is_speaking = True
            yield SpeechStarted(self._ms(self._turn_start))
        elif self._silence >= self._settings.silence_ms * SAMPLES_PER_MS:
            yield SpeechStopped(self._ms(self._end))
            yield from self._finish()

    def _append(self, samples: Samples) -> None:
        self._part.append(samples)
        self._part_size += samples.size
        self._end += samples.size

    def _forget_before(self, kept: int) -> None:
        """Drops the beginning of the silence before a turn."""
        while self._part and self._part_size - self._part[0].size >= kept:
            self._part_size -= self._part.pop(0).size
        self._turn_start = self._end - self._part_size

    def _cut(self) -> Iterator[TurnEvent]:
        """Gives the first part of a long turn."""
        audio = np.concatenate(self._part)
        at = quietest(audio[-CUT_RANGE:]) + audio.size - CUT_RANGE
        yield from self._give(audio[:at], self._end - audio.size)
        self._part, self._part_size = [audio[at:]], audio.size - at
        self._has_speech = self._silence < self._part_size

    def _finish(self) -> Iterator[TurnEvent]:
        if self._part_size > 0:
            yield from self._give(np.concatenate(self._part), self._end - self._part_size)
        yield TurnDone(self._ms(self._turn_start), self._ms(self._end))
        self._part, self._part_size = [], 0
        self._turn_start = self._end
        self._is_speaking = False
        self._silence = 0

    def _give(self, audio: Samples, start: int) -> Iterator[TurnEvent]:
        """Whisper invents words for silence, so that is never given to it."""
        if self._has_speech:
            yield SpeechPart(audio, self._ms(start), self._ms(start + audio.size))
        self._has_speech = False

    @staticmethod
    def _ms(samples: int) -> int:
        return samples // SAMPLES_PER_MS


def quietest(audio: Samples) -> int:
    """The middle of the quietest 100 ms."""
    count = audio.size // CUT_WINDOW
    windows = audio[: count * CUT_WINDOW].astype(np.float32).reshape(count, CUT_WINDOW)
    return int(np.square(windows).mean(axis=1).argmin()) * CUT_WINDOW + CUT_WINDOW // 2
