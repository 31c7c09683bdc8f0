#!/usr/bin/env python3
"""The page of a picture worker in headless Chromium. Usage: page.py URL FOLDER_FOR_SCREENSHOTS [PROMPT]

The worker has a network called tiny-x2 that makes pictures twice as large.

Ends with status 77 and a line that says why when there is no Chromium or no Python package
`playwright`."""

import base64
import json
import pathlib
import struct
import sys
import time

from browser import BROWSER, sync_playwright

PATIENCE = 60_000  # milliseconds
STEPS = "150"  # the page's maximum: the test checks while the worker draws
PROMPT = sys.argv[3] if len(sys.argv) > 3 else "a red cat on a table"
NETWORK = "tiny-x2"  # the worker was started with it

DROP = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0));
  const list = new DataTransfer();
  list.items.add(new File([bytes], name, {type: "image/png"}));
  return list;
}"""


def size_of(data):
    """Of a PNG as base64."""
    return struct.unpack(">II", base64.b64decode(data)[16:24])


class Visit:
    def __init__(self, page, url, folder):
        self.page = page
        self.folder = folder
        self.sent = []  # bodies of jobs
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.fail(f"the page's script: {error}"))
        page.on("request", self.note)
        page.goto(url)
        page.wait_for_function("!document.title.includes('connecting') && "
                               "!document.getElementById('about').textContent.includes('connecting')")

    @staticmethod
    def fail(what):
        raise AssertionError(what)

    def note(self, request):
        if request.method == "POST" and request.url.endswith("/v1/jobs"):
            self.sent.append(json.loads(request.post_data))

    def status(self):
        return self.page.inner_text("#status")

    def figures(self):
        return self.page.locator("#gallery figure").count()

    def wait_until(self, what, condition):
        end = time.monotonic() + PATIENCE / 1000
        while not condition():
            if time.monotonic() > end:
                self.fail(f"{what}: not within a minute; the page says {self.status()!r}")
            self.page.wait_for_timeout(20)

    def draw(self):
        before = self.figures()
        self.page.click("#go")
        self.wait_until("a picture in the gallery", lambda: self.figures() > before)
        self.wait_until("the end", lambda: self.status().startswith("done"))

    def shoot(self, name):
        self.page.screenshot(path=self.folder / f"{name}.png", full_page=True)

    def newest(self):
        source = self.page.locator("#gallery figure img").first.get_attribute("src")
        assert source.startswith("data:image/png;base64,"), source[:40]
        return source.split(",", 1)[1]

    def drop(self, data):
        list_of_files = self.page.evaluate_handle(DROP, ["dropped.png", data])
        self.page.dispatch_event("#drop", "drop", {"dataTransfer": list_of_files})
        self.page.wait_for_selector("#source:not([hidden])")


def check_drawing(visit):
    page = visit.page
    page.fill("#prompt", PROMPT)
    page.fill("#steps", STEPS)
    page.fill("#seed", "7")
    page.fill("#width", "64")
    page.fill("#height", "72")
    page.click("#go")
    page.wait_for_selector("#bar:not([hidden])")
    page.wait_for_selector("#picture:not([hidden])")  # a preview: the gallery is still empty
    visit.wait_until("a step's figures", lambda: "steps/s" in visit.status())
    assert visit.figures() == 0, "no preview came before the picture"
    visit.shoot("page_preview")
    visit.wait_until("a picture in the gallery", lambda: visit.figures() == 1)
    visit.wait_until("the end", lambda: visit.status().startswith("done"))
    data = base64.b64decode(visit.newest())
    assert data.startswith(b"\x89PNG") and b"Seed: 7" in data
    caption = page.inner_text("#gallery figcaption")
    assert PROMPT in caption and "7" in caption, caption


def check_settings(visit):
    """The settings of a dropped picture."""
    page = visit.page
    page.fill("#prompt", "something else")
    page.fill("#seed", "")
    visit.drop(visit.newest())
    page.wait_for_selector("#reuse:not([hidden])")
    page.click("#reuse")
    assert page.input_value("#prompt") == PROMPT
    assert page.input_value("#seed") == "7" and page.input_value("#steps") == STEPS


def check_from_picture(visit):
    page = visit.page
    page.fill("#steps", "4")
    visit.draw()
    assert visit.sent[-1]["operation"] == "image_transform", visit.sent[-1]["operation"]
    page.locator("#canvas").scroll_into_view_if_needed()
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.4)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.5, steps=8)
    page.mouse.up()
    visit.draw()
    assert visit.sent[-1]["operation"] == "image_inpaint", visit.sent[-1]["operation"]
    assert len(visit.sent[-1]["mask_image"]) > 100
    assert visit.sent[-1]["mask_blur"] == 1, visit.sent[-1]["mask_blur"]
    assert page.is_disabled("#larger")
    visit.shoot("page")
    page.fill("#width", "96")
    visit.draw()
    assert size_of(visit.newest()) == (96, 72), size_of(visit.newest())
    page.click("#drain")
    page.wait_for_selector("#source", state="hidden")


def check_photographs(visit):
    """A large one keeps its ratio, and becomes no larger than what the model draws by itself."""
    page = visit.page
    own = int(page.get_attribute("#width", "placeholder"))
    visit.drop(page.evaluate("""() => {
      const photo = document.createElement("canvas");
      [photo.width, photo.height] = [3000, 1500];
      photo.getContext("2d").fillRect(0, 0, 900, 900);
      return photo.toDataURL("image/png").split(",")[1];
    }"""))
    assert page.input_value("#height") == str(own), page.input_value("#height")
    assert page.input_value("#width") == str(2 * own), page.input_value("#width")
    assert page.evaluate("[canvas.width, canvas.height]") == [2048, 1024]
    visit.draw()
    assert size_of(visit.newest()) == (2 * own, own), size_of(visit.newest())
    page.click("#drain")
    assert page.input_value("#width") == ""


def check_second_pass(visit):
    page = visit.page
    page.fill("#width", "64")
    page.fill("#height", "64")
    page.fill("#larger", "1.5")
    visit.draw()
    assert visit.sent[-1]["hires"]["upscaler"] == "Lanczos", visit.sent[-1]
    assert size_of(visit.newest()) == (96, 96), size_of(visit.newest())
    sent = visit.sent[-1]
    visit.drop(visit.newest())
    page.evaluate("larger.value = '', upscaler.value = 'Latent'")
    page.wait_for_selector("#reuse:not([hidden])")
    page.click("#reuse")
    assert page.input_value("#larger") == "1.5" and page.input_value("#upscaler") == "Lanczos"
    page.click("#drain")
    page.fill("#width", "64")
    page.fill("#height", "64")
    visit.draw()
    assert visit.sent[-1]["hires"]["strength"] == sent["hires"]["strength"], visit.sent[-1]
    page.fill("#larger", "")
    visit.draw()
    assert "hires" not in visit.sent[-1], visit.sent[-1]


def check_networks(visit):
    """The worker has one that doubles the size of pictures."""
    page = visit.page
    page.fill("#larger", "1.5")
    page.select_option("#upscaler", NETWORK)
    visit.draw()
    assert visit.sent[-1]["hires"]["upscaler"] == NETWORK, visit.sent[-1]
    assert size_of(visit.newest()) == (96, 96), size_of(visit.newest())
    page.select_option("#upscaler", "Lanczos")
    page.fill("#larger", "")
    before = visit.figures()
    page.locator("#gallery figure").first.get_by_text("Enlarge", exact=True).click()
    visit.wait_until("a larger picture", lambda: visit.figures() == before + 1)
    visit.wait_until("the end", lambda: visit.status().startswith("done"))
    assert size_of(visit.newest()) == (192, 192), size_of(visit.newest())
    caption = page.locator("#gallery figcaption").first.inner_text()
    assert PROMPT in caption and "enlarged" in caption, caption
    visit.shoot("page_networks")


def check_leaving(visit):
    """A slow worker: the page shows the tiles and can cancel the request."""
    page, held = visit.page, []
    page.route("**/sdapi/v1/extra-single-image", lambda route: held.append(route))
    told = {"state": {"job": "extra-single-image"}, "textinfo": "tile 2 of 9"}
    page.route("**/sdapi/v1/progress", lambda route: route.fulfill(json=told))
    before = visit.figures()
    with page.expect_event("requestfailed", lambda one: one.url.endswith("extra-single-image")):
        page.locator("#gallery figure").first.get_by_text("Enlarge", exact=True).click()
        visit.wait_until("the tiles", lambda: visit.status() == "enlarging: tile 2 of 9")
        assert page.is_disabled("#go")
        page.click("#stop")
    visit.wait_until("the end", lambda: visit.status() == "cancelled")
    page.wait_for_selector("#go:enabled")
    assert visit.figures() == before and len(held) == 1
    page.unroute("**/sdapi/v1/extra-single-image")
    page.unroute("**/sdapi/v1/progress")


def check_errors(visit):
    page = visit.page
    page.evaluate("""() => { const list = document.getElementById("sampler");
                             list.add(new Option("magic")); list.value = "magic"; }""")
    page.click("#go")
    page.wait_for_selector("#status.bad")
    assert "sampler" in visit.status() and "magic" in visit.status(), visit.status()
    page.select_option("#sampler", "")


def check_cancelling(visit):
    page = visit.page
    before = visit.figures()
    page.fill("#steps", "150")
    page.fill("#count", "16")
    page.click("#go")
    visit.wait_until("a preview of this job", lambda: page.evaluate("preview !== null"))
    page.click("#stop")
    visit.wait_until("the end", lambda: "cancelled" in visit.status())
    page.wait_for_selector("#go:enabled")
    assert visit.figures() == before + 1, "the last preview is kept"
    assert "stopped" in page.locator("#gallery figcaption").first.inner_text()
    page.fill("#count", "1")
    page.fill("#steps", "2")
    visit.draw()


def check_white(visit):
    """Strokes show on a white picture too."""
    page = visit.page
    visit.drop(page.evaluate("""() => {
      const sheet = document.createElement("canvas");
      sheet.width = sheet.height = 64;
      const pen = sheet.getContext("2d");
      pen.fillStyle = "#fff";
      pen.fillRect(0, 0, 64, 64);
      return sheet.toDataURL("image/png").split(",")[1];
    }"""))
    page.locator("#canvas").click()
    assert page.evaluate("""() => pen.getImageData(0, 0, canvas.width, canvas.height).data
      .some(value => value < 128)"""), "nothing is seen of the stroke"
    page.click("#drain")


def check_phone(page, url, folder):
    """The picture comes into view, and the button is near the prompt."""
    page.set_viewport_size({"width": 360, "height": 740})
    visit = Visit(page, url, folder)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.fill("#prompt", PROMPT)
    for name, value in (("steps", "2"), ("width", "64"), ("height", "64")):
        page.fill(f"#{name}", value)
    page.evaluate("scrollTo(0, 0)")
    box = page.locator("#go").bounding_box()
    assert box["y"] + box["height"] <= 400, box
    visit.draw()
    for part in ("#picture", "#status"):
        box = page.locator(part).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 740, (part, box)
    page.screenshot(path=folder / "page_phone.png")
    # Landscape: the picture leaves room for the line below it.
    page.set_viewport_size({"width": 740, "height": 360})
    visit.draw()
    box = page.locator("#status").bounding_box()
    assert box["y"] >= 0 and box["y"] + box["height"] <= 360, box


def main():
    url, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1180, "height": 820})
        visit = Visit(page, url, folder)
        for check in (check_drawing, check_settings, check_from_picture, check_photographs,
                      check_second_pass, check_networks, check_leaving, check_errors, check_cancelling,
                      check_white):
            check(visit)
            print(check.__name__, "passed", flush=True)
        check_phone(page, url, folder)
        print("check_phone passed")
        browser.close()


if __name__ == "__main__":
    main()
