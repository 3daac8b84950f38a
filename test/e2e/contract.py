"""The calls of the API with the official Python client. Writes one JSON verdict per check, one a line."""

import hashlib
import io
import json
import os
import pathlib
import tempfile
import time
import traceback

import openai

client = openai.OpenAI()
CHAT = "/v1/chat/completions"
checks = []


def check(name):
    def register(function):
        checks.append((name, function))
        return function

    return register


def text(lines):
    return "".join(
        json.dumps(
            {"custom_id": f"c-{i}", "method": "POST", "url": CHAT, "body": {"model": "m", "messages": [], **line}}
        )
        + "\n"
        for i, line in enumerate(lines)
    )


def line(**changes):
    """A line with changed members; None removes one."""
    members = {"custom_id": "a", "method": "POST", "url": CHAT, "body": {"model": "m", "messages": []}}
    return json.dumps({name: value for name, value in {**members, **changes}.items() if value is not None})


def uploaded(content, name="in.jsonl"):
    return client.files.create(file=(name, content.encode()), purpose="batch")


def created(content, window="24h"):
    return client.batches.create(
        input_file_id=uploaded(content).id, endpoint=CHAT, completion_window=window
    )


def ended(batch):
    for _ in range(1200):
        batch = client.batches.retrieve(batch.id)
        if batch.status in ("completed", "failed", "expired", "cancelled"):
            return batch
        time.sleep(0.05)
    raise AssertionError(f"{batch.id} does not end")


def lines_of(file_id):
    return [json.loads(line) for line in client.files.content(file_id).iter_lines()]


def rejects(kind, call, **members):
    try:
        call()
    except kind as error:
        for name, value in members.items():
            assert getattr(error, name) == value, (name, getattr(error, name))
        assert error.request_id
        return error
    raise AssertionError(f"no {kind.__name__}")


@check("files are created from a stream")
def stream():
    content = text([{}, {}])
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(content.encode())
        file.flush()
        with open(file.name, "rb") as opened:
            made = client.files.create(file=opened, purpose="batch")
    assert made.id.startswith("file-") and made.bytes == len(content) and made.status == "processed"
    assert made.expires_at - made.created_at == 2592000


@check("files are created from every kind of object")
def kinds_of_files():
    content = text([{}]).encode()
    assert client.files.create(file=content, purpose="batch").filename == "upload"
    assert client.files.create(file=io.BytesIO(content), purpose="batch").bytes == len(content)
    for name in ('größe "x".jsonl', "日本.jsonl"):
        for file in ((name, content), (name, io.BytesIO(content)), (name, content, "application/jsonl")):
            made = client.files.create(file=file, purpose="batch")
            assert (made.filename, made.bytes, made.status) == (name, len(content), "processed")
            assert made.expires_at - made.created_at == 2592000
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "path.jsonl"
        path.write_bytes(content)
        assert client.files.create(file=path, purpose="batch").filename == "path.jsonl"


@check("files expire when asked")
def expiry():
    made = client.files.create(
        file=text([{}]).encode(), purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600}
    )
    assert made.expires_at - made.created_at == 3600


@check("files are retrieved")
def again():
    made = uploaded(text([{}]))
    assert client.files.retrieve(made.id) == made
    assert client.files.wait_for_processing(made.id) == made


@check("files are listed page by page")
def pages():
    made = [uploaded(text([{}]), f"{i}.jsonl").id for i in range(5)]
    seen = [file.id for file in client.files.list(purpose="batch", limit=2)]
    assert len(seen) == len(set(seen)) and [id for id in seen if id in made] == made[::-1]
    ascending = [file.id for file in client.files.list(purpose="batch", limit=2, order="asc")]
    assert ascending == seen[::-1]


@check("files are downloaded")
def content():
    sent = text([{}, {"x": "\u2028"}])
    file = uploaded(sent)
    answer = client.files.content(file.id)
    assert answer.response.headers["content-type"] == "application/octet-stream"
    assert answer.read() == sent.encode()
    with client.files.with_streaming_response.content(file.id) as streamed:
        assert b"".join(streamed.iter_bytes()) == sent.encode()
    assert [json.loads(line)["custom_id"] for line in answer.iter_lines()] == ["c-0", "c-1"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "content")
        with client.files.with_streaming_response.content(file.id) as streamed:
            streamed.stream_to_file(path)
        with open(path, "rb") as written:
            assert written.read() == sent.encode()


@check("deleted files are not found")
def deletion():
    file = uploaded(text([{}]))
    assert client.files.delete(file.id).deleted is True
    for call in (client.files.retrieve, client.files.content, client.files.delete):
        rejects(openai.NotFoundError, lambda: call(file.id), param="id")


@check("uploads join their parts")
def upload():
    sent = text([{}, {}, {}]).encode()
    begun = client.uploads.create(
        filename="p.jsonl", purpose="batch", bytes=len(sent), mime_type="application/jsonl"
    )
    pieces = [sent[100:], sent[50:100], sent[:50]]
    ids = [client.uploads.parts.create(begun.id, data=piece).id for piece in pieces][::-1]
    done = client.uploads.complete(begun.id, part_ids=ids, md5=hashlib.md5(sent).hexdigest())
    assert done.status == "completed" and done.file.bytes == len(sent)
    assert client.files.content(done.file.id).read() == sent


@check("cancelled uploads accept no parts")
def cancelled_upload():
    begun = client.uploads.create(filename="p", purpose="batch", bytes=3, mime_type="x")
    assert client.uploads.cancel(begun.id).status == "cancelled"
    rejects(openai.BadRequestError, lambda: client.uploads.parts.create(begun.id, data=b"abc"))


@check("large files are uploaded in parts")
def chunked():
    line = text([{"filler": "x" * 1_000_000}])
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        digest = hashlib.md5()
        for _ in range(130):
            file.write(line.encode())
            digest.update(line.encode())
        file.flush()
        done = client.uploads.upload_file_chunked(
            file=file.name, mime_type="application/jsonl", purpose="batch", md5=digest.hexdigest()
        )
    assert done.status == "completed" and done.file.bytes == 130 * len(line)
    client.files.delete(done.file.id)


@check("batches are created")
def creation():
    file = uploaded(text([{}]))
    fields = {"input_file_id": file.id, "endpoint": CHAT, "completion_window": "24h"}
    plain = client.batches.create(**fields)
    assert plain.status == "validating" and plain.expires_at == plain.created_at + 86400
    assert plain.request_counts.total == 0 and plain.usage.total_tokens == 0
    wire = client.batches.with_raw_response.retrieve(plain.id).http_response.json()
    keys = set(openai.types.Batch.model_fields)
    assert set(wire) == keys, set(wire) ^ keys
    assert client.batches.create(**fields, metadata=None).metadata is None
    full = client.batches.create(
        **fields,
        metadata={"a": "b"},
        output_expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert full.metadata == {"a": "b"}
    for batch in (plain, full):
        ended(batch)


@check("batches complete")
def run():
    done = ended(created(text([{}] * 3)))
    assert done.status == "completed" and done.error_file_id is None
    assert (done.request_counts.total, done.request_counts.completed) == (3, 3)
    assert {line["custom_id"] for line in lines_of(done.output_file_id)} == {"c-0", "c-1", "c-2"}


@check("batches go through their statuses in order")
def steps():
    batch = created(text([{"delay_ms": 100}] * 40))
    order = ["validating", "in_progress", "finalizing", "completed"]
    seen = [batch]
    while seen[-1].status != "completed":
        seen.append(client.batches.retrieve(batch.id))
        time.sleep(0.02)
    ranks = [order.index(one.status) for one in seen]
    assert ranks == sorted(ranks)
    counts = [one.request_counts.completed for one in seen]
    assert counts == sorted(counts) and counts[-1] == 40
    done = seen[-1]
    times = [done.created_at, done.in_progress_at, done.finalizing_at, done.completed_at]
    assert times == sorted(times)
    assert done.model == "m" and done.usage.total_tokens == 120


ENDPOINTS = {
    CHAT: {"messages": []},
    "/v1/completions": {"prompt": "x"},
    "/v1/embeddings": {"input": ["a", "b"]},
    "/v1/responses": {"input": "x"},
    "/v1/moderations": {"input": "x"},
}


@check("batches complete at every endpoint")
def endpoints():
    for url, members in ENDPOINTS.items():
        body = {"model": "m", **members}
        lines = [line(custom_id=id, url=url, body=body) for id in "abc"]
        batch = client.batches.create(
            input_file_id=uploaded("\n".join(lines)).id, endpoint=url, completion_window="24h"
        )
        done = ended(batch)
        assert done.status == "completed" and done.endpoint == url, url
        assert {one["custom_id"] for one in lines_of(done.output_file_id)} == set("abc")


@check("failed requests are named")
def failures():
    some = ended(created(text([{}, {"fail": True}, {}])))
    assert (some.request_counts.completed, some.request_counts.failed) == (2, 1)
    (line,) = lines_of(some.error_file_id)
    assert line["response"]["status_code"] == 400 and line["error"] is None
    every = ended(created(text([{"fail": True}])))
    assert every.status == "completed" and every.output_file_id is None and every.error_file_id


@check("batches are cancelled")
def cancels():
    batch = created(text([{"delay_ms": 400}] * 400))
    while client.batches.retrieve(batch.id).request_counts.completed == 0:
        time.sleep(0.05)
    assert client.batches.cancel(batch.id).status == "cancelling"
    assert client.batches.cancel(batch.id).status in ("cancelling", "cancelled")
    done = ended(batch)
    assert done.status == "cancelled" and done.request_counts.failed == 0
    assert {line["error"]["code"] for line in lines_of(done.error_file_id)} == {"batch_cancelled"}
    error = rejects(openai.ConflictError, lambda: client.batches.cancel(ended(created(text([{}]))).id))
    assert error.response.request.headers["x-stainless-retry-count"] == "0"


@check("batches are listed page by page")
def lists():
    seen = [batch.id for batch in client.batches.list(limit=2)]
    assert len(seen) > 4 and len(seen) == len(set(seen))
    empty = client.batches.list(limit=0)
    assert empty.data == [] and empty.has_more is False
    for limit in (101, -1):
        rejects(openai.BadRequestError, lambda: client.batches.list(limit=limit), param="limit")


REFUSED = [
    (line() + "\n{oops", [("invalid_json_line", None, 2)]),
    (line() + "\n[]", [("invalid_request", None, 2)]),
    (line(custom_id=None), [("missing_required_parameter", "custom_id", 1)]),
    (line(method=None), [("missing_required_parameter", "method", 1)]),
    (line(url=None), [("missing_required_parameter", "url", 1)]),
    (line(body=None), [("missing_required_parameter", "body", 1)]),
    (line() + "\n" + line(), [("duplicate_custom_id", "custom_id", 2)]),
    (line(custom_id=7), [("invalid_request", "custom_id", 1)]),
    (line(custom_id="x" * 513), [("invalid_request", "custom_id", 1)]),
    (line(url="/v1/embeddings"), [("invalid_url", "url", 1)]),
    (line(method="GET"), [("invalid_method", "method", 1)]),
    (line(body="x"), [("invalid_request", "body", 1)]),
    (line(body={"messages": []}), [("invalid_request", "body.model", 1)]),
    (line(body={"model": "m"}), [("missing_required_parameter", "body.messages", 1)]),
    (
        line(body={"model": "m", "messages": [], "stream": True}),
        [("streaming_unsupported", "body.stream", 1)],
    ),
    (text([{}]) * 2 + "{oops\n", [("duplicate_custom_id", "custom_id", 2), ("invalid_json_line", None, 3)]),
]


def told(batch):
    return [(error.code, error.param, error.line) for error in batch.errors.data]


@check("invalid input files fail the batch")
def invalid_file():
    for content, expected in REFUSED:
        done = ended(created(content))
        assert (done.status, told(done)) == ("failed", expected), (content, told(done))
        assert done.output_file_id is None and done.error_file_id is None
    gone = uploaded(line())
    client.files.delete(gone.id)
    for id in ("file-none", gone.id):
        batch = client.batches.create(input_file_id=id, endpoint=CHAT, completion_window="24h")
        assert told(ended(batch)) == [("invalid_request", "file_id", None)]


@check("batches expire")
def expired():
    done = ended(created(text([{"delay_ms": 1000}] * 80), "3s"))
    assert done.status == "expired"
    assert {line["error"]["code"] for line in lines_of(done.error_file_id)} == {"batch_expired"}


@check("errors raise the classes of the SDK")
def errors():
    bad = openai.OpenAI(api_key="sk-bad")
    rejects(openai.AuthenticationError, lambda: bad.files.list(), code="invalid_api_key")
    rejects(openai.NotFoundError, lambda: client.batches.retrieve("batch_none"))
    rejects(openai.BadRequestError, lambda: client.batches.retrieve("none"), param="batch_id")
    rejects(openai.NotFoundError, lambda: client.get("/nothing", cast_to=object))
    error = rejects(openai.APIStatusError, lambda: client.put("/files", cast_to=object))
    assert error.status_code == 405


@check("status 429 makes the SDK try again")
def tries_again():
    fields = {"endpoint": CHAT, "completion_window": "24h"}
    slow = uploaded(text([{"delay_ms": 25000}] * 4))
    batches = [client.batches.create(input_file_id=slow.id, **fields) for _ in range(5)]

    def make_room(response):
        if response.status_code == 429:
            for batch in batches:
                client.batches.cancel(batch.id)

    hooks = {"response": [make_room]}
    waiting = openai.OpenAI(max_retries=10, http_client=openai.DefaultHttpxClient(event_hooks=hooks))
    raw = waiting.batches.with_raw_response.create(input_file_id=uploaded(line()).id, **fields)
    assert raw.retries_taken >= 1, raw.retries_taken
    for batch in batches + [raw.parse()]:
        ended(batch)


@check("every call has the documented headers")
def raw():
    file = uploaded(line())
    batch = ended(created(line()))
    going = created(text([{"delay_ms": 25000}]))
    fields = {"filename": "a", "purpose": "batch", "bytes": 2, "mime_type": "x"}
    upload = client.uploads.create(**fields)
    parts = client.uploads.parts.with_raw_response.create(upload.id, data=b"{}")
    files, uploads, batches = client.files, client.uploads, client.batches
    minimal = {"endpoint": CHAT, "completion_window": "24h"}
    calls = [
        (files, "create", {"file": line().encode(), "purpose": "batch"}),
        (files, "list", {"limit": 1}),
        (files, "retrieve", {"file_id": file.id}),
        (files, "content", {"file_id": file.id}),
        (files, "delete", {"file_id": file.id}),
        (uploads, "create", fields),
        (uploads, "complete", {"upload_id": upload.id, "part_ids": [parts.parse().id]}),
        (batches, "create", {"input_file_id": "file-none", **minimal}),
        (batches, "list", {"limit": 1}),
        (batches, "retrieve", {"batch_id": batch.id}),
        (batches, "cancel", {"batch_id": going.id}),
    ]
    for resource, name, arguments in calls:
        answer = getattr(resource.with_raw_response, name)(**arguments)
        assert answer.status_code == 200 and answer.headers["x-request-id"], name
        assert answer.request_id == answer.headers["x-request-id"], name
        assert answer.headers["openai-version"] == "2020-10-01", name
        if name == "content":
            continue
        parsed = answer.parse()
        assert parsed._request_id == answer.request_id, name
    with batches.with_streaming_response.retrieve(batch.id) as streamed:
        assert streamed.parse().id == batch.id and streamed.headers["x-request-id"]
    ended(going)


@check("empty JSON bodies are accepted")
def empty_bodies():
    batch = created(text([{"delay_ms": 25000}]))
    assert client.batches.cancel(batch.id).status == "cancelling"
    ended(batch)


for name, function in checks:
    try:
        function()
        print(json.dumps({"id": name, "ok": True}), flush=True)
    except Exception:
        print(json.dumps({"id": name, "ok": False, "error": traceback.format_exc()[-1500:]}), flush=True)
