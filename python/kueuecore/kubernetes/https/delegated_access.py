"""Asks the API server who a client is and what it may do, and remembers the answers for a short time."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from email.message import Message
from typing import Generic, TypeVar

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._text import logged
from kueuecore.api_server import RefusedError
from kueuecore.errors import KueuecoreError
from kueuecore.kubernetes.api import Api, UnansweredError

__all__ = ["ANONYMOUS", "AccessUnknownError", "DelegatedAccess", "User", "Verdict", "bearer_token"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_T = TypeVar("_T")
_MAX_REMEMBERED = 4096
_PATIENCE_SECONDS = 10.0
# Longer ones are no token: those of ServiceAccounts have about a thousand characters.
_MAX_TOKEN = 16384
_AUTHENTICATED = "system:authenticated"
_BEARER = re.compile(r"bearer +([!-~]+)(?: .*)?", re.IGNORECASE)


class AccessUnknownError(KueuecoreError):
    """The API server could not be asked."""


@dataclass(frozen=True, slots=True)
class User:
    """Who makes a request, as in `userInfo` of Kubernetes.

    Args:
        name: The name.
        groups: The groups.
        uid: The UID.
        extra: What else is known, by name.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def authenticated(self) -> User:
        """Return the user with the group of all who are known, which an API server adds on the way to its own roles."""
        is_in = {_AUTHENTICATED, "system:unauthenticated"} & {*self.groups} or self.name == "system:anonymous"
        return self if is_in else replace(self, groups=(*self.groups, _AUTHENTICATED))

    def spec(self) -> JsonObject:
        """Return the fields of a SubjectAccessReview that name the user."""
        spec: JsonObject = {"user": self.name, "groups": [*self.groups]}
        if self.uid:
            spec["uid"] = self.uid
        if self.extra:
            spec["extra"] = {name: [*values] for name, values in self.extra.items()}
        return spec


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
"""Who brings no credentials."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a request is allowed.

    Args:
        is_allowed: Whether it is.
        reason: Why, in the words of the API server; may be empty.
    """

    is_allowed: bool
    reason: str = ""


def bearer_token(headers: Message) -> str:
    """Return the token of a request; empty if it has none.

    Example:
        >>> headers = Message()
        >>> headers["Authorization"] = "Bearer secret"
        >>> bearer_token(headers)
        'secret'
    """
    found = _BEARER.fullmatch(headers.get("Authorization", "").strip())
    token = found[1] if found else ""
    return token if len(token) <= _MAX_TOKEN else ""


class DelegatedAccess:
    """Knows users and their rights from an API server.

    Args:
        api: The API server; needs the verb `create` for `tokenreviews` and `subjectaccessreviews`.
        known_seconds: How long an answer about a token is remembered.
        allowed_seconds: How long a permission is remembered.
        denied_seconds: How long a refusal is remembered.
    """

    def __init__(
        self, api: Api, *, known_seconds: float = 60.0, allowed_seconds: float = 300.0, denied_seconds: float = 30.0
    ) -> None:
        self._api = api
        self._known_seconds, self._allowed_seconds, self._denied_seconds = (
            known_seconds,
            allowed_seconds,
            denied_seconds,
        )
        self._users: _Memory[User | None] = _Memory()
        self._verdicts: _Memory[Verdict] = _Memory()
        self._fault = ""

    def user_of(self, token: str) -> User | None:
        """Return whose a token is; None if the server does not accept it.

        Raises:
            AccessUnknownError: The server could not be asked.
        """
        # Tokens themselves are not kept.
        key = hashlib.sha256(token.encode()).digest()
        is_there, user = self._users.get(key)
        if not is_there:
            status = self._ask("authentication.k8s.io", "TokenReview", {"token": token})
            user = _user(object_at(status, "user")).authenticated() if status.get("authenticated") is True else None
            self._users.put(key, user, self._known_seconds)
        return user

    def verdict(self, user: User, asked: JsonObject) -> Verdict:
        """Return whether a user may do something.

        Args:
            user: The user.
            asked: `resourceAttributes` or `nonResourceAttributes`, and what they are.

        Raises:
            AccessUnknownError: The server could not be asked.
        """
        spec = {**user.spec(), **asked}
        # Paths are as long as clients like, and many are remembered.
        key = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).digest()
        is_there, verdict = self._verdicts.get(key)
        if not is_there or verdict is None:
            status = self._ask("authorization.k8s.io", "SubjectAccessReview", spec)
            verdict = Verdict(status.get("allowed") is True and not status.get("denied"), text_at(status, "reason"))
            self._verdicts.put(key, verdict, self._allowed_seconds if verdict.is_allowed else self._denied_seconds)
        return verdict

    def _ask(self, group: str, kind: str, spec: JsonObject) -> JsonObject:
        path = f"/apis/{group}/v1/{kind.lower()}s"
        body: JsonObject = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        try:
            status = object_at(self._api.send("POST", path, body, seconds=_PATIENCE_SECONDS), "status")
        except (RefusedError, UnansweredError) as error:
            message = logged(error)
            if message != self._fault:
                self._fault = message
                _LOGGER.warning("cannot ask who a client is and what it may do", extra={"error": message})
            raise AccessUnknownError(message) from None
        self._fault = ""
        return status


def _user(found: JsonObject) -> User:
    groups = tuple(map(str, list_at(found, "groups")))
    extra = {name: tuple(map(str, list_at(object_at(found, "extra"), name))) for name in object_at(found, "extra")}
    return User(text_at(found, "username"), groups, text_at(found, "uid"), extra)


class _Memory(Generic[_T]):
    """Remembers answers for a time, the newest of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[float, _T]] = OrderedDict()

    def get(self, key: Hashable) -> tuple[bool, _T | None]:
        """Return whether there is an answer, and the answer."""
        with self._lock:
            held = self._held.get(key)
            if held is None or held[0] <= time.monotonic():
                return False, None
            return True, held[1]

    def put(self, key: Hashable, answer: _T, seconds: float) -> None:
        """Remember an answer."""
        with self._lock:
            self._held.pop(key, None)
            self._held[key] = (time.monotonic() + seconds, answer)
            while len(self._held) > _MAX_REMEMBERED:
                self._held.popitem(last=False)
