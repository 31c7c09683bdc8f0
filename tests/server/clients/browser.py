"""Shared by the tests of pages: the browsers, and what axe-core says about a page. Importing this ends the program
with status 77 and a line that says why when there is no Chromium or a Python package is missing."""

import os
import shutil
import sys
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect, sync_playwright
except ImportError as missing:
    print(f"SKIP: the Python package {missing.name} is not installed")
    sys.exit(77)
if CHROMIUM is None:
    print("SKIP: chromium is not installed")
    sys.exit(77)
expect.set_options(timeout=60_000)  # milliseconds; its own 5 seconds are few on a busy machine


def browsers(play):
    """Chromium, and if RBEE_TEST_FIREFOX is set Debian's Firefox, one after the other."""
    chromium = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    yield chromium
    chromium.close()
    if not os.environ.get("RBEE_TEST_FIREFOX"):
        return
    assert FIREFOX, "RBEE_TEST_FIREFOX is set, but firefox-esr is not installed"
    # Debian's own Firefox, through WebDriver BiDi.
    firefox = play.firefox.launch(channel="moz-firefox", executable_path=FIREFOX)
    yield firefox
    firefox.close()


def is_chromium(browser):
    return browser.browser_type.name == "chromium"


RECORDER = """
window.sentBodies = [];
const realFetch = window.fetch;
window.fetch = (path, options) => {
  if (typeof options?.body === "string") window.sentBodies.push([String(path), JSON.parse(options.body)]);
  return realFetch(path, options);
};"""


def record_bodies(page):
    """From the next load on. Firefox does not tell the bodies of requests."""
    page.add_init_script(RECORDER)


def sent_bodies(page, path):
    """JSON that the page sent to this path since it was loaded."""
    return [body for where, body in page.evaluate("window.sentBodies") if where == path]


def page_errors(page):
    """A list that grows with the errors of the page's scripts and policy. Playwright's screenshots bring a style, which
    Firefox refuses them too."""
    errors = []

    def note(error):
        if "(style-src-elem)" not in str(error) or page.context.browser.browser_type.name != "firefox":
            errors.append(str(error))
    page.on("pageerror", note)
    return errors


def wait_until(page, what, condition, patience=60):
    """For what no expect() says. patience: seconds."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, f"{what}: not in time; the page says {page.inner_text('#status')!r}"
        page.wait_for_timeout(20)


# As browsers do where the reader forbids a page to keep anything.
BLOCKED = """for (const name of ["localStorage", "indexedDB"]) {
  Object.defineProperty(window, name, {get() { throw new DOMException("The operation is insecure.", "SecurityError"); }});
}"""

KEPT = """([name, store]) => new Promise((done, fail) => {
  const request = indexedDB.open(name, 1);
  request.onerror = () => fail(request.error);
  request.onsuccess = () => {
    const count = request.result.transaction(store).objectStore(store).count();
    count.onsuccess = () => { request.result.close(); done(count.result); };
    count.onerror = () => fail(count.error);
  };
})"""


def wait_until_kept(page, name, store):
    """A page that is left loses what its database has not written yet. A read comes after the writes before it."""
    return page.evaluate(KEPT, [name, store])


def check_accessibility(page, what):
    """In the light and in the dark, the page has no finding that axe-core calls serious or critical."""
    for theme in ("dark", "light"):
        while page.evaluate("document.documentElement.dataset.theme") != theme:
            page.click("#theme")
        findings = [f"{each['impact']}: {each['help']}: {[node['html'] for node in each['nodes']]}"
                    for each in Axe().run(page).response["violations"]
                    if each["impact"] in ("serious", "critical")]
        assert not findings, f"{what}, {theme}: " + "\n".join(findings)
    page.evaluate("localStorage.removeItem('rbee-theme')")  # the system's again


__all__ = ["BLOCKED", "browsers", "check_accessibility", "expect", "is_chromium", "page_errors", "record_bodies",
           "sent_bodies", "sync_playwright", "wait_until", "wait_until_kept"]
