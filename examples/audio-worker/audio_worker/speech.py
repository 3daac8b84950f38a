"""Speech by espeak-ng, called through ctypes."""

import ctypes
import re
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import espeakng_loader
import numpy as np

from .resampling import Samples

# Constants and structures of espeak-ng's speak_lib.h.
AUDIO_OUTPUT_SYNCHRONOUS = 2
INITIALIZE_DONT_EXIT = 0x8000
CHARS_UTF8 = 1
POS_CHARACTER = 1
PARAMETER_RATE = 1
BUFFER_MS = 200

DEFAULT_VOICE = "en-us"
WORDS_PER_MINUTE = 150
SLOWEST, FASTEST = 80, 450
PARAGRAPH_END = re.compile(r"\n\s*\n")


class _Voice(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_char_p),
        ("identifier", ctypes.c_char_p),
        ("gender", ctypes.c_ubyte),
        ("age", ctypes.c_ubyte),
        ("variant", ctypes.c_ubyte),
        ("xx1", ctypes.c_ubyte),
        ("score", ctypes.c_int),
        ("spare", ctypes.c_void_p),
    ]


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


class Speaker:
    """The one instance of espeak-ng. The library has global state, so one text is spoken at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._take: Callable[[Samples], bool] = lambda _: False
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        folder = espeakng_loader.get_data_path().encode()
        self.rate_hz: int = self._library.espeak_Initialize(
            AUDIO_OUTPUT_SYNCHRONOUS, BUFFER_MS, folder, INITIALIZE_DONT_EXIT
        )
        if self.rate_hz <= 0:
            raise RuntimeError(f"espeak-ng cannot read its voices in {folder.decode()}.")
        self._callback = _Callback(self._on_audio)  # Must live as long as the library uses it.
        self._library.espeak_SetSynthCallback(self._callback)
        self.voices = self._list_voices()

    def speak(self, text: str, *, voice: str, speed: float, stop: threading.Event) -> Iterator[Samples]:
        """
        The spoken text in pieces of 200 ms. `speed` 1 is 150 words per minute; the result is held between 80 and 450.
        `voice` is one of `voices`. Ends early once `stop` is set.
        """
        pieces: SimpleQueue[Samples] = SimpleQueue()

        def take(samples: Samples) -> bool:
            pieces.put(samples)
            return not stop.is_set()

        # espeak-ng speaks a paragraph per call, so that the first audio is there before the last is computed.
        for paragraph in filter(str.strip, PARAGRAPH_END.split(text.replace("\0", " "))):
            if stop.is_set():
                return
            self._synthesize(paragraph, voice, speed, take)
            while not pieces.empty():
                yield pieces.get()

    def _synthesize(self, text: str, voice: str, speed: float, take: Callable[[Samples], bool]) -> None:
        encoded = text.encode("utf-8", "replace")
        rate = round(min(max(WORDS_PER_MINUTE * speed, SLOWEST), FASTEST))
        with self._lock:
            self._take = take
            self._check(self._library.espeak_SetVoiceByName(voice.encode()), f"select the voice {voice}")
            self._check(self._library.espeak_SetParameter(PARAMETER_RATE, rate, 0), "set the speed")
            size = ctypes.c_size_t(len(encoded) + 1)
            spoken = self._library.espeak_Synth(encoded, size, 0, POS_CHARACTER, 0, CHARS_UTF8, None, None)
            self._check(spoken, "speak")

    def _on_audio(self, wave: "ctypes._Pointer[ctypes.c_short]", count: int, _events: int) -> int:
        """Called by the library with each piece, and once without one at the end. 1 stops it."""
        if not wave or count <= 0:
            return 0
        # The library reuses its buffer, so the samples are copied.
        samples = np.ctypeslib.as_array(wave, (count,)).astype(np.int16)
        return 0 if self._take(samples) else 1

    def _list_voices(self) -> list[str]:
        self._library.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_Voice))
        listed = self._library.espeak_ListVoices(None)
        names = set()
        for voice in listed:
            if not voice:
                break
            names.add(voice.contents.languages[1:].decode())  # The first byte is a priority.
        return sorted(names)

    @staticmethod
    def _check(result: int, action: str) -> None:
        if result != 0:
            raise RuntimeError(f"espeak-ng could not {action}: error {result}.")
