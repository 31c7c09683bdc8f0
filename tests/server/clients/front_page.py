#!/usr/bin/env python3
"""The chat page of `rbee serve` in headless Chromium. Usage: front_page.py URL FOLDER_FOR_SCREENSHOTS

The models that chat are parrot, which repeats and reads pictures, its adapter crow, and other; sketch/1
draws. Ends with status 77 and a
line that says why when there is no Chromium or no Python package `playwright`."""

import pathlib
import sys

from browser import BROWSER, expect, sync_playwright

URL, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])


def ask(page, sent, text):
    page.click("#new")
    page.fill("#text", text)
    page.press("#text", "Enter")
    expect(page.locator("#send")).to_be_visible()
    expect(page.locator(".answer .figures")).to_contain_text("tokens")
    return sent[-1]["model"], page.locator(".answer .body").inner_text()


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1180, "height": 780})
        errors, sent = [], []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: request.url.endswith("/v1/chat/completions")
                and sent.append(request.post_data_json))
        page.goto(URL)
        pick = page.locator("#pick")
        expect(pick.locator("option")).to_have_text(["parrot", "crow", "other"])
        expect(pick).to_have_value("parrot")
        assert "undefined" not in page.locator("header").inner_text()
        assert ask(page, sent, "hello") == ("parrot", "hello")
        expect(page.locator("#attach")).to_be_visible()
        pick.select_option("crow")
        assert ask(page, sent, "caw") == ("crow", "caw")
        pick.select_option("other")
        assert ask(page, sent, "hello") == ("other", "Hello, world")
        expect(page.locator("#attach")).to_be_hidden()
        assert page.title() == "other - rbee chat", page.title()
        page.screenshot(path=FOLDER / "front.png")
        page.reload()  # the choice is kept
        expect(pick).to_have_value("other")
        page.click("#others >> text=sketch/1")
        expect(page.locator("#about")).to_have_text("sketch/1")
        jobs = []
        page.on("request", lambda request: request.url.endswith("/v1/jobs")
                and jobs.append(request.post_data_json))
        page.fill("#prompt", "a bee")
        page.click("#go")
        expect(page.locator("#gallery figure")).to_have_count(1)
        assert jobs[0]["model"] == "sketch/1", jobs
        page.click("#chat")
        expect(page.locator("#text")).to_be_visible()
        assert not errors, errors
        browser.close()


main()
