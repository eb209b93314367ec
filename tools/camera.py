"""Takes the pictures of `tools/pictures.py`: `python -m tools.camera ADDRESS NAME PASSWORD DIRECTORY`."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGES = "admin/django_cogworker/"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DESKTOP: Any = {"width": 1280, "height": 900}
PHONE: Any = {"width": 390, "height": 844}
#: Bytes of a picture at the most; of so many colours it is made, or of fewer.
MOST, COLOURS = 120_000, (256, 128, 64, 32)


def main(address: str, name: str, password: str, directory: str) -> int:
    from playwright.sync_api import sync_playwright

    chromium = next((found for each in BROWSERS if (found := shutil.which(each))), None)
    if chromium is None:
        print("No Chromium was found. On Debian and Ubuntu: apt install chromium")
        return 1
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        for title, taken in _take(browser, address + PAGES, name, password):
            path = target / f"{title}.png"
            path.write_bytes(_shrunk(taken))
            print(f"{path}: {path.stat().st_size // 1000} kB")
        browser.close()
    return 0


def _take(browser: Browser, pages: str, name: str, password: str) -> Iterator[tuple[str, bytes]]:
    page = _logged_in(browser, pages, name, password, viewport=DESKTOP)
    for title, path in (
        ("retries", "retry/?error=DoesNotExist"),
        ("workers", "worker/"),
        ("overview", "overview/"),
        ("class", "jobclass/partners.jobs.AnnounceParcel/change/"),
    ):
        page.goto(pages + path)
        yield title, _picture(page)
    page.goto(f"{pages}retry/?error=DoesNotExist")
    page.locator("td a:has(code)").first.click()
    page.wait_for_url("**/job/**")
    yield "job", _picture(page)
    page = _logged_in(browser, pages, name, password, viewport=PHONE, color_scheme="dark")
    page.goto(f"{pages}overview/")
    yield "phone", _picture(page)


def _logged_in(browser: Browser, pages: str, name: str, password: str, **look: Any) -> Page:
    page = browser.new_context(locale="en-US", **look).new_page()
    page.goto(f"{pages}overview/")
    page.fill("#id_username", name)
    page.fill("#id_password", password)
    page.click("[type=submit]")
    page.wait_for_url("**/overview/")
    return page


def _picture(page: Page) -> bytes:
    """What one sees without scrolling."""
    page.evaluate("document.fonts.ready.then(() => true)")
    return page.screenshot()


def _shrunk(taken: bytes) -> bytes:
    picture = Image.open(io.BytesIO(taken)).convert("RGB")
    for number in COLOURS:
        out = io.BytesIO()
        picture.quantize(number, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
        if out.tell() <= MOST:
            break
    return out.getvalue()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
