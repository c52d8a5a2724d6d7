"""Looks at HTML reports in Chromium: ``python -m tests.verification.browser [--pictures DIR]
[FILE...]``; without files at reports of its own. CHROMIUM names the browser.

It speaks DevTools' protocol through a pipe, so that it needs no package and no port.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.verification.reports import hostile, plentiful
from tflite_ort.verification.html import to_html

# Width in pixels, and scheme.
SIZES = ((1280, "light"), (1280, "dark"), (400, "light"), (400, "dark"))
_LOUD = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}
_SECONDS = 180
_TALLEST = 6000

# What is wrong with a page; an empty list if nothing is.
_CHECK = r"""
(() => {
  const wrong = [];
  const ids = Array.from(document.querySelectorAll("[id]"), (each) => each.id);
  if (new Set(ids).size !== ids.length) wrong.push("an id twice");
  for (const image of document.images)
    if (!image.complete || !image.naturalWidth) wrong.push(`no picture: ${image.alt}`);
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) wrong.push(`${root.scrollWidth} pixels wide`);
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const head of table.tHead.rows[0].cells) {
      const button = head.querySelector("button");
      if (!button) continue;
      for (const round of [0, 1]) {
        button.focus();
        if (document.activeElement !== button) wrong.push("a button without focus");
        button.click();
        const order = head.getAttribute("aria-sort");
        const keys = Array.from(table.tBodies[0].rows, (row) => {
          const cell = row.cells[head.cellIndex];
          const number = cell.dataset.key;
          return number === undefined ? cell.textContent.trim() : Number(number);
        });
        const sign = order === "descending" ? 1 : order === "ascending" ? -1 : NaN;
        const compare = (a, b) => typeof a === "number" ? (a > b) - (a < b) : a.localeCompare(b);
        const sorted = keys.every((key, at) => !at || sign * compare(keys[at - 1], key) >= 0);
        if (!sorted) wrong.push(`not sorted by ${button.textContent}, ${order}`);
        if (!document.getElementById("said").textContent.includes(button.textContent))
          wrong.push(`the order by ${button.textContent} is not said`);
      }
    }
    table.tHead.querySelector("button").click();
  }
  document.activeElement.blur();
  for (const each of document.querySelectorAll(".wide")) each.scrollTo(0, 0);
  return wrong;
})()
"""


class Page:
    """One tab. `events` are those that came, in their order."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, os.fdopen(read, "rb")
        self._buffer, self._count, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = self._read.read1(1 << 20)  # type: ignore[attr-defined]
            if not part:
                raise RuntimeError("the browser ended")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, path: Path) -> None:
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(each["method"] == "Page.loadEventFired" for each in self.events):
            self._next()

    def evaluate(self, source: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=source, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def resize(self, width: int, scheme: str) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def photograph(self, path: Path, tallest: int = _TALLEST) -> None:
        """A picture of the page, of a very long one its beginning."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "scale": 1, "width": size["width"]}
        clip["height"] = min(size["height"], tallest)
        whole = {"captureBeyondViewport": True, "clip": clip}
        answer = self.call("Page.captureScreenshot", format="png", **whole)
        path.write_bytes(base64.b64decode(answer["data"]))


@contextmanager
def chromium() -> Iterator[Page]:
    """A page of a browser of its own, which ends with the block, or after three minutes."""
    to_read, write = os.pipe()
    read, to_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"),
        ]
        # The browser reads from descriptor 3 and writes to 4.
        script = f'exec timeout {_SECONDS} "$@" 3<&{to_read} 4>&{to_write}'
        browser = subprocess.Popen(
            ["bash", "-c", script, "bash", os.environ.get("CHROMIUM", "chromium"), *options],
            pass_fds=(to_read, to_write),
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        try:
            yield Page(write, read)
        finally:
            os.close(write)
            browser.terminate()
            browser.wait()


def look_at(page: Page, path: Path, pictures: Path | None) -> list[str]:
    """What is wrong with a report, in each of the sizes and schemes."""
    wrong = []
    for width, scheme in SIZES:
        page.resize(width, scheme)
        page.open(path)
        where = f"{path.name}, {width} pixels, {scheme}"
        wrong += [f"{where}: {each}" for each in page.evaluate(_CHECK)]
        wrong += [f"{where}: {each}" for each in page.events if each["method"] in _LOUD]
        requests = [each for each in page.events if each["method"] == "Network.requestWillBeSent"]
        urls = [each["params"]["request"]["url"] for each in requests]
        foreign = [url for url in urls if not url.startswith(("file:", "data:"))]
        wrong += [f"{where}: asks for {url}" for url in foreign]
        if pictures is not None:
            page.photograph(pictures / f"{path.stem}-{width}-{scheme}.png")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Look at HTML reports in Chromium.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--pictures", type=Path, help="folder for screenshots")
    chosen = parser.parse_args(arguments)
    if chosen.pictures is not None:
        chosen.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as page:
        own = {"plentiful": plentiful(), "hostile": hostile()} if not chosen.files else {}
        for name, report in own.items():
            Path(folder, f"{name}.html").write_text(to_html(report), encoding="utf-8")
        files = chosen.files or sorted(Path(folder).glob("*.html"))
        wrong = [each for file in files for each in look_at(page, file, chosen.pictures)]
    print("\n".join(wrong) or f"{len(files)} reports are as they should be")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
