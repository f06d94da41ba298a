"""The page at /-/ in a real browser: what it shows without and with keys, and what it stores."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser as browsers
import pytest
from browser import Browser
from conftest import NewFolder
from harness import ACCESS_KEY, SECRET_KEY, Server, wait_until
from test_tomes import run_json


@pytest.fixture(scope="module")
def browser(new_folder: NewFolder) -> Iterator[Browser]:
    """Start a browser; skip where there is none to start."""
    program = browsers.find()
    if program is None:
        if "FULGURITE_TEST_SERVERS" in os.environ:
            pytest.fail("chromium is not installed")
        pytest.skip("chromium is not installed")
    with Browser(program, new_folder("browser")) as running:
        yield running


def open_page(browser: Browser, server: Server) -> None:
    """Open the page and wait until it shows the health of the server."""
    # The page of a test before this one may still ask its own server, which has ended.
    browser.go("about:blank")
    browser.complaints.clear()
    browser.go(f"{server.endpoint}/-/")
    said = ("Ready", "Degraded")
    wait_until("the page shows its health", lambda: browser.text("#health").startswith(said))


def give_keys(browser: Browser, secret: str) -> None:
    """Enter the keys as a user does."""
    browser.type("#access", ACCESS_KEY)
    browser.type("#secret", secret)
    browser.press("#keys button")


def figures(browser: Browser) -> dict[str, str]:
    """Read the table of the archive."""
    rows = browser.text("#figures").splitlines()
    return dict(row.split("\t", 1) for row in rows if "\t" in row)


def test_page_shows_health_and_endpoint_without_keys(browser: Browser, server: Server) -> None:
    """Without keys: no more than anybody may know, and nothing that the browser refuses."""
    open_page(browser, server)
    assert browser.text("#health") == "Ready: requests are served."
    assert browser.text("dd code") == server.endpoint
    assert f"aws --endpoint-url {server.endpoint} " in browser.text("pre")
    assert browser.text("#version")
    assert not browser.ask("document.querySelector('#shown').checkVisibility()")
    assert browser.ask("document.querySelector('#keys').checkVisibility()")
    assert browser.complaints == []


def test_page_shows_the_rack_with_keys(browser: Browser, tmp_path: Path) -> None:
    """A line for each group, and that its disks are simulated."""
    rack = {"kind": "rack", "shape": "shelf", "make": True}
    server = Server(tmp_path, {"profile": "demo", "tiers": {"rack": rack}})
    try:
        server.start()
        open_page(browser, server)
        give_keys(browser, SECRET_KEY)
        wait_until("the rack is shown", lambda: "Group 0:" in browser.text("#groups"))
        assert browser.text("#rack-what").startswith("Simulated disks, directories")
        assert "spin-ups" in browser.text("#groups")
        assert browser.complaints == []
        browser.press("#forget")
        assert browser.text("#groups") == ""
    finally:
        server.kill()


def signs(browser: Browser) -> dict[str, str]:
    """Read the sign of each tome: what its disk does, by its number."""
    rows = "[...document.querySelectorAll('#tomes-signs li')]"
    each = f"{rows}.map((li) => [li.querySelector('strong').innerText, li.dataset.state])"
    return dict(browser.ask(each))


def tome_facts(browser: Browser) -> dict[str, str]:
    """Read the figures of the tomes."""
    rows = browser.text("#tomes-figures").splitlines()
    return dict(row.split("\t", 1) for row in rows if "\t" in row)


def test_page_shows_spinning_tomes_with_keys(browser: Browser, tmp_path: Path) -> None:
    """A sign for each, which changes as its disk does; what happened in words; a loss with why."""
    tomes = {"kind": "tome", "count": 5, "make": True, "time_scale": 0.05, "idle": "2s"}
    config = {"profile": "demo", "tiers": {"tomes": tomes}}
    server = Server(tmp_path, config)
    try:
        s3 = server.start().s3()
        s3.create_bucket(Bucket="vault")
        open_page(browser, server)
        give_keys(browser, SECRET_KEY)
        wait_until("the tomes are shown", lambda: len(signs(browser)) == 5)
        assert "spun down" in signs(browser).values(), "marking the tier spins up one tome"
        assert browser.text("#tomes-health").startswith("Healthy. Disks are simulated")
        s3.put_object(Bucket="vault", Key="one", Body=b"1" * 300_000, StorageClass="GLACIER_IR")
        turned: set[str] = set()

        def is_protected() -> bool:
            turned.update(signs(browser).values())
            return "is protected" in browser.text("#tomes-latest")

        wait_until("what happens is shown until all is protected", is_protected, 300)
        assert {"active", "spun down"} <= turned, turned
        assert "spins up for a write" in browser.text("#tomes-latest")
        assert tome_facts(browser)["Tokens"].startswith("0: tome "), "its disk turns for a while"
        # The body, its entry, and the mark of the tier.
        counted = f"{run_json(server, 'status')['objects']}, "
        wait_until("all are counted", lambda: tome_facts(browser)["Objects"].startswith(counted))
        # Polls are applied to the same stream: one that cannot be would make the page reconnect.
        assert 'fulgurite_requests_total{op="Events"' not in server.fetch("/metrics")[1].decode()
        browser.picture(tmp_path / "tomes.png")
        assert (tmp_path / "tomes.png").stat().st_size > 10_000, "the picture is blank"
        assert browser.complaints == []
        # A page that is open would complain that nobody answers.
        browser.go("about:blank")
        server.stop()
        shutil.rmtree(server.data / "tiers" / "tomes" / "tome-0003")
        server.start()
        open_page(browser, server)
        give_keys(browser, SECRET_KEY)
        wait_until("the loss is shown", lambda: signs(browser).get("3") == "failed")
        assert browser.text("#tomes-health").startswith("Unhealthy.")
        assert browser.text("#tomes-reasons").startswith("tome 3: "), browser.text("#tomes-reasons")
        browser.press("#forget")
        assert signs(browser) == {}
        assert not browser.ask("document.querySelector('#tomes').checkVisibility()")
        assert browser.complaints == []
    finally:
        server.kill()


def test_page_shows_the_archive_with_keys(
    browser: Browser, server: Server, s3: Any, bucket: str, tmp_path: Path
) -> None:
    """The figures are the archive's, and nothing of the keys stays anywhere."""
    for key in ("a", "b"):
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode(), StorageClass="DEEP_ARCHIVE")
    server.seal()
    s3.put_object(Bucket=bucket, Key="c", Body=b"c" * 2048, StorageClass="DEEP_ARCHIVE")
    open_page(browser, server)
    give_keys(browser, SECRET_KEY)
    wait_until("the archive is shown", lambda: figures(browser))
    shown = figures(browser)
    status = server.status()
    assert shown["Archived objects, on glass"] == "2", shown
    assert shown["Staged for glass"] == "2.0 KiB", shown
    assert shown["Platters stored"] == str(status["platters"]), shown
    assert shown["Archive"] == status["archive"], shown
    assert browser.text("#failures") == "none"
    assert not browser.ask("document.querySelector('#keys').checkVisibility()")
    assert browser.ask("document.querySelector('#secret').value") == ""
    kept = "document.cookie + localStorage.length + sessionStorage.length + location.href"
    assert browser.ask(kept) == f"00{server.endpoint}/-/"
    assert browser.complaints == []
    browser.picture(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000, "the picture is blank"

    browser.press("#forget")
    assert not browser.ask("document.querySelector('#shown').checkVisibility()")
    assert browser.ask("document.querySelector('#figures').childElementCount") == 0


def test_page_reports_and_forgets_wrong_keys(browser: Browser, server: Server) -> None:
    """A typing mistake is answered with words, and not tried again and again."""
    open_page(browser, server)
    give_keys(browser, "another-secret")
    wait_until("the page shows the reason", lambda: browser.text("#message"))
    assert browser.text("#message").startswith("Not shown: the signature does not"), browser.text(
        "#message"
    )
    assert browser.ask("document.querySelector('#keys').checkVisibility()")
    assert figures(browser) == {}


def test_html_object_runs_no_script(browser: Browser, server: Server, s3: Any, bucket: str) -> None:
    """A link to an object has the page's origin; what it shows must not act for the page."""
    script = "<p id=told>shown</p><script>document.getElementById('told').innerText='ran'</script>"
    s3.put_object(Bucket=bucket, Key="evil.html", Body=script.encode(), ContentType="text/html")
    link = s3.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "evil.html"})
    browser.go(link)
    assert wait_until("the document is shown", lambda: browser.text("#told")) == "shown"
