"""Makes a CA and a server's certificate, keeps them in a Secret that replicas share, and renews them in time."""

from __future__ import annotations

import base64
import binascii
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore._text import logged
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.kubernetes.https.certificates import Authority, ends_of, names_of, require_cryptography
from kueuecore.kubernetes.https.tls import CertificateError, KeyPair, check_pair

__all__ = ["SecretCertificates"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_CA_NAME = "kueue-ca"
# Renewed so long before they end, as Kueue's are.
_AHEAD = timedelta(days=90)
_PERIOD_SECONDS = 60.0
# Until it is tried again.
_FAULT_SECONDS = 10.0
_MAX_TRIES = 5
_FIELDS = ("ca.crt", "ca.key", "tls.crt", "tls.key")
_END = "-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class _Made:
    """What is in the Secret.

    Args:
        authority: The CA; its certificate is the first of `bundle`.
        bundle: The CAs that clients should trust: also the last one, until it ends.
        pair: The server's certificate.
    """

    authority: Authority
    bundle: str
    pair: KeyPair

    def data(self) -> JsonObject:
        texts = {"ca.crt": self.bundle, "ca.key": self.authority.key}
        texts |= {"tls.crt": self.pair.certificate, "tls.key": self.pair.key}
        return {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}


class SecretCertificates:
    """A certificate in a Secret, made and renewed by whichever replica sees first that it is due.

    The names of a certificate only grow, so that two replicas of different settings do not take turns to replace it.

    Args:
        api: The API server; its `kinds` need not have Secrets.
        namespace: The namespace of the Secret.
        name: Its name; it need not exist.
        names: The DNS names of the server.
        publish: Called at each look with the CAs that clients should trust, as PEM: to write them where others look.
        clock: Returns the time.

    Raises:
        CertificateError: The extra is not installed.
    """

    def __init__(
        self,
        api: Api,
        *,
        namespace: str,
        name: str,
        names: Sequence[str],
        publish: Callable[[str], None] = lambda _: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        require_cryptography()
        self._api, self._namespace, self._name = api, namespace, name
        self._path = f"/api/v1/namespaces/{namespace}/secrets"
        self._names, self._publish, self._clock = tuple(names), publish, clock
        self._over = threading.Event()
        self._made: _Made | None = None
        self._fault = ""

    def current(self) -> KeyPair:
        """Return the pair that was read last.

        Raises:
            CertificateError: None was read yet.
        """
        if self._made is None:
            raise CertificateError(f"Secret {self._namespace}/{self._name} could not be read yet: {self._fault}")
        return self._made.pair

    @property
    def fault(self) -> str:
        """Why there is no certificate, or the last look at it failed; empty if all is well."""
        return self._fault

    @property
    def missing(self) -> str:
        """Why there is no certificate that clients take; empty if there is one, even if it cannot be renewed."""
        if self._made is not None and ends_of(self._made.pair.certificate) > self._clock():
            return ""
        return self._fault or "it was not looked for yet"

    def start(self) -> None:
        """Look at the Secret now, and each minute in a thread; after a fault sooner."""
        self.look()
        threading.Thread(target=self._repeat, name="certificates", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._over.set()

    def _repeat(self) -> None:
        while not self._over.wait(_PERIOD_SECONDS if not self._fault else _FAULT_SECONDS):
            self.look()

    def look(self) -> None:
        """Look at the Secret, and log what is wrong once."""
        try:
            self.refresh()
        except (RefusedError, UnansweredError, CertificateError) as error:
            fault = logged(error)
            if fault != self._fault:
                extra = {"secret": f"{self._namespace}/{self._name}", "error": fault}
                _LOGGER.warning("certificates cannot be stored, is tried again", extra=extra)
            self._fault = fault
            return
        if self._fault:
            _LOGGER.info("certificates are stored again", extra={"secret": f"{self._namespace}/{self._name}"})
        self._fault = ""

    def refresh(self) -> None:
        """Read the Secret, renew what is due there, and publish its CAs.

        Raises:
            RefusedError: The server refuses.
            UnansweredError: The server does not answer.
            CertificateError: Others keep changing the Secret.
        """
        for _ in range(_MAX_TRIES):
            try:
                found = self._refresh()
            except RefusedError as error:
                if error.code == 409:
                    # Another replica has just done the same.
                    continue
                raise
            self._made = found
            self._publish(found.bundle)
            return
        raise CertificateError(f"Secret {self._namespace}/{self._name} is changed by others again and again")

    def _refresh(self) -> _Made:
        now = self._clock()
        try:
            secret = self._api.get(f"{self._path}/{self._name}")
        except RefusedError as error:
            if error.code != 404:
                raise
            made = self._renewed(None, now)
            metadata: JsonObject = {"name": self._name, "namespace": self._namespace}
            self._write("POST", self._path, {"metadata": metadata, "data": made.data()}, "made")
            return made
        held = _held(object_at(secret, "data"))
        # Served even if it may not be renewed: it lasts for some months yet.
        self._made = held or self._made
        made = self._renewed(held, now)
        if made != held:
            data = {**object_at(secret, "data"), **made.data()}
            try:
                self._write("PUT", f"{self._path}/{self._name}", {**secret, "data": data}, "renewed")
            except RefusedError as error:
                if held is not None and error.code != 409:
                    self._publish(held.bundle)
                raise
        return made

    def _write(self, method: str, path: str, secret: JsonObject, what: str) -> None:
        self._api.send(method, path, {"apiVersion": "v1", "kind": "Secret", **secret})
        _LOGGER.info("certificates %s", what, extra={"secret": f"{self._namespace}/{self._name}"})

    def _renewed(self, held: _Made | None, now: datetime) -> _Made:
        """Return what is held, or what should be instead."""
        if held is None or ends_of(held.bundle) < now + _AHEAD:
            return self._anew(held, now)
        has_names = names_of(held.pair.certificate) >= {*self._names}
        if has_names and ends_of(held.pair.certificate) > now + _AHEAD:
            return held
        try:
            return _Made(held.authority, held.bundle, held.authority.sign(self._names_after(held), now=now))
        except CertificateError:
            # A CA of others, with a key of another kind: nobody here can renew what it has signed.
            return self._anew(held, now)

    def _anew(self, held: _Made | None, now: datetime) -> _Made:
        authority = Authority.made(_CA_NAME, now=now)
        # Servers that have not looked yet still use what the last CA has signed.
        last = held.authority.certificate if held is not None and ends_of(held.bundle) > now else ""
        return _Made(authority, authority.certificate + last, authority.sign(self._names_after(held), now=now))

    def _names_after(self, held: _Made | None) -> list[str]:
        others = names_of(held.pair.certificate) - {*self._names} if held is not None else ()
        return [*self._names, *sorted(others)]


def _held(data: JsonObject) -> _Made | None:
    """Return what a Secret holds; None if that is not all, or cannot be used."""
    try:
        texts = [base64.b64decode(text_at(data, name), validate=True).decode("ascii") for name in _FIELDS]
    except (binascii.Error, ValueError):
        return None
    bundle, ca_key, certificate, key = texts
    first, end, _ = bundle.partition(_END)
    authority = Authority(f"{first}{end}\n", ca_key)
    pair = KeyPair(certificate, key)
    try:
        check_pair(KeyPair(authority.certificate, ca_key))
        check_pair(pair)
        is_whole = authority.has_signed(pair)
    except CertificateError:
        return None
    return _Made(authority, bundle, pair) if is_whole else None
