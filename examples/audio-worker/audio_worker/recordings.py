"""The RPCs TranscribeFile and TranscribeBatch."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from .calls import Call
from .engine import Engine, RecognitionOptions
from .failures import CallEnded, CallFailure, invalid, model_not_found
from .stubs import messages
from .transcripts import TranscriptBuilder

MAX_FILE_BYTES = 512 * 1024 * 1024


class Upload:
    """A recording that arrives in parts."""

    def __init__(self) -> None:
        self.options: Any = None
        self._bytes = bytearray()

    def add(self, part: Any) -> None:
        """@raises CallFailure INVALID_ARGUMENT if the parts are not options and then chunks, or are too many"""
        if part.WhichOneof("part") == "options":
            if self.options is not None:
                raise invalid("The options of the recording were sent twice.")
            self.options = part.options
        elif self.options is None:
            raise invalid("The first part of a recording must be its options.")
        self._bytes += part.chunk
        if len(self._bytes) > MAX_FILE_BYTES:
            raise invalid(f"The recording is larger than {MAX_FILE_BYTES} bytes.")

    def take(self) -> bytes:
        """All chunks. @raises CallFailure INVALID_ARGUMENT if there are fewer bytes than the options say"""
        if self.options is None:
            raise invalid("The recording has no options.")
        if self.options.size and self.options.size != len(self._bytes):
            raise invalid(f"{len(self._bytes)} bytes came, but the options say {self.options.size}.")
        taken = bytes(self._bytes)
        self._bytes.clear()
        return taken


class Recordings:
    """Transcribes and translates files."""

    def __init__(self, engine: Engine, model: str) -> None:
        self._engine = engine
        self._model = model

    async def transcribe_file(self, call: Call, options: Any, parts: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """`parts` are those after the options."""
        wanted = self._checked(options)
        upload = Upload()
        upload.options = options
        async with aclosing(call.each(parts)) as arriving:
            async for part in arriving:
                upload.add(part)
        async with aclosing(self._events(call, upload, wanted)) as events:
            async for event in events:
                yield event

    async def transcribe_batch(self, call: Call, parts: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """
        Recognizes a recording when it is complete, while gRPC holds back the others: a CPU gains nothing from several
        recordings at once. A worker for a GPU would collect them first.
        """
        uploads: dict[int, Upload] = {}
        answered: set[int] = set()
        async with aclosing(call.each(parts)) as arriving:
            async for batch_part in arriving:
                item = batch_part.item
                if item in answered:
                    continue
                try:
                    upload = uploads.setdefault(item, Upload())
                    if batch_part.HasField("part"):
                        upload.add(batch_part.part)
                    if batch_part.end:
                        answered.add(item)
                        async with aclosing(self._item_events(call, uploads.pop(item))) as events:
                            async for event in events:
                                yield messages.BatchEvent(item=item, event=event)
                except CallEnded:
                    raise
                except CallFailure as failure:
                    uploads.pop(item, None)
                    answered.add(item)
                    yield _item_failure(item, failure)
        for item in uploads:
            yield _item_failure(item, invalid("The recording is incomplete."))

    async def _item_events(self, call: Call, upload: Upload) -> AsyncIterator[Any]:
        if upload.options is None:
            raise invalid("The recording has no options.")
        async with aclosing(self._events(call, upload, self._checked(upload.options))) as events:
            async for event in events:
                yield event

    async def _events(self, call: Call, upload: Upload, wanted: RecognitionOptions) -> AsyncIterator[Any]:
        """Deltas while segments are recognized, if they are wanted, and the result."""
        recording, options = upload.take(), upload.options
        builder = TranscriptBuilder()
        results = call.compute(lambda stop: self._engine.recognize_file(recording, wanted, stop))
        async with aclosing(results):
            async for result in results:
                delta = builder.add(result)
                if delta and options.want_deltas:
                    yield messages.FileEvent(delta=delta)
        yield messages.FileEvent(result=builder.transcript(want_segments=options.want_segments))

    def _checked(self, options: Any) -> RecognitionOptions:
        if options.model != self._model:
            raise model_not_found(options.model)
        if options.task == messages.SPEAK:
            raise invalid("A recording cannot have the task SPEAK.")
        wanted = RecognitionOptions(
            language=options.language,
            prompt=options.prompt,
            temperature=options.temperature,
            is_translation=options.task == messages.TRANSLATE,
            want_words=options.want_words,
        )
        self._engine.check(wanted)
        return wanted


def _item_failure(item: int, failure: CallFailure) -> Any:
    code: int = failure.code.value[0]
    return messages.BatchEvent(item=item, failure=messages.Failure(code=code, message=failure.message))
