"""A request of the Kubernetes API: what its path, query and headers ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from kueuecore_apiserver.refusals import bad_request

__all__ = ["Object", "Request"]

Object: TypeAlias = dict[str, Any]
"""An object as JSON: the caller knows what it holds."""

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "HEAD": "get"}
_OF_COLLECTIONS = {"get": "list", "delete": "deletecollection"}
# What may follow a namespace's name in a path that is about the namespace itself.
_OF_NAMESPACES = ("status", "finalize")


@dataclass(slots=True)
class Request:
    """One request, and its outcome.

    Args:
        method: Its HTTP method.
        path: Its path without the query.
        query: Its parameters; the last value of one that occurs twice.
        headers: Its headers, with names in lower case.
        verb: The verb of the API: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`;
            for a path that is not a resource, the method in lower case.
        group: The API group, empty for core.
        version: The version in the group.
        resource: The plural in the path; empty for a path that is not a resource.
        namespace: The namespace in the path.
        name: The name of the object.
        subresource: The subresource, such as `status`.
        user: The user, if the server authenticates users.
        code: The status code of the answer; 0 while there is none.
        index: The number of the request, from 0.
        warnings: The warnings of the answer.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    user: str = ""
    code: int = 0
    index: int = 0
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, method: str, target: str, headers: Mapping[str, str]) -> Request:
        """Read a request.

        Args:
            method: Its method.
            target: Path and query, as in the first line of HTTP.
            headers: Its headers, with names in lower case.

        Example:
            >>> request = Request.of("GET", "/apis/batch/v1/namespaces/lab/jobs?watch=true", {})
            >>> request.verb, request.group, request.resource, request.namespace
            ('watch', 'batch', 'jobs', 'lab')
        """
        split = urlsplit(target)
        query = dict(parse_qsl(split.query, keep_blank_values=True)) if split.query else {}
        request = cls(method, split.path, query, headers, verb=method.lower())
        parts = [unquote(part) for part in split.path.strip("/").split("/")]
        if parts[0] == "api" and len(parts) > 2:
            request.version, parts = parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) > 3:
            request.group, request.version, parts = parts[1], parts[2], parts[3:]
        else:
            return request
        request._place(parts)
        return request

    def _place(self, parts: list[str]) -> None:
        """Read the parts of the path after the version."""
        if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _OF_NAMESPACES:
            self.namespace, parts = parts[1], parts[2:]
        self.resource = parts[0]
        self.name = parts[1] if len(parts) > 1 else ""
        self.subresource = "/".join(parts[2:])
        self.verb = _VERBS.get(self.method, self.method.lower())
        if not self.name:
            self.verb = _OF_COLLECTIONS.get(self.verb, self.verb)
        if self.verb == "list" and self.flag("watch"):
            self.verb = "watch"
        # The namespace is the object itself.
        if self.resource == "namespaces" and not self.group and self.name:
            self.namespace = ""

    @property
    def user_agent(self) -> str:
        """The client's name for itself."""
        return self.headers.get("user-agent", "")

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def accept(self) -> str:
        """What the client accepts."""
        return self.headers.get("accept", "")

    @property
    def is_dry_run(self) -> bool:
        """Whether to check and answer without storing anything."""
        return "dryRun" in self.query

    @property
    def field_manager(self) -> str:
        """The owner of the written fields: the parameter, or else the client's name up to the slash."""
        return self.query.get("fieldManager") or self.user_agent.partition("/")[0][:128] or "unknown"

    def remember_less(self) -> None:
        """Forget all headers except the client's name, as many requests are remembered."""
        self.headers = {"user-agent": self.user_agent}

    def flag(self, name: str) -> bool:
        """Return a boolean parameter."""
        return self.query.get(name, "").lower() in ("1", "true", "t")

    def number(self, name: str, default: int) -> int:
        """Return an integer parameter.

        Raises:
            RefusedError: It is not an integer (400).
        """
        text = self.query.get(name, "")
        if not text:
            return default
        try:
            return int(text)
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
