"""The classes of audio.proto, generated when the worker starts or when its image is built."""

import importlib
import sys
import tempfile
from pathlib import Path
from types import ModuleType

PACKAGE = "nightshift.audio.v1"
PROTO = "nightshift/audio/v1/audio.proto"
PROTO_FOLDER = Path(__file__).resolve().parents[3] / "proto"


def generate(target: Path, proto_folder: Path = PROTO_FOLDER) -> None:
    """Writes `audio_pb2.py` and `audio_pb2_grpc.py` below `target`. Takes about a second."""
    from grpc_tools import protoc

    if not (proto_folder / PROTO).is_file():
        raise FileNotFoundError(f"{proto_folder / PROTO} is missing. Run the worker from a clone of the repository.")
    options = [f"--proto_path={proto_folder}", f"--python_out={target}", f"--grpc_python_out={target}"]
    if protoc.main(["protoc", *options, PROTO]) != 0:
        raise RuntimeError(f"protoc could not compile {proto_folder / PROTO}.")


def _load() -> tuple[ModuleType, ModuleType]:
    try:
        return _import()
    except ModuleNotFoundError as error:
        if error.name is None or not PACKAGE.startswith(error.name):
            raise
    with tempfile.TemporaryDirectory(prefix="audio-worker-stubs-") as folder:
        generate(Path(folder))
        sys.path.insert(0, folder)
        try:
            importlib.invalidate_caches()
            return _import()
        finally:
            sys.path.remove(folder)


def _import() -> tuple[ModuleType, ModuleType]:
    messages = importlib.import_module(f"{PACKAGE}.audio_pb2")
    return messages, importlib.import_module(f"{PACKAGE}.audio_pb2_grpc")


messages, services = _load()
"""The modules `audio_pb2` and `audio_pb2_grpc`."""
