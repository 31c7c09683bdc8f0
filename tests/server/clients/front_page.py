#!/usr/bin/env python3
"""The pages of `rbee serve` in headless Chromium and Firefox. Usage: front_page.py URL FOLDER_FOR_SCREENSHOTS

The models that chat are parrot, which repeats and reads pictures, its adapter crow, other, and lazy, which
is loaded on demand; sketch/1 draws. Ends with status 77 and a line that says why when there is no Chromium or a
Python package is missing."""

import pathlib
import re
import sys

from browser import (browsers, expect, page_errors, record_bodies, sent_bodies, sync_playwright,
                     wait_until)

URL, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])


def ask(page, text):
    page.click("#new")
    page.fill("#text", text)
    page.press("#text", "Enter")
    expect(page.locator("#send")).to_be_visible()
    expect(page.locator(".answer .figures")).to_contain_text("tokens")
    return sent_bodies(page, "/v1/chat/completions")[-1]["model"], page.locator(".answer .body").inner_text()


def check_models(page):
    page.goto(URL)
    pick = page.locator("#pick")
    expect(pick.locator("option")).to_have_count(4)
    expect(pick).to_have_value("parrot")
    assert "undefined" not in page.locator("header").inner_text()
    assert ask(page, "hello") == ("parrot", "hello")
    pick.select_option("crow")
    assert ask(page, "caw") == ("crow", "caw")
    pick.select_option("other")
    assert ask(page, "hello") == ("other", "Hello, world")
    # A model that reads no pictures says so.
    page.set_input_files("#files", {"name": "a.png", "mimeType": "image/png", "buffer": b"no"})
    expect(page.locator("#status")).to_contain_text("reads text alone")
    expect(page).to_have_title("other - rbee chat")
    page.screenshot(path=FOLDER / "front.png")
    page.reload()  # the choice is kept
    expect(pick).to_have_value("other")
    expect(page.locator("#get")).to_be_hidden()  # this server fetches none


def check_address(page):
    """It names the model, whatever the browser remembers, and follows the choice."""
    pick = page.locator("#pick")
    page.goto(URL + "/?model=crow")
    expect(pick).to_have_value("crow")
    page.goto(URL + "/?model=Crow:latest")  # another way to write it
    expect(page).to_have_url(URL + "/?model=crow")
    expect(pick).to_have_value("crow")
    pick.select_option("parrot")
    expect(page).to_have_url(URL + "/?model=parrot")
    # One that a client made of another: how far its model is, is told of it too.
    models = [{"name": "parrot", "kind": "chat"}, {"name": "mario", "kind": "chat", "parent": "parrot"}]
    page.route("**/health", lambda route: route.fulfill(json={"status": "healthy", "models": models, "pull": False}))
    made = {"models": [{"name": "parrot", "kind": "chat", "made": ["mario"], "workers": [{"state": "starting"}]}]}
    page.route("**/workers", lambda route: route.fulfill(json=made))
    page.route("**/?model=mario", lambda route: route.fulfill(response=route.fetch(url=URL)))
    page.goto(URL + "/?model=mario")
    expect(pick).to_have_value("mario")
    expect(pick.locator("option[value=mario]")).to_have_text("mario (loading)")
    for pattern in ("**/health", "**/workers", "**/?model=mario"):
        page.unroute(pattern)
    page.goto(URL)
    expect(pick).to_have_value("parrot")
    workers = [{"state": "starting"}]
    told = {"models": [{"name": "other", "kind": "chat", "aliases": ["tiny:1b"], "workers": workers}]}
    page.route("**/workers", lambda route: route.fulfill(json=told))
    # A name that the list does not have; this server's models have a file, in which it is none.
    page.route("**/?model=tiny*", lambda route: route.fulfill(response=route.fetch(url=URL)))
    page.goto(URL + "/?model=tiny%3A1b")
    expect(pick).to_have_value("other")
    expect(pick.locator("option[value=other]")).to_have_text("other (loading)")
    page.unroute("**/workers")
    page.unroute("**/?model=tiny*")
    page.goto(URL)
    expect(pick).to_have_value("other")


def check_phone(page):
    """The name of the chosen model stands there to its end, over it the list that chooses another one."""
    pick, name = page.locator("#pick"), page.locator("#model")
    expect(name).to_be_hidden()  # the list shows it
    page.set_viewport_size({"width": 390, "height": 844})
    expect(name).to_be_visible()
    pick.select_option("parrot")
    expect(name).to_have_text("parrot")
    box, text = pick.bounding_box(), name.bounding_box()
    assert box["x"] <= text["x"] and box["x"] + box["width"] >= text["x"] + text["width"], (box, text)
    page.screenshot(path=FOLDER / "front_phone.png")
    pick.select_option("other")
    expect(name).to_have_text("other")
    page.set_viewport_size({"width": 1180, "height": 780})


def check_loading(page):
    """The list says which model is not loaded; the load of one is told until the answer begins."""
    pick, held = page.locator("#pick"), []
    lazy = pick.locator("option[value=lazy]")
    expect(lazy).to_have_text(re.compile(r"lazy( \(not loaded\))?"))
    progress = {"phase": "loading", "done": 1_200_000_000, "total": 4_800_000_000, "seconds_left": 5.5}
    told = {"models": [{"name": "lazy", "kind": "chat", "workers": [{"state": "starting", "progress": progress}]}]}
    page.route("**/workers", lambda route: route.fulfill(json=told))
    page.route("**/v1/chat/completions", lambda route: held.append(route))
    pick.select_option("lazy")
    page.click("#new")
    page.fill("#text", "hello")
    page.press("#text", "Enter")
    expect(page.locator("#status")).to_have_text("loading the model, 1.2 GB of 4.8 GB, 6 s left")
    expect(page.locator("#load")).to_have_attribute("value", "0.25")
    page.screenshot(path=FOLDER / "front_loading.png")
    page.unroute("**/workers")
    wait_until(page, "the request", lambda: held)
    held[0].continue_()
    page.unroute("**/v1/chat/completions")
    expect(page.locator(".answer .figures")).to_contain_text("tokens")
    expect(page.locator("#load")).to_be_hidden()
    pick.focus()
    expect(lazy).to_have_text("lazy")


def check_pulling(page):
    """A model by its name: how far it is, and what the server says where it refuses."""
    asked = []
    models = [{"name": name, "kind": "chat"} for name in ("parrot", "crow", "other", "lazy")]
    may = {"status": "healthy", "models": models, "pull": True}
    page.route("**/health", lambda route: route.fulfill(json=may))
    page.reload()
    page.click("#get")
    expect(page.locator("#get-name")).to_be_focused()
    page.fill("#get-name", "hf.co/tiny/none:Q4_K_M")

    def answer(route):
        asked.append(route)
        lines = ['{"status": "pulling manifest"}',
                 '{"status": "pulling", "digest": "sha256:1", "total": 8000000, "completed": 2000000}',
                 '{"error": "no room for it"}']
        route.fulfill(content_type="application/x-ndjson", body="\n".join(lines) + "\n")
    page.route("**/api/pull", answer)
    page.click("#get-go")
    expect(page.locator("#get-status")).to_have_text("no room for it")
    assert sent_bodies(page, "/api/pull") == [{"model": "hf.co/tiny/none:Q4_K_M"}]
    page.unroute("**/api/pull")
    page.route("**/api/pull", lambda route: route.fulfill(
        status=501, json={"error": "this server fetches no models"}))
    page.click("#get-go")
    expect(page.locator("#get-status")).to_have_text("this server fetches no models")
    page.unroute("**/api/pull")
    page.route("**/api/pull", lambda route: route.fulfill(body='{"status": "success"}\n'))
    page.fill("#get-name", "parrot")
    page.click("#get-go")
    expect(page.locator("#get-status")).to_have_text("parrot is here")
    expect(page.locator("#pick")).to_have_value("parrot")
    page.screenshot(path=FOLDER / "front_get.png")
    # A new one is chosen, by whichever name the server lists it.
    may["models"] = [{"name": name, "kind": "chat"} for name in ("parrot", "hf:tiny/new")]
    page.fill("#get-name", "hf.co/tiny/new:latest")
    page.click("#get-go")
    expect(page.locator("#pick")).to_have_value("hf:tiny/new")
    # One that was here before, by a name of Ollama's library.
    told = {"models": [{"name": "parrot", "kind": "chat", "aliases": ["tiny:1b"], "workers": []}]}
    page.route("**/workers", lambda route: route.fulfill(json=told))
    page.fill("#get-name", "tiny:1b")
    page.click("#get-go")
    expect(page.locator("#get-status")).to_have_text("tiny:1b is here")
    expect(page.locator("#pick")).to_have_value("parrot")
    page.unroute("**/workers")
    page.unroute("**/api/pull")
    page.unroute("**/health")
    page.keyboard.press("Escape")
    page.reload()  # without that model
    expect(page.locator("#pick")).to_have_value("parrot")


def check_pictures(page):
    page.click("#others >> text=sketch/1")
    expect(page.locator("#about")).to_have_text("sketch/1")
    page.wait_for_selector("html[data-ready]")
    # What the model does by itself, which the front learns of its worker.
    for field, default in (("width", "512"), ("height", "512"), ("steps", "20")):
        expect(page.locator(f"#{field}")).to_have_attribute("placeholder", default)
    page.fill("#prompt", "a bee")
    told = {"models": [{"name": "sketch/1", "kind": "image", "workers": [{"state": "starting"}]}]}
    held = []
    page.route("**/workers", lambda route: route.fulfill(json=told))
    page.route("**/v1/jobs", lambda route: held.append(route))
    page.click("#go")
    expect(page.locator("#status")).to_have_text("loading the model")
    wait_until(page, "the job", lambda: held)
    held[0].continue_()
    page.unroute("**/v1/jobs")
    page.unroute("**/workers")
    expect(page.locator("#gallery figure")).to_have_count(1)
    assert sent_bodies(page, "/v1/jobs")[0]["model"] == "sketch/1"
    page.click("#chat")
    expect(page.locator("#text")).to_be_visible()


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        for browser in browsers(play):
            page = browser.new_page(viewport={"width": 1180, "height": 780})
            errors = page_errors(page)
            record_bodies(page)
            for check in (check_models, check_address, check_phone, check_loading, check_pulling, check_pictures):
                check(page)
                print(browser.browser_type.name, check.__name__, "passed", flush=True)
            assert not errors, errors


main()
