"""Speaks a sentence and transcribes it with the official client, in three ways: GATEWAY SPEAKS HEARS SENTENCE."""

import base64
import json
import sys

from openai import OpenAI

gateway, speaks, hears, sentence = sys.argv[1:]
client = OpenAI(
    api_key="sk-1",
    base_url=f"{gateway}/v1",
    websocket_base_url=f"{gateway.replace('http', 'ws')}/v1",
    max_retries=0,
)


def spoken(audio_format: str) -> bytes:
    with client.audio.speech.with_streaming_response.create(
        model=speaks, voice="en-us", input=sentence, response_format=audio_format
    ) as answer:
        return b"".join(answer.iter_bytes())


def live(audio: bytes) -> str:
    with client.realtime.connect(model=hears) as connection:
        for at in range(0, len(audio), 4_800):
            piece = base64.b64encode(audio[at : at + 4_800]).decode()
            connection.input_audio_buffer.append(audio=piece)
        connection.input_audio_buffer.commit()
        for event in connection:
            if event.type == "error":
                return f"error: {event.error.message}"
            if event.type == "conversation.item.input_audio_transcription.completed":
                return event.transcript
    return ""


recording = ("talk.wav", spoken("wav"))
whole = client.audio.transcriptions.create(model=hears, file=recording)
stream = client.audio.transcriptions.create(model=hears, file=recording, stream=True)
streamed = "".join(event.delta for event in stream if event.type == "transcript.text.delta")
print(json.dumps({"whole": whole.text, "streamed": streamed, "live": live(spoken("pcm"))}))
