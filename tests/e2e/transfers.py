"""Clients that move objects in parts: each uploads, downloads, restores and deletes.

What a client does is behind four methods. A download says "ok", or in the client's own words why it
was refused. Programs in `clients/` are built once under `target/clients`, with what their lock
files pin, and take commands on standard input.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import select
import shutil
import subprocess
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

import pytest
from awscrt import auth, http, s3
from awscrt import io as crt_io
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError
from harness import (
    ACCESS_KEY,
    MIB,
    REGION,
    ROOT,
    RUN_SECONDS,
    SECRET_KEY,
    Server,
    aws_environment,
    rclone_environment,
    run,
    tool,
)

BUCKET = "transfers"
PART_BYTES = 5 * MIB
BUILD_SECONDS = 600.0


class Transfers(Protocol):
    """What every client can do with an object of the bucket."""

    def upload(self, file: Path, key: str, storage_class: str) -> None:
        """Put a file in parts; it must succeed."""

    def download(self, key: str, file: Path) -> str:
        """Get an object into a file: "ok", or why not."""

    def restore(self, key: str) -> None:
        """Ask for a restored copy for a day."""

    def delete(self, key: str) -> None:
        """Delete an object."""


class Boto3:
    """boto3, by its transfer manager: parts up, ranges down."""

    def __init__(self, server: Server, folder: Path) -> None:
        """Make a client."""
        self.s3 = server.s3()
        self.parts = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES)

    def upload(self, file: Path, key: str, storage_class: str) -> None:
        """By upload_file."""
        options = {"StorageClass": storage_class}
        self.s3.upload_file(str(file), BUCKET, key, ExtraArgs=options, Config=self.parts)

    def download(self, key: str, file: Path) -> str:
        """By download_file, which asks for the length first."""
        try:
            self.s3.download_file(BUCKET, key, str(file), Config=self.parts)
        except ClientError as error:
            return str(error)
        return "ok"

    def restore(self, key: str) -> None:
        """By RestoreObject."""
        request = {"Days": 1, "GlacierJobParameters": {"Tier": "Standard"}}
        self.s3.restore_object(Bucket=BUCKET, Key=key, RestoreRequest=request)

    def delete(self, key: str) -> None:
        """By DeleteObject."""
        self.s3.delete_object(Bucket=BUCKET, Key=key)


class Command:
    """A client that is a command: what it prints when it fails is its word."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        """Keep what every call has in common."""
        self.command, self.environment, self.folder = command, environment, folder

    def call(self, *arguments: str) -> str:
        """Run it: "ok", or what it printed."""
        done = run([*self.command, *arguments], RUN_SECONDS, self.environment, self.folder)
        return "ok" if done.returncode == 0 else done.stdout + done.stderr

    def must(self, *arguments: str) -> None:
        """Run it; it must succeed."""
        answer = self.call(*arguments)
        assert answer == "ok", answer[-4000:]


class AwsCli(Command):
    """The AWS CLI."""

    def __init__(self, server: Server, folder: Path) -> None:
        """Set the size of parts."""
        environment = aws_environment(folder)
        with Path(environment["AWS_CONFIG_FILE"]).open("a", encoding="utf-8") as config:
            config.write("  multipart_threshold = 5MB\n  multipart_chunksize = 5MB\n")
        command = [tool("aws"), "--endpoint-url", server.endpoint]
        if server.tls:
            command += ["--ca-bundle", str(server.certificate())]
        super().__init__(command, environment, folder)

    def upload(self, file: Path, key: str, storage_class: str) -> None:
        """By s3 cp."""
        options = ["--only-show-errors", "--storage-class", storage_class]
        self.must("s3", "cp", *options, str(file), f"s3://{BUCKET}/{key}")

    def download(self, key: str, file: Path) -> str:
        """By s3 cp, which would not even ask for an archived object otherwise."""
        options = ["--only-show-errors", "--force-glacier-transfer"]
        return self.call("s3", "cp", *options, f"s3://{BUCKET}/{key}", str(file))

    def restore(self, key: str) -> None:
        """By s3api restore-object."""
        request = "Days=1,GlacierJobParameters={Tier=Standard}"
        options = [f"--bucket={BUCKET}", f"--key={key}", f"--restore-request={request}"]
        self.must("s3api", "restore-object", *options)

    def delete(self, key: str) -> None:
        """By s3 rm."""
        self.must("s3", "rm", "--only-show-errors", f"s3://{BUCKET}/{key}")


class Rclone(Command):
    """rclone, with the S3 library of Go below it."""

    def __init__(self, server: Server, folder: Path) -> None:
        """Set the size of parts."""
        size = {"CHUNK_SIZE": "5M", "UPLOAD_CUTOFF": "5M"}
        sizes = {f"RCLONE_CONFIG_ARCHIVE_{name}": value for name, value in size.items()}
        command = [tool("rclone")]
        if server.tls:
            command += ["--ca-cert", str(server.certificate())]
        super().__init__(command, rclone_environment(server) | sizes, folder)

    def upload(self, file: Path, key: str, storage_class: str) -> None:
        """By copyto."""
        options = ["--s3-storage-class", storage_class]
        self.must("copyto", *options, str(file), f"archive:{BUCKET}/{key}")

    def download(self, key: str, file: Path) -> str:
        """By copyto, with two streams if the file is long enough."""
        return self.call("copyto", f"archive:{BUCKET}/{key}", str(file))

    def restore(self, key: str) -> None:
        """By its own command."""
        options = ["-o", "priority=Standard", "-o", "lifetime=1"]
        self.must("backend", "restore", f"archive:{BUCKET}", "--include", key, *options)

    def delete(self, key: str) -> None:
        """By deletefile."""
        self.must("deletefile", f"archive:{BUCKET}/{key}")


class S3cmd(Command):
    """s3cmd with its default region."""

    def __init__(self, server: Server, folder: Path) -> None:
        """Set the size of parts."""
        config = folder / "s3cfg"
        config.write_text("[default]\n", encoding="utf-8")
        host = f"127.0.0.1:{server.port}"
        command = [tool("s3cmd"), "--config", str(config), "--no-progress", "--force"]
        command += ["--host", host, "--host-bucket", host, "--multipart-chunk-size-mb", "5"]
        command += ["--access_key", ACCESS_KEY, "--secret_key", SECRET_KEY]
        command += (
            ["--ssl", "--ca-certs", str(server.certificate())] if server.tls else ["--no-ssl"]
        )
        super().__init__(command, {}, folder)

    def upload(self, file: Path, key: str, storage_class: str) -> None:
        """By put."""
        self.must("put", "--storage-class", storage_class, str(file), f"s3://{BUCKET}/{key}")

    def download(self, key: str, file: Path) -> str:
        """By get."""
        return self.call("get", f"s3://{BUCKET}/{key}", str(file))

    def restore(self, key: str) -> None:
        """By restore."""
        options = ["--restore-days", "1", "--restore-priority", "standard"]
        self.must("restore", *options, f"s3://{BUCKET}/{key}")

    def delete(self, key: str) -> None:
        """By del."""
        self.must("del", f"s3://{BUCKET}/{key}")


class Crt:
    """The Common Runtime, on which the CLI 2, Mountpoint and SDKs can run."""

    def __init__(self, server: Server, folder: Path) -> None:
        """Make a client that signs and, over TLS, trusts the server's certificate."""
        self.host = f"127.0.0.1:{server.port}"
        provider = auth.AwsCredentialsProvider.new_static(ACCESS_KEY, SECRET_KEY)
        signing = s3.create_default_s3_signing_config(region=REGION, credential_provider=provider)
        mode, options = s3.S3RequestTlsMode.DISABLED, None
        if server.tls:
            mode, context = s3.S3RequestTlsMode.ENABLED, crt_io.TlsContextOptions()
            context.override_default_trust_store_from_path(None, server.certificate())
            options = crt_io.ClientTlsContext(context).new_connection_options()
        self.client = s3.S3Client(
            region=REGION,
            tls_mode=mode,
            tls_connection_options=options,
            signing_config=signing,
            part_size=PART_BYTES,
            throughput_target_gbps=1.0,
        )

    def ask(
        self,
        kind: s3.S3RequestType,
        request: tuple[str, str],
        headers: dict[str, str],
        body: bytes = b"",
        **options: Any,
    ) -> Future[None]:
        """Send a request: what it becomes."""
        method, path = request
        pairs = {"Host": self.host, **headers}
        stream = None
        if method in ("PUT", "POST") and "send_filepath" not in options:
            pairs["Content-Length"] = str(len(body))
            stream = io.BytesIO(body)
        asked = http.HttpRequest(method, f"/{BUCKET}/{path}", http.HttpHeaders(list(pairs.items())))
        if stream is not None:
            asked.body_stream = stream
        return self.client.make_request(type=kind, request=asked, **options).finished_future

    def upload(self, file: Path, key: str, storage_class: str) -> None:
        """By PUT_OBJECT, with a checksum in a trailer of each part."""
        crc32, trailer = s3.S3ChecksumAlgorithm.CRC32, s3.S3ChecksumLocation.TRAILER
        done = self.ask(
            s3.S3RequestType.PUT_OBJECT,
            ("PUT", key),
            {"Content-Length": str(file.stat().st_size), "x-amz-storage-class": storage_class},
            send_filepath=str(file),
            checksum_config=s3.S3ChecksumConfig(algorithm=crc32, location=trailer),
        )
        done.result(RUN_SECONDS)

    def download(self, key: str, file: Path) -> str:
        """By GET_OBJECT, which asks for the first part to learn how many there are."""
        check = s3.S3ChecksumConfig(validate_response=True)
        done = self.ask(
            s3.S3RequestType.GET_OBJECT,
            ("GET", key),
            {},
            recv_filepath=str(file),
            checksum_config=check,
        )
        try:
            done.result(RUN_SECONDS)
        except s3.S3ResponseError as error:
            return f"{error.status_code} {(error.body or b'').decode()}"
        return "ok"

    def restore(self, key: str) -> None:
        """By a plain request."""
        body = (
            b"<RestoreRequest><Days>1</Days><GlacierJobParameters><Tier>Standard</Tier>"
            b"</GlacierJobParameters></RestoreRequest>"
        )
        kind, options = s3.S3RequestType.DEFAULT, {"operation_name": "RestoreObject"}
        done = self.ask(kind, ("POST", f"{key}?restore"), {}, body, **options)
        # The CRT takes 202 Accepted for a failure.
        with pytest.raises(s3.S3ResponseError) as answer:
            done.result(RUN_SECONDS)
        assert answer.value.status_code == 202, answer.value.body

    def delete(self, key: str) -> None:
        """By a plain request."""
        kind, options = s3.S3RequestType.DEFAULT, {"operation_name": "DeleteObject"}
        self.ask(kind, ("DELETE", key), {}, **options).result(RUN_SECONDS)


def build(name: str, needs: tuple[str, ...], *commands: list[str]) -> Path:
    """Have the program of `clients/NAME` built, once for all workers: its folder.

    Without its toolchain the test is skipped. Where packages cannot be had, only on machines that
    are not the gate's.
    """
    missing = [program for program in needs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    sources = sorted((Path(__file__).parent / "clients" / name).iterdir())
    digest = hashlib.sha256(repr(commands).encode())
    for source in sources:
        digest.update(source.name.encode() + source.read_bytes())
    made = ROOT / "target" / "clients" / name
    made.mkdir(parents=True, exist_ok=True)
    stamp = made / "built"
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text(encoding="ascii") == digest.hexdigest():
            return made
        for source in sources:
            shutil.copy(source, made)
        for command in commands:
            done = run(command, BUILD_SECONDS, cwd=made)
            if done.returncode != 0:
                what = f"{command[0]} cannot build it: {(done.stdout + done.stderr)[-4000:]}"
                if "FULGURITE_TEST_SERVERS" in os.environ:
                    pytest.fail(what)
                pytest.skip(what)
        stamp.write_text(digest.hexdigest(), encoding="ascii")
    return made


class Program:
    """A program of `clients/`: one command a line, one answer a line."""

    def __init__(self, command: list[str], environment: dict[str, str], server: Server) -> None:
        """Start it."""
        keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        quiet = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}
        self.process = subprocess.Popen(
            [*command, server.endpoint, BUCKET, str(PART_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | keys | quiet | environment,
        )

    def ask(self, *words: str) -> str:
        """Have a command carried out: the answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\t".join(words).encode() + b"\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], RUN_SECONDS)
        assert ready, f"no answer to {words}"
        answer = self.process.stdout.readline().decode().strip()
        assert answer, f"the client ended with {self.process.wait(RUN_SECONDS)} at {words}"
        return answer

    def must(self, *words: str) -> None:
        """Have a command carried out; it must succeed."""
        answer = self.ask(*words)
        assert answer == "ok", f"{words}: {answer}"

    def upload(self, file: Path, key: str, storage_class: str) -> None:
        """By the transfer manager of its SDK."""
        self.must("upload", key, str(file), storage_class)

    def download(self, key: str, file: Path) -> str:
        """By the transfer manager of its SDK."""
        return self.ask("download", key, str(file))

    def restore(self, key: str) -> None:
        """By RestoreObject."""
        self.must("restore", key)

    def delete(self, key: str) -> None:
        """By DeleteObject."""
        self.must("delete", key)

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait(RUN_SECONDS)


def javascript(server: Server, folder: Path) -> Program:
    """The SDK of JavaScript, with lib-storage for uploads."""
    install = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    made = build("js", ("node", "npm"), install)
    trusted = {"NODE_EXTRA_CA_CERTS": str(server.certificate())} if server.tls else {}
    return Program(["node", str(made / "client.js")], trusted, server)


def golang(server: Server, folder: Path) -> Program:
    """The SDK of Go, with its transfer manager."""
    made = build("go", ("go",), ["go", "build", "-o", "client", "."])
    trusted = {"AWS_CA_BUNDLE": str(server.certificate())} if server.tls else {}
    return Program([str(made / "client")], trusted, server)


def java(server: Server, folder: Path) -> Program:
    """The SDK of Java, version 2, with its TransferManager."""
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    options = ["-DincludeScope=runtime", "-DoutputDirectory=jars"]
    made = build(
        "java",
        ("javac", "java", "mvn", "keytool"),
        ["mvn", "--batch-mode", "--quiet", copy, *options],
        ["javac", "-d", ".", "-cp", "jars/*", "Client.java"],
    )
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{made}:{made}/jars/*"]
    if server.tls:
        store, password = folder / "trusted.p12", "changeit"
        options = ["-noprompt", "-keystore", str(store), "-storepass", password]
        done = run(["keytool", "-importcert", "-file", str(server.certificate()), *options])
        assert done.returncode == 0, done.stdout + done.stderr
        command += [f"-Djavax.net.ssl.trustStore={store}"]
        command += [f"-Djavax.net.ssl.trustStorePassword={password}"]
    return Program([*command, "Client"], {}, server)


CLIENTS = {
    "aws": AwsCli,
    "boto3": Boto3,
    "crt": Crt,
    "go": golang,
    "java": java,
    "js": javascript,
    "rclone": Rclone,
    "s3cmd": S3cmd,
}
