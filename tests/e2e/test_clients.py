"""Real clients through the whole cycle: archive, seal, refuse, restore, read, compare, delete."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import raw
import tree
from botocore.config import Config
from conftest import Start
from harness import (
    READY_SECONDS,
    Server,
    aws_environment,
    keys_of,
    rclone_environment,
    refused,
    restore,
    run,
    seed,
    tool,
    wait_restored,
    wait_until,
)

SECONDS = 400.0
# More than a listing has on a page, and than one request deletes: 1,000 of each.
LARGE_TREE_FILES = int(os.environ.get("FULGURITE_TEST_FILES", "1050"))
SMALL_TREE_FILES = 300
CLI_RESTORES = 5


def seal_everything(server: Server) -> None:
    """Seal, and check that nothing is left in staging."""
    server.seal()
    status = server.status()
    assert status["objects_staged"] == 0, status
    assert status["staged_bytes"] == 0, status
    states = {row["state"] for row in status["sets"]}
    assert states == {"released"}, status


def check_all_archived(s3: Any, bucket: str, files: dict[str, str]) -> None:
    """The bucket lists exactly `files`, all DEEP_ARCHIVE, and serves none of them."""
    listed = {item["Key"]: item["StorageClass"] for item in keys_of(s3, bucket)}
    assert listed.keys() == files.keys()
    assert set(listed.values()) == {"DEEP_ARCHIVE"}
    for key in sorted(files)[:20]:
        answer = refused(lambda key=key: s3.get_object(Bucket=bucket, Key=key))
        assert answer == (403, "InvalidObjectState")


def check_same(folder: Path, files: dict[str, str]) -> None:
    """Every file came back with every byte."""
    back = tree.digests(folder)
    assert sorted(back) == sorted(files)
    different = [name for name in files if back[name] != files[name]]
    assert different == []


def test_aws_cli_large_tree(start: Start, tmp_path: Path) -> None:
    """AWS CLI over HTTP: over a thousand files from 0 bytes to 64 MiB."""
    server = start()
    environment = aws_environment(tmp_path)
    files = tree.make(tmp_path / "tree", LARGE_TREE_FILES, seed(), is_large=True)
    assert len(files) >= LARGE_TREE_FILES

    def aws(*arguments: str) -> str:
        command = [tool("aws"), "--endpoint-url", server.endpoint, *arguments]
        done = run(command, SECONDS, environment, tmp_path)
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    def cp(*arguments: str) -> None:
        aws("s3", "cp", "--recursive", "--only-show-errors", *arguments)

    aws("s3", "mb", "s3://aws")
    cp("--storage-class", "DEEP_ARCHIVE", "tree", "s3://aws")
    seal_everything(server)
    s3 = server.s3()
    check_all_archived(s3, "aws", files)

    request = '{"Days":1,"GlacierJobParameters":{"Tier":"Standard"}}'
    names = sorted(files)
    for key in names[:CLI_RESTORES]:
        aws(
            "s3api",
            "restore-object",
            "--bucket=aws",
            f"--key={key}",
            f"--restore-request={request}",
        )
    # One process of the CLI for each of a thousand objects would take minutes; the rest goes
    # through the library that the CLI is made of.
    with ThreadPoolExecutor(8) as pool:
        rest = pool.map(lambda key: restore(s3, "aws", key), names[CLI_RESTORES:])
        assert set(rest) == {202}
    wait_restored(s3, "aws", SECONDS)
    head = json.loads(aws("s3api", "head-object", "--bucket=aws", f"--key={names[0]}"))
    assert head["Restore"].startswith('ongoing-request="false", expiry-date="')
    assert head["StorageClass"] == "DEEP_ARCHIVE"

    # Without the flag the CLI skips every archived key of a recursive copy, restored or not.
    cp("--force-glacier-transfer", "s3://aws", "back")
    check_same(tmp_path / "back", files)

    aws("s3", "rm", "--recursive", "--only-show-errors", "s3://aws")
    assert list(keys_of(s3, "aws")) == []
    aws("s3", "rb", "s3://aws")


def test_boto3(start: Start, tmp_path: Path) -> None:
    """boto3 over HTTP: some hundred files, with user metadata and multipart uploads."""
    server = start()
    s3 = server.s3()
    files = tree.make(tmp_path / "tree", SMALL_TREE_FILES, seed(), is_large=False)
    tree.write(tmp_path / "tree" / "multipart.bin", b"glass" * 4_000_000)
    files = tree.digests(tmp_path / "tree")
    s3.create_bucket(Bucket="boto3")

    def upload(key: str) -> None:
        options = {"StorageClass": "DEEP_ARCHIVE", "Metadata": {"origin": "test", "n": "1"}}
        s3.upload_file(str(tmp_path / "tree" / key), "boto3", key, ExtraArgs=options)

    def download(key: str) -> None:
        to = tmp_path / "back" / key
        to.parent.mkdir(parents=True, exist_ok=True)
        s3.download_file("boto3", key, str(to))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(upload, files))
        seal_everything(server)
        check_all_archived(s3, "boto3", files)
        assert set(pool.map(lambda key: restore(s3, "boto3", key), files)) == {202}
        wait_restored(s3, "boto3", SECONDS)
        assert set(pool.map(lambda key: restore(s3, "boto3", key), files)) == {200}
        list(pool.map(download, files))
    check_same(tmp_path / "back", files)
    head = s3.head_object(Bucket="boto3", Key="multipart.bin")
    assert head["Metadata"] == {"origin": "test", "n": "1"}
    assert head["ContentLength"] == 20_000_000
    assert head["ETag"].endswith('-3"')

    doomed = [{"Key": key} for key in files]
    answer = s3.delete_objects(Bucket="boto3", Delete={"Objects": doomed})
    assert len(answer["Deleted"]) == len(files)
    assert list(keys_of(s3, "boto3")) == []
    s3.delete_bucket(Bucket="boto3")


def test_boto3_after_an_empty_body(start: Start) -> None:
    """A refusal on a connection that carried an empty body before is seen as one.

    botocore waits for 100 Continue. When the final answer comes instead, as it may for an empty
    body, botocore gives that status to the next request on the connection too, unless the
    connection is closed.
    """
    server = start()
    s3 = server.s3(config=Config(max_pool_connections=1))
    s3.create_bucket(Bucket="empty")
    target = {"Bucket": "empty", "Key": "k"}
    for _ in range(3):
        s3.put_object(**target, Body=b"")
        wrong = {"ChecksumCRC32": "AAAAAA=="}
        answer = refused(lambda wrong=wrong: s3.put_object(**target, Body=b"x", **wrong))
        assert answer == (400, "BadDigest")
        assert s3.put_object(**target, Body=b"x")["ETag"]


def test_boto3_over_tls_sends_trailers(start: Start) -> None:
    """Over TLS boto3 sends checksums after the body; they are checked and given back."""
    server = start(tls="auto")
    s3 = server.s3()
    s3.create_bucket(Bucket="trailers")
    for algorithm in ("CRC32", "CRC32C", "SHA1", "SHA256"):
        if algorithm == "CRC32C":
            continue  # needs an extra native package of the client
        body = algorithm.encode() * 50_000
        s3.put_object(Bucket="trailers", Key=algorithm, Body=body, ChecksumAlgorithm=algorithm)
        got = s3.get_object(Bucket="trailers", Key=algorithm, ChecksumMode="ENABLED")
        assert got["Body"].read() == body
        assert f"Checksum{algorithm}" in got


def test_rclone_over_tls(start: Start, tmp_path: Path) -> None:
    """Go's S3 library over TLS: rclone with its own restore commands."""
    server = start(tls="auto")
    files = tree.make(tmp_path / "tree", SMALL_TREE_FILES, seed(), is_large=False)

    def call(*arguments: str) -> Any:
        command = [tool("rclone"), "--ca-cert", str(server.certificate()), *arguments]
        return run(command, SECONDS, rclone_environment(server), tmp_path)

    def rclone(*arguments: str) -> str:
        done = call(*arguments)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    rclone("mkdir", "archive:rclone")
    rclone("copy", "tree", "archive:rclone")
    seal_everything(server)
    s3 = server.s3()
    assert len(list(keys_of(s3, "rclone"))) == len(files)
    early = call("copy", "archive:rclone/sizes", "early")
    assert early.returncode != 0
    # rclone turns InvalidObjectState into its own words.
    assert "restore first" in early.stderr

    options = ["-o", "priority=Standard", "-o", "lifetime=1"]
    asked = json.loads(rclone("backend", "restore", "archive:rclone", *options))
    assert {row["Status"] for row in asked} == {"OK"}
    assert len(asked) == len(files)

    def is_restored_by_rclone() -> bool:
        rows = json.loads(rclone("backend", "restore-status", "archive:rclone", "-o", "all"))
        states = [row["RestoreStatus"] for row in rows]
        return all(state and not state["IsRestoreInProgress"] for state in states)

    wait_until("rclone sees every object restored", is_restored_by_rclone, SECONDS)
    rclone("copy", "archive:rclone", "back")
    check_same(tmp_path / "back", files)
    rclone("check", "archive:rclone", "tree")
    rclone("purge", "archive:rclone")
    assert s3.list_buckets()["Buckets"] == []


def test_presigned_urls(server: Server, s3: Any, bucket: str) -> None:
    """Presigned URLs put and get without credentials."""
    parameters = {"Bucket": bucket, "Key": "a b+c%"}
    put = s3.generate_presigned_url("put_object", Params=parameters)
    request = urllib.request.Request(put, data=b"by anyone", method="PUT")
    assert urllib.request.urlopen(request, timeout=READY_SECONDS).status == 200
    get = s3.generate_presigned_url("get_object", Params=parameters)
    assert urllib.request.urlopen(get, timeout=READY_SECONDS).read() == b"by anyone"


def test_presigned_urls_of_version_2(server: Server, s3: Any, bucket: str, tmp_path: Path) -> None:
    """What `aws s3 presign` and boto3 make without settings is signed with version 2."""
    s3.put_object(Bucket=bucket, Key="a b+c%", Body=b"by anyone")
    parameters = {"Bucket": bucket, "Key": "a b+c%", "ResponseContentType": "text/plain"}
    old = server.s3(config=Config(signature_version="s3"))
    command = [tool("aws"), "--endpoint-url", server.endpoint, "s3", "presign"]
    environment = aws_environment(tmp_path)
    printed = run([*command, f"s3://{bucket}/a b+c%"], SECONDS, environment, tmp_path)
    assert printed.returncode == 0, printed.stderr
    made = old.generate_presigned_url("get_object", Params=parameters)
    for url in (made, printed.stdout.strip()):
        assert "&Signature=" in url, url
        assert urllib.request.urlopen(url, timeout=READY_SECONDS).read() == b"by anyone"
    put = old.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "new"})
    request = urllib.request.Request(put, data=b"x", method="PUT")
    with pytest.raises(urllib.error.HTTPError, match="400") as caught:
        urllib.request.urlopen(request, timeout=READY_SECONDS)
    assert b"s3v4" in caught.value.read(), "the setting that helps is named"


def test_virtual_host_style(start: Start) -> None:
    """With a domain configured, the bucket may stand in the host name."""
    server = start({"domain": "archive.test"})
    s3 = server.s3()
    s3.create_bucket(Bucket="virtual")
    s3.put_object(Bucket="virtual", Key="k", Body=b"by host")
    head = raw.signed("GET", "/k", host="virtual.archive.test")
    assert raw.exchange(server, head).body == b"by host"
