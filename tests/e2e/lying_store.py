"""An S3 server that answers as if it checked conditions, but ignores them.

Everything else of it is right, so only conditional requests reveal it.
"""

from __future__ import annotations

import hashlib
import re
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

DATE = "Thu, 01 Jan 2026 00:00:00 GMT"


class Liar(BaseHTTPRequestHandler):
    """A bucket in memory."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes]

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _key(self) -> str:
        return urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    @staticmethod
    def _tag(body: bytes) -> str:
        return f'"{hashlib.md5(body).hexdigest()}"'

    def do_PUT(self) -> None:
        """Write, whatever the condition."""
        body = self._body()
        self.objects[self._key()] = body
        self._answer(200, ETag=self._tag(body))

    def do_HEAD(self) -> None:
        """As a GET."""
        self.do_GET()

    def do_GET(self) -> None:
        """Read an object, or list."""
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        if "list-type" in query:
            self._list(query)
            return
        body = self.objects.get(self._key())
        if body is None:
            text = b"<Error><Code>NoSuchKey</Code><Message>no</Message></Error>"
            self._answer(404, text, Content_Type="application/xml")
            return
        headers = {"ETag": self._tag(body), "Last_Modified": DATE}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            self._answer(200, body, **headers)
            return
        first, last = int(wanted[1]), int(wanted[2] or len(body) - 1)
        last = min(last, len(body) - 1)
        place = f"bytes {first}-{last}/{len(body)}"
        self._answer(206, body[first : last + 1], Content_Range=place, **headers)

    def _list(self, query: dict[str, list[str]]) -> None:
        bucket = "/" + self._key().strip("/") + "/"
        prefix = bucket + query.get("prefix", [""])[0]
        after = bucket + query.get("start-after", [""])[0]
        rows = []
        # Others write meanwhile.
        held = dict(self.objects)
        for key, body in sorted(held.items()):
            if key.startswith(prefix) and key > after:
                name, tag = escape(key.removeprefix(bucket)), escape(self._tag(body))
                rows.append(
                    f"<Contents><Key>{name}</Key><Size>{len(body)}</Size><ETag>{tag}</ETag>"
                    "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                )
        text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(rows)}"
        self._answer(200, f"{text}</ListBucketResult>".encode(), Content_Type="application/xml")

    def do_DELETE(self) -> None:
        """Remove, whatever the condition."""
        self.objects.pop(self._key(), None)
        self._answer(204)

    def do_POST(self) -> None:
        """Remove several at once."""
        names = re.findall(r"<Key>([^<]*)</Key>", self._body().decode())
        bucket = "/" + self._key().strip("/") + "/"
        for name in names:
            self.objects.pop(bucket + name, None)
        gone = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
        text = f"<DeleteResult>{gone}</DeleteResult>".encode()
        self._answer(200, text, Content_Type="application/xml")


@contextmanager
def lying_store() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Serve one: where it answers, and what it holds."""
    held: dict[str, bytes] = {}
    handler = type("LiarWithObjects", (Liar,), {"objects": held})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", held
        server.shutdown()
        thread.join()
