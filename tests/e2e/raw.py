"""Requests byte by byte: what no well-behaved client would send."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from harness import ACCESS_KEY, REGION, SECRET_KEY, Server

TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Answer:
    """What came back; `status` is 0 when the connection was closed without an answer."""

    status: int
    body: bytes

    @property
    def code(self) -> str:
        """The S3 error code."""
        found = re.search(rb"<Code>(.*?)</Code>", self.body)
        return found.group(1).decode() if found else ""


class Signer(S3SigV4Auth):
    """Signs headers with a payload hash that is given, not computed."""

    def __init__(self, payload: str, secret: str) -> None:
        """Keep what will stand for the payload."""
        super().__init__(Credentials(ACCESS_KEY, secret), "s3", REGION)
        self._payload = payload

    def payload(self, request: AWSRequest) -> str:
        """Name the given hash."""
        return self._payload


def signed(
    method: str,
    path: str,
    *,
    host: str,
    headers: dict[str, str] | None = None,
    length: int = 0,
    secret: str = SECRET_KEY,
    payload: str = "UNSIGNED-PAYLOAD",
) -> bytes:
    """Build the head of a request that declares `length` bytes; the payload is not signed."""
    request = AWSRequest(method, f"http://{host}{path}", headers=headers or {})
    request.headers["Host"] = host
    request.headers["Content-Length"] = str(length)
    Signer(payload, secret).add_auth(request)
    lines = [f"{method} {path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def connect(server: Server) -> socket.socket:
    """Open a connection."""
    return socket.create_connection(("127.0.0.1", server.port), TIMEOUT_SECONDS)


def exchange(server: Server, *pieces: bytes, then_close: bool = False) -> Answer:
    """Send the pieces, end the sending side if asked, and read until the answer is whole."""
    with connect(server) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
            if then_close:
                connection.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server may answer, and close, before everything was sent
        return receive(connection)


def receive(connection: socket.socket) -> Answer:
    """Read one answer."""
    data = b""
    try:
        while piece := connection.recv(65536):
            data += piece
            head, end, body = data.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)\ncontent-length: *(\d+)", head)
            if end and length and len(body) >= int(length.group(1)):
                break
            if end and b"\r\ntransfer-encoding: chunked" in head.lower() and b"\r\n0\r\n" in body:
                break
    except (ConnectionResetError, TimeoutError):
        pass
    head, _, body = data.partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.1 (\d+)", head)
    return Answer(int(status.group(1)) if status else 0, body)
