"""Refusals of the API server as Kubernetes words them: a code, a reason, a message and details, answered as a `Status` object.

For every room of the sandbox; apart because the words are part of the interface (kubectl prints them as they are).
"""

from __future__ import annotations

from typing import Any

Cause = dict[str, str]


class ApiError(Exception):
    """A request that is refused; `code`, `reason` and `message` are what the client sees."""

    def __init__(
        self, code: int, reason: str, message: str, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    def status(self) -> dict[str, Any]:
        """Return the `Status` object."""
        made = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }
        return {key: value for key, value in made.items() if value or key == "metadata"}


def qualified(plural: str, group: str) -> str:
    """Return how messages name a resource: `deployments.apps`."""
    return f"{plural}.{group}" if group else plural


def _details(name: str, group: str, kind: str) -> dict[str, Any]:
    made = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in made.items() if value}


def not_found(plural: str, group: str, name: str) -> ApiError:
    """Say that an object does not exist."""
    text = f'{qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", text, _details(name, group, plural))


def no_such_path() -> ApiError:
    """Say that nothing is served at a path."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(plural: str, group: str, name: str) -> ApiError:
    """Say that a name is taken."""
    text = f'{qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", text, _details(name, group, plural))


def conflict(plural: str, group: str, name: str, why: str = "") -> ApiError:
    """Say that an object was changed meanwhile, or what else is at odds."""
    why = why or (
        "the object has been modified; please apply your changes to the latest version and try again"
    )
    text = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", text, _details(name, group, plural))


def bad_request(message: str) -> ApiError:
    """Say that a request makes no sense."""
    return ApiError(400, "BadRequest", message)


def forbidden(plural: str, group: str, name: str, why: str) -> ApiError:
    """Say that somebody may not do this."""
    named = f'{qualified(plural, group)} "{name}"' if name else qualified(plural, group)
    return ApiError(403, "Forbidden", f"{named} is forbidden: {why}", _details(name, group, plural))


def invalid(kind: str, group: str, name: str, causes: list[Cause]) -> ApiError:
    """Say which fields of an object are wrong; one cause per field (`invalid_field` and its siblings make them)."""
    texts = [f"{cause['field']}: {cause['message']}" for cause in causes]
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = {**_details(name, group, kind), "causes": causes}
    text = f'{qualified(kind, group)} "{name}" is invalid: {joined}'
    return ApiError(422, "Invalid", text, details)


def field_cause(reason: str, path: str, message: str) -> Cause:
    """Make the cause of a field that is wrong, by the ending of Kubernetes' reason (`Invalid`, `Duplicate`, …)."""
    return {"reason": f"FieldValue{reason}", "message": message, "field": path}


def required_field(path: str, why: str = "") -> Cause:
    """Make the cause of a missing field."""
    return field_cause("Required", path, f"Required value{': ' + why if why else ''}")


def invalid_field(path: str, value: object, why: str) -> Cause:
    """Make the cause of a wrong value."""
    return field_cause("Invalid", path, f"Invalid value: {shown(value)}: {why}")


def unsupported_field(path: str, value: object, allowed: list[str]) -> Cause:
    """Make the cause of a value that is none of the allowed ones."""
    words = ", ".join(f'"{word}"' for word in allowed)
    text = f"Unsupported value: {shown(value)}: supported values: {words}"
    return field_cause("NotSupported", path, text)


def forbidden_field(path: str, why: str) -> Cause:
    """Make the cause of a field that must not be there, or not change."""
    return field_cause("Forbidden", path, f"Forbidden: {why}")


def shown(value: object) -> str:
    """Return a value as messages show it: texts in quotes, the rest as JSON."""
    import orjson

    if isinstance(value, str):
        return f'"{value}"'
    return orjson.dumps(value).decode() if isinstance(value, bool | int | float) else '"object"'


def gone(message: str) -> ApiError:
    """Say that a resourceVersion or a continue token is too old."""
    return ApiError(410, "Expired", message)


def unsupported_media(allowed: str) -> ApiError:
    """Say that a body of this kind is not read."""
    text = f"the body of the request was in an unknown format - accepted media types include: {allowed}"
    return ApiError(415, "UnsupportedMediaType", text)


def not_implemented(what: str) -> ApiError:
    """Say in a sentence what the sandbox cannot do."""
    return ApiError(501, "NotImplemented", f"the sandbox cannot {what}")


def method_not_allowed() -> ApiError:
    """Say that a resource has no such verb."""
    return ApiError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
    )


def internal(message: str) -> ApiError:
    """Say that something inside went wrong."""
    return ApiError(500, "InternalError", f"Internal error occurred: {message}")
