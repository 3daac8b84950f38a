"""Speech recognition by faster-whisper."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.transcribe import Segment
from numpy.typing import NDArray

from .decoding import SAMPLE_RATE_HZ, decode
from .failures import invalid

# With temperature 0, Whisper tries higher ones if a result looks wrong. Each one may double the time of a window,
# during which a recognition cannot be stopped, so these are fewer than Whisper's own.
FALLBACK_TEMPERATURES = [0.0, 0.4, 0.8]


@dataclass(frozen=True)
class RecognitionOptions:
    """What a caller asks of a recognition. An empty language means that Whisper detects it."""

    language: str = ""
    prompt: str = ""
    temperature: float = 0.0
    is_translation: bool = False
    want_words: bool = False


@dataclass(frozen=True)
class Recording:
    """The first result of a recording; its segments follow."""

    language: str
    duration_s: float


class Engine:
    """A loaded model. Up to `parallel` recognitions run at once; more wait."""

    def __init__(self, model: str, parallel: int, threads: int) -> None:
        self._model = WhisperModel(
            model, device="cpu", compute_type="int8", cpu_threads=threads, num_workers=parallel
        )
        self.is_multilingual: bool = self._model.model.is_multilingual
        # The first recognition allocates buffers, so it is slower than the others.
        for _ in self.recognize(np.zeros(SAMPLE_RATE_HZ, np.float32), RecognitionOptions(language="en")):
            pass

    @property
    def languages(self) -> list[str]:
        """ISO 639-1 codes of the languages that the model recognizes."""
        return self._model.supported_languages

    def check(self, options: RecognitionOptions) -> None:
        """@raises CallFailure INVALID_ARGUMENT if the model cannot do what is asked"""
        if options.is_translation and not self.is_multilingual:
            raise invalid("This model recognizes only English, so it cannot translate.")
        if options.language and options.language not in self.languages:
            supported = "only English (en)" if not self.is_multilingual else ", ".join(self.languages)
            raise invalid(f"This model does not recognize the language {options.language!r}. It recognizes {supported}.")
        if not 0 <= options.temperature <= 1:
            raise invalid(f"The temperature {options.temperature:g} is not between 0 and 1.")

    def recognize_file(
        self, recording: bytes, options: RecognitionOptions, stop: threading.Event
    ) -> Iterator[Recording | Segment]:
        """
        Decodes the file, then yields a `Recording` and its segments as they are recognized.
        @raises CallFailure INVALID_ARGUMENT if the file is not audio
        """
        yield from self.recognize(decode(recording, stop), options)

    def recognize(self, audio: NDArray[np.float32], options: RecognitionOptions) -> Iterator[Recording | Segment]:
        """As `recognize_file`, for samples of 16 kHz. Whisper works on windows of 30 s."""
        segments, info = self._model.transcribe(
            audio,
            language=options.language or None,
            task="translate" if options.is_translation else "transcribe",
            initial_prompt=options.prompt or None,
            temperature=options.temperature or FALLBACK_TEMPERATURES,
            word_timestamps=options.want_words,
        )
        yield Recording(info.language, audio.size / SAMPLE_RATE_HZ)
        yield from segments
