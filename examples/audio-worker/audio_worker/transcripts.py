"""Segments of the engine as messages."""

from collections.abc import Iterable
from typing import Any

from faster_whisper.transcribe import Segment

from .engine import Recording
from .stubs import messages


class TranscriptBuilder:
    """Collects the segments of a recording. The deltas together are the text of the transcript."""

    def __init__(self) -> None:
        self._recording = Recording("", 0)
        self._segments: list[Segment] = []
        self._text = ""

    def add(self, result: Recording | Segment) -> str:
        """Takes what the engine yields. Returns the text by which the transcript grows."""
        if isinstance(result, Recording):
            self._recording = result
            return ""
        self._segments.append(result)
        text = result.text.rstrip()
        delta = text if self._text else text.lstrip()
        self._text += delta
        return delta

    def transcript(self, *, want_segments: bool) -> Any:
        """The whole, as a message."""
        return messages.Transcript(
            text=self._text,
            language=self._recording.language,
            duration_s=self._recording.duration_s,
            segments=map(_segment_message, self._segments) if want_segments else [],
            words=word_messages(self._segments),
            usage=messages.Usage(audio_seconds=self._recording.duration_s),
        )


def word_messages(segments: Iterable[Segment], offset_s: float = 0) -> list[Any]:
    """The words of the segments, in order. There are none if the engine was not asked for them."""
    return [
        messages.Word(
            text=word.word.strip(),
            start_s=offset_s + word.start,
            end_s=offset_s + word.end,
            probability=word.probability,
        )
        for segment in segments
        for word in segment.words or []
    ]


def _segment_message(segment: Segment) -> Any:
    return messages.Segment(
        id=segment.id - 1,  # Those of OpenAI begin with 0.
        start_s=segment.start,
        end_s=segment.end,
        text=segment.text,
        avg_logprob=segment.avg_logprob,
        compression_ratio=segment.compression_ratio,
        no_speech_prob=segment.no_speech_prob,
        temperature=segment.temperature or 0,
        seek=segment.seek,
        tokens=segment.tokens,
    )
