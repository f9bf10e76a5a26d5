"""Servers that are started once a module: starting one is most of what a test here costs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.servers import Server, ServerKind, ServerMissing, free_port


def new_server(*options: str, kind: ServerKind | None = None) -> Server:
    """A server that is not started: in CI a missing one is a failure, elsewhere a reason to skip."""
    try:
        return Server(kind, options=options)
    except ServerMissing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


class TlsServer:
    """A server that also listens with TLS, and the files of its certificates."""

    def __init__(self, server: Server, port: int, folder: Path) -> None:
        self.server = server
        self.port = port
        self.ca = folder / "ca.pem"
        self.certificate = folder / "client.pem"

    @property
    def query(self) -> str:
        return f"ssl_ca_certs={self.ca}&ssl_certfile={self.certificate}&ssl_keyfile={self.certificate}"


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    """Debian's redis-server, which asks clients for a certificate as well: the Valkey of the wheel has no TLS."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    client = authority.issue_cert("client.example.org")
    client.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    port = free_port()
    files = ("--tls-ca-cert-file", "ca.pem", "--tls-cert-file", "server.pem", "--tls-key-file", "server.pem")
    options = [str(folder / each) if each.endswith(".pem") else each for each in files]
    with new_server("--tls-port", str(port), *options, kind=ServerKind.REDIS) as server:
        yield TlsServer(server, port, folder)


@pytest.fixture(scope="module")
def unix_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server with a unix socket."""
    socket = tmp_path_factory.mktemp("unix") / "redis.sock"
    with new_server("--unixsocket", str(socket)) as server:
        yield server, socket
