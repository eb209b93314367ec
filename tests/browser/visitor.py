"""Somebody with a browser, who notices everything that goes wrong in it.

`troubles` has each error and warning of the console, each error of a script, each report of the policy, each
answer that is an error and each request to another host. The fixture `visit` fails the test at its end where
there are any.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

from tests.browser.axe import axe_source
from tests.browser.stage import NAME, PASSWORD

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

SCREENSHOTS = Path(__file__).parent / "screenshots" / django.get_version()
DESKTOP: Any = {"width": 1280, "height": 800}
PHONE: Any = {"width": 390, "height": 844}
#: name: width, colours, the rules of axe that can find something else there than in the first; none: all.
LOOKS: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "light": (DESKTOP, "light", ()),
    "dark": (DESKTOP, "dark", ("color-contrast",)),
    "phone": (PHONE, "light", ("scrollable-region-focusable", "target-size")),
}

#: Browsers ask for it by themselves.
ICON = "/favicon.ico"
#: Runs before the scripts of each page.
REPORT = """
addEventListener("securitypolicyviolation", event => console.error(
    "policy: " + event.violatedDirective + " " + event.blockedURI + " " + event.sample));
"""
REST = "localStorage.setItem('cogworker.paused', '1');"
#: Colours of the admin change slowly; wait for the last of them.
STILL = (
    "() => Promise.allSettled(document.getAnimations().map(each => each.finished)).then(() => true)"
)
#: Buttons that cannot be seen without scrolling a table sideways.
HIDDEN_BUTTONS = """() => [...document.querySelectorAll(".cog-scroll .cog-acts .cog-btn")].filter(each =>
    each.checkVisibility() &&
    each.getBoundingClientRect().right > each.closest(".cog-scroll").getBoundingClientRect().right + 1
).map(each => each.getAttribute("aria-label") || each.textContent)"""
#: The headings in sight that say what the page is about, and how many of them do it alone, as ours for themes does.
NAMES = """() => {
    const title = document.title.split(" | ")[0].trim();
    const seen = [...document.querySelectorAll("h1, h2, h3")].filter(each =>
        each.checkVisibility() && each.textContent.includes(title));
    return [seen.length, seen.filter(each => each.matches(".cog-name")).length];
}"""
#: Marks what can be used in our part of the page, and puts the focus right before it.
MARK = """() => {
    const root = document.querySelector(".cog");
    const all = root.querySelectorAll(
        "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']");
    const seen = [...all].filter(each => each.checkVisibility({visibilityProperty: true}) && !each.disabled);
    seen.forEach((each, number) => each.dataset.walk = number);
    root.tabIndex = -1;
    root.focus();
    return seen.map(each => each.outerHTML.slice(0, 120));
}"""
#: What has the focus: its number, whether one sees that it has it; null outside.
FOCUSED = """() => {
    const each = document.activeElement;
    if (!each || !each.closest(".cog")) return null;
    const style = getComputedStyle(each);
    const shown = style.outlineStyle !== "none" || style.boxShadow !== "none"
        || each.matches("input, select, textarea") || style.backgroundColor !== "rgba(0, 0, 0, 0)";
    return [each.dataset.walk === undefined ? null : Number(each.dataset.walk), shown, each.outerHTML.slice(0, 120)];
}"""


class Visitor:
    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.troubles: list[str] = []
        #: Parts of pages that were asked for again.
        self.polls: list[str] = []
        #: Rules that axe need not tell of.
        self.known: set[str] = set()
        page.set_default_timeout(10_000)
        page.add_init_script(REPORT)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.troubles.append(f"script: {error}"))
        page.on("request", self._request)
        page.on("response", self._response)

    def _console(self, message: Any) -> None:
        where = str(message.location.get("url"))
        if message.type in ("error", "warning") and not where.endswith(ICON):
            self.troubles.append(f"console: {message.text} ({where})")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((f"{self.address}/", "data:", "blob:")):
            self.troubles.append(f"another host: {request.url}")
        if "_live=" in request.url:
            self.polls.append(request.url)

    def _response(self, response: Any) -> None:
        if response.status >= 400 and not response.url.endswith(ICON):
            self.troubles.append(f"answer: {response.status} {response.url}")

    def excuse(self, *words: str) -> None:
        """Forget the troubles with these words: the test caused them."""
        self.troubles = [each for each in self.troubles if not any(word in each for word in words)]

    # -- going about

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)

    def log_in(self) -> None:
        self.open("/admin/login/?next=/admin/")
        self.page.fill("[name=username]", NAME)
        self.page.fill("[name=password]", PASSWORD)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"{self.address}/admin/")

    def rest(self) -> None:
        """Nothing is refreshed in this tab."""
        self.page.add_init_script(REST)

    def button(self, action: str, item: str = "") -> Locator:
        """The button of an action; with an item, the one for it."""
        form = f'.cog form:has(input[name=action][value="{action}"])'
        if item:
            form += f':has(input[name=item][value="{item}"])'
        return self.page.locator(f"{form} button")

    def links(self) -> list[str]:
        """Where our part of the page leads to, without fragments."""
        found: list[str] = self.page.eval_on_selector_all(
            ".cog a[href]", "all => all.map(each => each.href)"
        )
        return [
            each.removeprefix(self.address).partition("#")[0]
            for each in found
            if each.startswith(f"{self.address}/admin/django_cogworker/")
        ]

    def text(self) -> str:
        return self.page.inner_text("body")

    # -- looking closely

    def look(self, name: str, *, closely: bool = True) -> list[str]:
        """Look at the page in every way, keep pictures, and return what is not as it should be. Less `closely`:
        axe sees one look alone.
        """
        wrong = []
        for look, (size, colours, rules) in LOOKS.items():
            self.page.set_viewport_size(size)
            self.page.emulate_media(color_scheme=colours)
            wrong += self._see(f"{name}-{look}", wide=size == DESKTOP)
            if closely or not rules:
                wrong += [f"{name}-{look}: {each}" for each in self.axe(*rules)]
        self.page.set_viewport_size(DESKTOP)
        self.page.emulate_media(color_scheme="light")
        return wrong + [f"{name}: {each}" for each in self.tab_through()]

    def glance(self, name: str) -> list[str]:
        """The same in the colours that the visitor came with, without the keyboard."""
        wrong = self._see(name, wide=True) + [f"{name}: {each}" for each in self.axe()]
        self.page.set_viewport_size(PHONE)
        wrong += self._see(f"{name}-phone", wide=False)
        self.page.set_viewport_size(DESKTOP)
        return wrong

    def _see(self, name: str, *, wide: bool) -> list[str]:
        self.page.evaluate(STILL)
        self.picture(name)
        wrong = self._out_of_room(name, wide=wide)
        headings, ours = self.page.evaluate(NAMES)
        if not headings or (ours and headings > 1):
            wrong.append(f"{name}: {headings} headings say what it is about, {ours} of them ours")
        return wrong

    def fits(self, name: str) -> list[str]:
        """Only whether everything has its room, on a desk and on a phone."""
        wrong = []
        for look in ("phone", "light"):
            self.page.set_viewport_size(LOOKS[look][0])
            self.picture(f"{name}-{look}")
            wrong += self._out_of_room(f"{name}-{look}", wide=look != "phone")
        return wrong

    def _out_of_room(self, name: str, *, wide: bool) -> list[str]:
        wrong = [
            f"{name}: out of sight: {each}" for each in self.page.evaluate(HIDDEN_BUTTONS) if wide
        ]
        if self.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wrong.append(f"{name}: wider than the window")
        return wrong

    def picture(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def axe(self, *rules: str) -> list[str]:
        """What axe finds, by all rules or these: the rule, what it is about, and what is wrong with it."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(axe_source())
        options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
        if rules:
            options["runOnly"] = list(rules)
        found = self.page.evaluate(
            "options => axe.run({exclude: [['div.breadcrumbs']]}, options)", options
        )
        return [
            f"{rule['id']}: {node['html'][:150]}: {' '.join((node['failureSummary'] or '').split())[:200]}"
            for rule in found["violations"]
            if rule["id"] not in self.known
            for node in rule["nodes"]
        ]

    def tab_through(self) -> list[str]:
        """Go through our part of the page by the Tab key alone; what is not reached, or not seen to be."""
        expected: list[str] = self.page.evaluate(MARK)
        reached: set[int] = set()
        wrong = []
        for _ in range(len(expected) + 20):
            self.page.keyboard.press("Tab")
            found = self.page.evaluate(FOCUSED)
            if found is None:
                break
            number, shown, what = found
            if number is not None:
                reached.add(number)
            if not shown:
                wrong.append(f"the focus is not seen on {what}")
        wrong += [
            f"not reached by Tab: {each}"
            for number, each in enumerate(expected)
            if number not in reached
        ]
        return wrong

    def tab_to(self, selector: str, *, back: bool = False) -> list[str]:
        """Press Tab until that has the focus; the names of what had it before, each of which could be seen to."""
        wanted, passed = self.page.locator(selector).first, []
        for _ in range(200):
            self.page.keyboard.press("Shift+Tab" if back else "Tab")
            found = self.page.evaluate(FOCUSED)
            if found is not None:
                assert found[1], f"the focus is not seen on {found[2]}"
                passed.append(
                    self.page.evaluate(
                        "document.activeElement.name || document.activeElement.textContent"
                    )
                )
            if wanted.evaluate("each => each === document.activeElement"):
                return passed
        raise AssertionError(f"Tab does not come to {selector}, but to {passed}")
