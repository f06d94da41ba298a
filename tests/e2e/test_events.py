"""What goes on in the library, as a stream of events that an HTTP client reads."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from conftest import Start
from harness import ACCESS_KEY, SECRET_KEY, Server, restore

TARGET = "/-/events"
READ_SECONDS = 60.0


def authorization(method: str, target: str) -> str:
    """Sign an operator's call without a body, as docs/operating.md says."""
    context = "fulgurite-admin v2"
    key = hmac.digest(SECRET_KEY.encode(), f"{context} {ACCESS_KEY}".encode(), "sha256")
    now, nonce, body = time.time_ns() // 1_000_000, os.urandom(16).hex(), hashlib.sha256()
    said = "\n".join([context, method, target, body.hexdigest(), str(now), nonce])
    signature = hmac.digest(key, said.encode(), "sha256").hex()
    return f"Fulgurite-HMAC-SHA256 Time={now}, Nonce={nonce}, Signature={signature}"


@contextmanager
def watching(server: Server, target: str = TARGET) -> Iterator[Iterator[tuple[str, Any]]]:
    """Watch the library, or what else there is: events by name, with what they hold."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=READ_SECONDS)
    connection.request("GET", target, headers={"Authorization": authorization("GET", target)})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    assert answer.headers["content-type"] == "text/event-stream"
    yield events(answer)
    connection.close()


def events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    """Read events until the stream ends."""
    fields: dict[str, str] = {}
    while line := answer.readline().decode():
        name, _, value = line.rstrip("\n").partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
        elif "event" in fields:
            yield fields["event"], json.loads(fields["data"])
            fields = {}


def test_restore_events_stream_until_the_archive_stops(start: Start) -> None:
    """A snapshot, then each step without a gap: seal and restore. The end event has the reason."""
    server = start()
    s3 = server.s3()
    s3.create_bucket(Bucket="watched")
    s3.put_object(Bucket="watched", Key="deep", Body=b"deep", StorageClass="DEEP_ARCHIVE")
    with watching(server) as seen:
        name, snapshot = next(seen)
        assert name == "snapshot"
        shape = snapshot["shape"]
        assert len(snapshot["library"]["shuttles"]) == shape["panels"] * shape["shuttles_per_panel"]
        server.seal()
        restore(s3, "watched", "deep", tier="Standard")
        last, outcomes = snapshot["step"], []
        while "read" not in outcomes:
            name, step = next(seen)
            assert (name, step["step"]) == ("step", last + 1)
            last += 1
            ends = [output["finished"] for output in step["outputs"] if "finished" in output]
            outcomes += [end["outcome"] for end in ends]
        assert outcomes.count("verified") == outcomes.count("stored") >= 4, outcomes
        with watching(server) as others:
            assert next(others)[1]["step"] >= last
        assert server.stop() == 0
        rest = list(seen)
        assert rest[-1] == ("end", {"reason": "stopped"})
        assert all(name == "step" for name, _ in rest[:-1])
