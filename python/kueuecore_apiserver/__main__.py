"""Serve an API server for tests on loopback, and print how to reach it: `python -m kueuecore_apiserver`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.manifests import read_manifests
from kueuecore.webhooks import admit
from kueuecore_apiserver import HttpApiServer
from kueuecore_apiserver.loading import in_order
from kueuecore_apiserver.plain_crds import framework_crds, kueue_crds
from kueuecore_apiserver.requests import Object

_NAMESPACES = ("default", "kube-system")


def kubeconfig(url: str, token: str = "") -> str:
    """Return a kubeconfig for a server.

    Args:
        url: Its URL.
        token: The user's token, if the server requires one.
    """
    user = f"{{token: {token}}}" if token else "{}"
    return f"""\
apiVersion: v1
kind: Config
current-context: kueuecore
clusters: [{{name: kueuecore, cluster: {{server: "{url}"}}}}]
users: [{{name: kueuecore, user: {user}}}]
contexts: [{{name: kueuecore, context: {{cluster: kueuecore, user: kueuecore, namespace: default}}}}]
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the process receives SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m kueuecore_apiserver", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; by default a free one")
    parser.add_argument("--load", type=Path, action="append", default=[], metavar="PATH", help="a file or a folder")
    parser.add_argument("--kueue", action="store_true", help="have Kueue's kinds, and ask its webhooks")
    parser.add_argument("--frameworks", action="store_true", help="have the kinds of job frameworks")
    parser.add_argument("--seed", type=int, default=0, help="draws UIDs and generated names")
    parser.add_argument("--kubeconfig", type=Path, help="write the kubeconfig there; by default it is printed")
    options = parser.parse_args(arguments)
    server = HttpApiServer(
        ApiServer(),
        seed=options.seed,
        clock=time.time_ns,
        webhooks=admit if options.kueue else None,
        collects_garbage=True,
        port=options.port,
    )
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with server:
        try:
            server.load(_objects(options))
        except (RefusedError, OSError, ValueError) as error:
            sys.stderr.write(f"error: {error}\n")
            return 1
        if options.kubeconfig is None:
            sys.stdout.write(kubeconfig(server.url))
            sys.stdout.flush()
        else:
            options.kubeconfig.write_text(kubeconfig(server.url), encoding="utf-8")
        stopped.wait()
    return 0


def _objects(options: argparse.Namespace) -> list[Object]:
    """Return the initial objects."""
    crds = [*(kueue_crds() if options.kueue else ()), *(framework_crds() if options.frameworks else ())]
    namespaces: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in _NAMESPACES
    ]
    return [
        *crds,
        *namespaces,
        *in_order([manifest.object for manifest in read_manifests(*options.load, recursive=True)]),
    ]


if __name__ == "__main__":
    sys.exit(main())
