"""Starts the audio worker: `python worker.py --help`."""

import sys

if sys.version_info < (3, 11):
    sys.exit("The audio worker needs Python 3.11 or newer.")

try:
    from audio_worker.server import main
except ImportError as error:
    sys.exit(
        f"The package {error.name or error} cannot be imported. Install the dependencies of the audio worker: "
        "python -m pip install --require-hashes -r requirements.txt"
    )

if __name__ == "__main__":
    main()
