"""Decodes uploaded recordings to what the engine takes: 16 kHz, mono, float."""

import io
import threading
from collections.abc import Iterator

import av
import numpy as np
from av.error import FFmpegError, InvalidDataError
from numpy.typing import NDArray

from .failures import invalid

SAMPLE_RATE_HZ = 16_000
# A short file of compressed silence can decode to days; an hour takes 115 MB as 16-bit samples.
MAX_AUDIO_S = 4 * 3600
# A playlist is refused too: it would make FFmpeg open other files or addresses.
DEMUXERS = "wav,mp3,flac,ogg,aac,mov,mp4,m4a,3gp,3g2,mj2,matroska,webm"
OPTIONS = {"format_whitelist": DEMUXERS, "protocol_whitelist": ""}


def decode(recording: bytes, stop: threading.Event) -> NDArray[np.float32]:
    """
    The first audio track of the recording. Ends early, with a part, once `stop` is set.
    @raises CallFailure INVALID_ARGUMENT if it is not audio in a supported format, or is too long
    """
    try:
        with av.open(io.BytesIO(recording), mode="r", metadata_errors="ignore", options=OPTIONS) as container:
            samples = _decode_track(container, stop)
    except (FFmpegError, ValueError, UnicodeError) as error:
        raise invalid(
            "The file cannot be decoded as audio. It is damaged, or its format is none of "
            "flac, mp3, mp4, m4a, ogg, wav and webm."
        ) from error
    if samples.size == 0:
        raise invalid("The file contains no audio that can be decoded.")
    return samples.astype(np.float32) / 32_768


def _decode_track(container: av.container.InputContainer, stop: threading.Event) -> NDArray[np.int16]:
    if not container.streams.audio:
        raise invalid("The file contains no audio track.")
    resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE_HZ)
    pieces = [np.empty(0, np.int16)]
    total = 0
    for frame in _frames(container):
        for piece in resampler.resample(frame):
            pieces.append(piece.to_ndarray().reshape(-1))
            total += pieces[-1].size
        if total > MAX_AUDIO_S * SAMPLE_RATE_HZ:
            raise invalid(f"The recording is longer than {MAX_AUDIO_S // 3600} hours. Split it into several files.")
        if stop.is_set():
            break
    return np.concatenate(pieces)


def _frames(container: av.container.InputContainer) -> Iterator[av.AudioFrame | None]:
    """The frames, and None at the end. Packets that are damaged are left out."""
    for packet in container.demux(audio=0):
        try:
            frames = packet.decode()
        except InvalidDataError:
            continue
        for frame in frames:
            frame.pts = None  # Some files have wrong times, with which the resampler would fail.
            yield frame
    yield None
