"""An audio worker for Nightshift: speech recognition by faster-whisper, speech by espeak-ng."""
