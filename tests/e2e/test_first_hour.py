"""What a new user does first, with the program itself and with the clients the documents name."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from conftest import Start
from harness import (
    KEYS,
    MIB,
    Server,
    aws_environment,
    binary,
    rclone_environment,
    run,
    tool,
)

STANDARD = ("--storage-class", "STANDARD")


def fulgurite(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command for an archive, with its keys."""
    return run([str(binary()), *arguments, "--endpoint", server.endpoint], environment=KEYS)


def last(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    """Give the summary of a run with `--json`; it must have succeeded."""
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_sync_and_rclone_agree(server: Server, tmp_path: Path) -> None:
    """A folder synced by one program is unchanged to the other, over plain HTTP."""
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "a b+%.txt").write_text("one", encoding="utf-8")
    (folder / "sub" / "b").write_bytes(os.urandom(6 * MIB))
    os.utime(folder / "sub" / "b", ns=(0, 1_500_000_000_123_456_789))
    environment = rclone_environment(server) | {"RCLONE_CONFIG_ARCHIVE_STORAGE_CLASS": "STANDARD"}
    environment["RCLONE_USE_JSON_LOG"] = "true"

    def rclone(*arguments: str) -> str:
        done = run([tool("rclone"), "-v", *arguments], environment=environment)
        assert done.returncode == 0, done.stderr
        return done.stderr

    url = "s3://first-hour/ours"
    done = last(fulgurite(server, "sync", "--json", "--make-bucket", *STANDARD, str(folder), url))
    assert (done["objects"], done["unchanged"]) == (2, 0)
    assert "There was nothing to transfer" in rclone("sync", str(folder), "archive:first-hour/ours")

    rclone("copy", str(folder), "archive:first-hour/theirs", "--s3-upload-cutoff=5M")
    theirs = "s3://first-hour/theirs"
    done = last(fulgurite(server, "sync", "--json", str(folder), theirs))
    assert (done["objects"], done["unchanged"]) == (0, 2)
    back = tmp_path / "back"
    done = last(fulgurite(server, "sync", "--json", theirs, str(back)))
    assert done["objects"] == 2
    assert (back / "sub" / "b").stat().st_mtime_ns == 1_500_000_000_123_456_789
    # Streamed by rclone over plain HTTP, in parts of unknown number.
    streamed = subprocess.run(
        [tool("rclone"), "rcat", "archive:first-hour/piped"],
        input=(folder / "sub" / "b").read_bytes(),
        env={**os.environ, **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert streamed.returncode == 0, streamed.stderr
    printed = subprocess.run(
        [str(binary()), "cat", "s3://first-hour/piped", "--endpoint", server.endpoint],
        env={**os.environ, **KEYS},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert printed.stdout == (folder / "sub" / "b").read_bytes()


def test_folder_is_restored_with_aws_cli_as_documented(start: Start, tmp_path: Path) -> None:
    """AWS_ENDPOINT_URL is enough for this CLI; a folder needs --force-glacier-transfer."""
    server = start()
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_text("one", encoding="utf-8")
    (folder / "b").write_text("two", encoding="utf-8")
    environment = aws_environment(tmp_path) | {"AWS_ENDPOINT_URL": server.endpoint}

    def aws(*arguments: str) -> int:
        return run([tool("aws"), "s3", *arguments], environment=environment).returncode

    assert aws("mb", "s3://photos") == 0
    assert aws("cp", "--recursive", "--storage-class=DEEP_ARCHIVE", str(folder), "s3://photos") == 0
    server.seal()
    done = fulgurite(server, "restore", "--recursive", "--wait", "s3://photos")
    assert done.returncode == 0, done.stderr
    back = tmp_path / "back"
    assert aws("cp", "--recursive", "s3://photos", str(back)) == 2
    assert not (back / "a").exists()
    assert aws("cp", "--recursive", "--force-glacier-transfer", "s3://photos", str(back)) == 0
    assert (back / "a").read_text(encoding="utf-8") == "one"
    banner = server.log.read_text(encoding="utf-8")
    for words in ("--force-glacier-transfer", "version 1.29 or 2.13", "--endpoint-url"):
        assert words in banner


def on_terminal(command: list[str], environment: dict[str, str]) -> str:
    """Run a program whose standard output and error are a terminal: what it showed."""
    parent, child = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    clean["TERM"] = "xterm"
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=child,
        stderr=child,
        env=clean | environment,
    )
    os.close(child)
    shown = b""
    while True:
        try:
            chunk = os.read(parent, 65536)
        except OSError:  # The terminal is gone with its last writer.
            break
        if not chunk:
            break
        shown += chunk
    os.close(parent)
    process.wait(timeout=60)
    return shown.decode()


def test_color_only_on_terminals(server: Server) -> None:
    """A terminal gets color, unless NO_COLOR or --color say otherwise."""
    command = [str(binary()), "ls", "s3://there-is-none", "--endpoint", server.endpoint]
    assert "\x1b[" in on_terminal(command, KEYS)
    assert "\x1b[" in on_terminal(command, KEYS | {"NO_COLOR": ""})
    assert "\x1b[" not in on_terminal(command, KEYS | {"NO_COLOR": "1"})
    assert "\x1b[" not in on_terminal([*command, "--color=never"], KEYS)
    assert "\x1b[" in on_terminal([*command, "--color", "always"], KEYS | {"NO_COLOR": "1"})


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_accept_the_completions(shell: str, tmp_path: Path) -> None:
    """Each shell that is here reads its completions without a complaint."""
    script = run([str(binary()), "completions", shell]).stdout
    path = tmp_path / shell
    path.write_text(script, encoding="utf-8")
    try:
        done = run([shell, "-n", str(path)])
    except FileNotFoundError:
        pytest.skip(f"{shell} is not installed")
    assert done.returncode == 0, done.stderr


def test_bash_completes_a_command(tmp_path: Path) -> None:
    """Bash itself offers the command that was begun."""
    script = run([str(binary()), "completions", "bash"]).stdout
    asked = """
COMP_WORDS=(fulgurite sy); COMP_CWORD=1
_fulgurite fulgurite sy fulgurite
printf '%s\\n' "${COMPREPLY[@]}"
"""
    path = tmp_path / "ask"
    path.write_text(script + asked, encoding="utf-8")
    done = run(["bash", "--norc", str(path)])
    assert done.stdout.split() == ["sync"], done.stderr


def test_man_accepts_the_manual_pages(tmp_path: Path) -> None:
    """Groff reads every page without a warning, if it is here."""
    folder = tmp_path / "man1"
    assert run([str(binary()), "man", str(folder)]).returncode == 0
    pages = sorted(folder.glob("*.1"))
    assert len(pages) > 40
    for page in pages:
        try:
            done = run(["groff", "-man", "-Tutf8", "-ww", str(page)])
        except FileNotFoundError:
            pytest.skip("groff is not installed")
        assert (done.returncode, done.stderr) == (0, ""), page


def test_systemd_unit_is_valid(tmp_path: Path) -> None:
    """Systemd finds nothing wrong with the unit, if it is here."""
    unit = Path(__file__).resolve().parents[2] / "deploy" / "fulgurite.service"
    # It looks whether the program is there.
    text = unit.read_text(encoding="utf-8").replace("/usr/local/bin/fulgurite", str(binary()))
    path = tmp_path / "fulgurite.service"
    path.write_text(text, encoding="utf-8")
    try:
        done = run(["systemd-analyze", "verify", str(path)])
    except FileNotFoundError:
        pytest.skip("systemd-analyze is not installed")
    assert (done.returncode, done.stderr) == (0, "")
