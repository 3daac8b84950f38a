"""One call of the gateway with the official Python client: stream, abort or retry. Prints what it got as JSON."""

import json
import sys

import openai

CALL = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def stream(client):
    events = client.chat.completions.create(**CALL, stream=True)
    return [event.choices[0].delta.content for event in events]


def abort(client):
    events = client.chat.completions.create(**CALL, stream=True)
    for event in events:
        events.close()
        return [event.choices[0].delta.content]


def retry(client):
    return [client.chat.completions.create(**CALL).id]


if __name__ == "__main__":
    run = {"stream": stream, "abort": abort, "retry": retry}[sys.argv[1]]
    print(json.dumps(run(openai.OpenAI(max_retries=2))))
    if run is abort:
        # The process lives on, so only the client can have closed the connection.
        sys.stdout.flush()
        sys.stdin.read()
