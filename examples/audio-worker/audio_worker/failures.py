"""Failures that a call reports with a status code of their own."""

import grpc


class CallFailure(Exception):
    """Ends a call with a status code. The gateway passes the message of INVALID_ARGUMENT on to the client."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class CallEnded(CallFailure):
    """The call as a whole was ended, not only one of its recordings."""


def invalid(message: str) -> CallFailure:
    """The request cannot be served by any worker."""
    return CallFailure(grpc.StatusCode.INVALID_ARGUMENT, message)


def model_not_found(name: str) -> CallFailure:
    """The worker does not have the model for this task."""
    return CallFailure(grpc.StatusCode.NOT_FOUND, f"This audio worker has no model {name!r} for this task.")
