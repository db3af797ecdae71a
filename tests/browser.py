"""A browser without a window, and pages that are opened in it."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest


@contextmanager
def launched():
    """Start a browser, or skip the tests that need one."""
    reason = "the page is tried in a browser with playwright, which is not installed"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    names = ("chromium", "chromium-browser", "google-chrome")
    executable = next(filter(None, map(shutil.which, names)), None)
    if executable is None:
        pytest.skip("the page is tried in a browser, and none of " + ", ".join(names) + " is here")
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu"]
        running = driver.chromium.launch(executable_path=executable, args=arguments)
        yield Windows(running)
        running.close()


class Windows:
    """Windows of a browser, used again: to open one takes longer than what is done in it."""

    def __init__(self, browser):
        self.browser, self.free = browser, {True: [], False: []}

    def take(self, scripts):
        if self.free[scripts]:
            return self.free[scripts].pop()
        return self.browser.new_context(offline=True, java_script_enabled=scripts).new_page()


class Visit:
    """A page opened from a file without a network, and all that it did besides being shown."""

    def __init__(self, windows, path, width=1200, scripts=True):
        self.windows, self.scripts = windows, scripts
        self.page = windows.take(scripts)
        self.page.set_viewport_size({"width": width, "height": 900})
        self.said, self.asked, self.failed = [], [], []
        self.listeners = {
            "console": lambda message: self.said.append(message.text),
            "pageerror": lambda error: self.said.append(str(error)),
            "dialog": self._dialog,
            "request": lambda request: self.asked.append(request.url),
            "requestfailed": lambda request: self.failed.append(request.failure),
        }
        for name, listener in self.listeners.items():
            self.page.on(name, listener)
        self.page.goto(path.as_uri())
        self.own = path.as_uri()

    def close(self):
        for name, listener in self.listeners.items():
            self.page.remove_listener(name, listener)
        self.page.emulate_media(media="null")
        self.windows.free[self.scripts].append(self.page)

    def _dialog(self, dialog):
        self.said.append("dialog: " + dialog.message)
        dialog.dismiss()

    def text(self, selector):
        return self.page.locator(selector).text_content()

    def attribute(self, selector, name):
        return self.page.locator(selector).first.get_attribute(name)

    def slide(self, index):
        self.page.locator("#slider").fill(str(index))

    def ridges(self):
        return self.page.eval_on_selector_all(".ridge", "all => all.map(e => e.getAttribute('d'))")

    def state(self):
        """Whatever the slider should move."""
        names = [("#marker", "cx"), ("#marker", "cy"), ("#band-area", "d"), ("#band-mean", "d")]
        return [*(self.attribute(*name) for name in names), *self.ridges()]
