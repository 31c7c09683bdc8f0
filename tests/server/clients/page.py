#!/usr/bin/env python3
"""The page of a picture worker in headless Chromium and Firefox. Usage: page.py URL FOLDER_FOR_SCREENSHOTS [PROMPT]

The worker has a network called tiny-x2 that makes pictures twice as large.

Ends with status 77 and a line that says why when there is no Chromium or a Python package is missing."""

import base64
import pathlib
import re
import struct
import sys

from browser import (BLOCKED, browsers, check_accessibility, expect, is_chromium, page_errors, record_bodies, sent_bodies,
                     sync_playwright, wait_until, wait_until_kept)

PATIENCE = 300_000  # milliseconds: a busy machine draws a step a second
expect.set_options(timeout=PATIENCE)
STEPS = "60"  # the test checks while the worker draws
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
        page.set_default_timeout(PATIENCE)
        self.errors = page_errors(page)
        record_bodies(page)
        page.goto(url)
        self.wait_until_ready()

    def wait_until_ready(self):
        self.page.wait_for_selector("html[data-ready]")
        self.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")

    @property
    def sent(self):
        """Bodies of jobs since the page was loaded."""
        return sent_bodies(self.page, "/v1/jobs")

    def status(self):
        return self.page.inner_text("#status")

    def figures(self):
        return self.page.locator("#gallery figure").count()

    def wait_until(self, what, condition):
        wait_until(self.page, what, condition, PATIENCE / 1000)

    def reload(self):
        wait_until_kept(self.page, "rbee-pictures", "pictures")
        self.page.reload()
        self.wait_until_ready()

    def wait_for_end(self, said):
        """The status tells the end of a job before its stream ends: only then the page is idle again."""
        self.wait_until("the end", lambda: said in self.status() and self.page.is_enabled("#go"))

    def draw(self):
        before = self.figures()
        self.page.click("#go")
        self.wait_until("a picture in the gallery", lambda: self.figures() > before)
        self.wait_for_end("done")

    def wait_until_in_view(self, part, height):
        """A picture that is still being decoded moves what is below it."""
        def seen():
            box = self.page.locator(part).bounding_box()
            whole = self.page.evaluate("picture.complete && picture.naturalWidth > 0")
            return whole and box["y"] >= 0 and box["y"] + box["height"] <= height
        self.wait_until(f"{part} in view", seen)

    def shoot(self, name):
        self.page.screenshot(path=self.folder / f"{name}.png", full_page=True)

    def newest(self):
        """The newest picture of the gallery as base64."""
        return self.page.evaluate("""async () => {
          const image = document.querySelector("#gallery figure img");
          const reader = new FileReader();
          const read = new Promise(done => { reader.onload = () => done(reader.result); });
          reader.readAsDataURL(await (await fetch(image.src)).blob());
          return (await read).split(",")[1];
        }""")

    def button(self, name):
        """Of the newest picture."""
        return self.page.locator("#gallery figure").first.get_by_role("button", name=name, exact=True)

    def paint(self, left, right):
        """A stroke over the picture to start from; the ends as parts of its width."""
        canvas, mouse = self.page.locator("#canvas"), self.page.mouse
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        mouse.move(box["x"] + box["width"] * left, box["y"] + box["height"] * 0.4)
        mouse.down()
        mouse.move(box["x"] + box["width"] * right, box["y"] + box["height"] * 0.5, steps=8)
        mouse.up()

    def drop(self, data):
        list_of_files = self.page.evaluate_handle(DROP, ["dropped.png", data])
        self.page.dispatch_event("#drop", "drop", {"dataTransfer": list_of_files})
        self.page.wait_for_selector("#source:not([hidden])")


# A preview, the figures of a step and the title, all before the picture.
DRAWS = """() => !picture.hidden && document.getElementById("status").textContent.includes("steps/s") &&
  /^\\d+% - rbee pictures$/.test(document.title) && !document.querySelector("#gallery figure")"""


def check_drawing(visit):
    page = visit.page
    page.fill("#prompt", PROMPT)
    page.fill("#steps", STEPS)
    page.fill("#seed", "7")
    page.fill("#width", "64")
    page.fill("#height", "72")
    page.click("#go")
    page.wait_for_selector("#bar:not([hidden])")
    page.wait_for_function(DRAWS)
    visit.shoot("page_preview")
    visit.wait_until("a picture in the gallery", lambda: visit.figures() == 1)
    visit.wait_for_end("done")
    data = base64.b64decode(visit.newest())
    assert data.startswith(b"\x89PNG") and b"Seed: 7" in data
    caption = page.inner_text("#gallery figcaption")
    assert PROMPT in caption and "7" in caption, caption
    expect(page).to_have_title("rbee pictures")


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
    visit.paint(0.3, 0.7)
    visit.draw()
    sent = visit.sent[-1]
    assert sent["operation"] == "image_inpaint", sent["operation"]
    assert len(sent["mask_image"]) > 100
    assert (sent["mask_blur"], sent["mask_fill"]) == (1, "original"), sent
    assert "mask_only" not in sent and "mask_invert" not in sent
    assert page.is_disabled("#larger")
    visit.shoot("page")
    page.fill("#width", "96")
    visit.draw()
    assert size_of(visit.newest()) == (96, 72), size_of(visit.newest())
    page.click("#drain")
    page.wait_for_selector("#source", state="hidden")


def painted(page):
    """How many pixels show the mask's colour, which the picture below does not have."""
    return page.evaluate("""() => {
      const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      let count = 0;
      for (let i = 0; i < data.length; i += 4) count += data[i] > data[i + 1] + 60;
      return count;
    }""")


SHEET = """() => {
  const sheet = document.createElement("canvas");
  sheet.width = sheet.height = 64;
  const pen = sheet.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, 64, 64);
  return sheet.toDataURL("image/png").split(",")[1];
}"""


def check_mask(visit):
    """Strokes can be taken back, erased and painted by the keyboard; the request says how to fill."""
    page = visit.page
    visit.drop(page.evaluate(SHEET))
    visit.paint(0.1, 0.4)
    one = painted(page)
    assert one > 0, "nothing is seen of the stroke on a white picture"
    visit.paint(0.5, 0.9)
    two = painted(page)
    assert two > one
    page.click("#undo")
    assert painted(page) == one
    page.click("#redo")
    assert painted(page) == two and page.is_disabled("#redo")
    page.focus("#canvas")
    page.keyboard.press("Control+z")
    assert painted(page) == one
    page.check("#erase")
    visit.paint(0.1, 0.4)
    assert painted(page) < one
    page.uncheck("#erase")
    page.click("#wipe")
    assert painted(page) == 0
    page.focus("#canvas")
    for key in ("ArrowLeft", "ArrowDown", " "):
        page.keyboard.press(key)
    page.focus("#prompt")
    assert painted(page) > 0, "the keyboard painted nothing"
    page.select_option("#fill", "noise")
    page.select_option("#area", "masked")
    page.fill("#blur", "3")
    page.fill("#padding", "16")
    page.check("#invert")
    visit.draw()
    names = ("mask_fill", "mask_only", "mask_blur", "mask_padding", "mask_invert")
    assert [visit.sent[-1][name] for name in names] == ["noise", True, 3, 16, True], visit.sent[-1]
    for name in ("#blur", "#padding"):
        page.fill(name, "")
    page.select_option("#fill", "original")
    page.select_option("#area", "")
    page.uncheck("#invert")
    page.click("#drain")


def check_sizes(visit):
    page = visit.page
    own = int(page.get_attribute("#width", "placeholder"))
    labels = page.locator("#size option").all_text_contents()
    assert f"Square 1:1, {own} x {own}" in labels, labels
    wide = next(label for label in labels if label.startswith("Landscape 3:2"))
    width, height = map(int, re.findall(r"\d+", wide)[2:])
    assert width % 8 == height % 8 == 0 and 0.7 < width * height / own ** 2 < 1.3, wide
    page.select_option("#size", label=wide)
    assert (page.input_value("#width"), page.input_value("#height")) == (str(width), str(height))
    page.click("#swap")
    assert (page.input_value("#width"), page.input_value("#height")) == (str(height), str(width))
    assert page.input_value("#size") == f"{height}x{width}"
    page.fill("#width", "88")
    page.fill("#height", "80")
    assert page.input_value("#size") == ""
    for name in ("#width", "#height"):
        page.fill(name, "64")


def check_seeds(visit):
    page = visit.page
    page.click("#random")
    assert page.input_value("#seed") == ""
    visit.draw()
    assert "seed" not in visit.sent[-1]
    page.click("#again")
    seed = page.input_value("#seed")
    assert seed and f"seed {seed}" in page.inner_text("#gallery figcaption >> nth=0")
    page.fill("#seed", "7")


def check_adapters(visit):
    """LoRAs and embeddings that a worker lists can be put into the prompts."""
    page = visit.page
    assert not page.is_visible("#adapters")  # this worker has none
    page.route("**/sdapi/v1/loras", lambda route: route.fulfill(json=[{"name": "style/ink"}, {"name": "pixel"}]))
    page.route("**/sdapi/v1/embeddings", lambda route: route.fulfill(json={"loaded": {"bad-hands": {}}, "skipped": {}}))
    visit.reload()
    page.fill("#prompt", "a bee")
    page.select_option("#lora", "pixel")
    page.fill("#loraStrength", "0.7")
    page.click("#addLora")
    assert page.input_value("#prompt") == "a bee, <lora:pixel:0.7>"
    page.fill("#negative", "")
    page.click("#addNegative")
    assert page.input_value("#negative") == "bad-hands"
    page.unroute("**/sdapi/v1/loras")
    page.unroute("**/sdapi/v1/embeddings")
    page.fill("#negative", "")
    page.fill("#prompt", PROMPT)


def check_history(visit):
    """Pictures and fields are there after a reload."""
    page = visit.page
    page.fill("#prompt", "kept words")
    page.fill("#steps", "3")
    before, newest = visit.figures(), visit.newest()
    visit.reload()
    assert visit.figures() == before and visit.newest() == newest
    assert page.input_value("#prompt") == "kept words" and page.input_value("#steps") == "3"
    visit.button("Settings").click()
    visit.wait_until("the settings", lambda: page.input_value("#prompt") == PROMPT)
    visit.button(page.locator("#gallery img").first.get_attribute("alt")).click()
    page.wait_for_selector("#picture:not([hidden])")
    assert PROMPT in visit.status(), visit.status()
    visit.button("Delete").click()
    expect(page.locator("#gallery figure")).to_have_count(before - 1)
    visit.reload()
    assert visit.figures() == before - 1
    page.fill("#steps", "2")


BAD_RECORD = """() => new Promise(done => {
  const request = indexedDB.open("rbee-pictures", 1);
  request.onsuccess = () => {
    const transaction = request.result.transaction("pictures", "readwrite");
    transaction.objectStore("pictures").put({id: "bad", blob: 5});
    transaction.oncomplete = () => { request.result.close(); done(); };
  };
})"""


def check_bad_record(visit):
    """One that cannot be read does not hide the other pictures."""
    before = visit.figures()
    visit.page.evaluate(BAD_RECORD)
    visit.reload()
    assert before > 0 and visit.figures() == before, (before, visit.figures())


def check_keyboard(visit):
    """A picture without a pointer: the prompt has the focus, the next stops are in its order."""
    page = visit.page
    visit.reload()
    expect(page.locator("#prompt")).to_be_focused()
    stops = []
    for _ in range(4):
        stops.append(page.evaluate("document.activeElement.id"))
        page.keyboard.press("Tab")
    assert stops == ["prompt", "negative", "go", "size"], stops
    before = visit.figures()
    page.focus("#prompt")
    page.keyboard.press("Control+Enter")
    visit.wait_until("a picture in the gallery", lambda: visit.figures() > before)
    visit.wait_for_end("done")


def check_axe(visit):
    visit.drop(visit.newest())
    check_accessibility(visit.page, "pictures")
    visit.page.click("#drain")


def check_forgetting(visit):
    page = visit.page
    page.click("#forget")
    page.click("#forget")
    expect(page.locator("#status")).to_have_text("all pictures are deleted")
    assert visit.figures() == 0 and not page.is_visible("#past")
    visit.reload()
    assert visit.figures() == 0


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
    visit.button("Enlarge").click()
    visit.wait_until("a larger picture", lambda: visit.figures() == before + 1)
    visit.wait_for_end("done")
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
        visit.button("Enlarge").click()
        visit.wait_until("the tiles", lambda: visit.status() == "enlarging: tile 2 of 9")
        assert page.is_disabled("#go")
        page.click("#stop")
    visit.wait_for_end("cancelled")
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
    visit.wait_until("a preview of this job", lambda: (page.get_attribute("#picture", "alt") or "").startswith("Preview"))
    page.click("#stop")
    visit.wait_for_end("cancelled")
    visit.wait_until("the last preview in the gallery", lambda: visit.figures() == before + 1)
    assert "stopped" in page.locator("#gallery figcaption").first.inner_text()
    page.fill("#count", "1")
    page.fill("#steps", "2")
    visit.draw()


def check_stop_in_view(visit):
    """While a picture is drawn, it is on a phone's screen together with Stop."""
    page = visit.page
    page.fill("#steps", "150")
    page.fill("#count", "16")
    page.click("#go")
    visit.wait_until("a preview", lambda: (page.get_attribute("#picture", "alt") or "").startswith("Preview"))
    for part in ("#stop", "#picture", "#status"):
        visit.wait_until_in_view(part, 740)
    below = page.locator("#stop").bounding_box()["y"]
    status = page.locator("#status").bounding_box()
    assert status["y"] + status["height"] <= below, (status, below)
    page.screenshot(path=visit.folder / "page_phone_drawing.png")
    page.click("#stop")
    visit.wait_for_end("cancelled")
    visit.wait_until("Stop back at its place above the picture",
                     lambda: page.locator("#stop").bounding_box()["y"] < 0)
    page.fill("#steps", "2")
    page.fill("#count", "1")


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
        visit.wait_until_in_view(part, 740)
    page.screenshot(path=folder / "page_phone.png")
    check_accessibility(page, "pictures on a phone")
    check_stop_in_view(visit)
    # Landscape: the picture leaves room for the line below it.
    page.set_viewport_size({"width": 740, "height": 360})
    visit.draw()
    visit.wait_until_in_view("#status", 360)


def check_without_memory(browser, url, folder):
    page = browser.new_page()
    page.add_init_script(BLOCKED)
    visit = Visit(page, url, folder)
    expect(page.locator("#status")).to_contain_text("pictures cannot be kept in this browser")
    page.fill("#prompt", PROMPT)
    for name, value in (("steps", "2"), ("width", "64"), ("height", "64")):
        page.fill(f"#{name}", value)
    visit.draw()
    assert visit.figures() == 1 and not visit.errors, visit.errors


def visit_all(browser, url, folder):
    page = browser.new_page(viewport={"width": 1180, "height": 820})
    visit = Visit(page, url, folder)
    checks = [check_drawing, check_settings, check_from_picture, check_mask, check_sizes, check_seeds, check_history,
              check_bad_record, check_adapters, check_keyboard, check_axe]
    if is_chromium(browser):  # takes longer, and says little about a browser
        checks += [check_photographs, check_second_pass, check_networks, check_leaving, check_errors,
                   check_cancelling]
    for check in [*checks, check_forgetting]:
        check(visit)
        assert not visit.errors, visit.errors
        print(browser.browser_type.name, check.__name__, "passed", flush=True)
    check_phone(page, url, folder)
    check_without_memory(browser, url, folder)
    print(browser.browser_type.name, "check_phone and check_without_memory passed", flush=True)


def main():
    url, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    with sync_playwright() as play:
        for browser in browsers(play):
            shots = folder / browser.browser_type.name
            shots.mkdir(parents=True, exist_ok=True)
            visit_all(browser, url, shots)


if __name__ == "__main__":
    main()
