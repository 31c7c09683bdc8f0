#!/usr/bin/env python3
"""The chat worker's page in headless Chromium and Firefox. Usage: chat_page.py URL FOLDER_FOR_SCREENSHOTS KEY

The worker's engine repeats the system prompt, or without one what it is told, and holds after a
text that begins with "hold". Ends with status 77 and a line that says why when there is no Chromium or a Python package
is missing."""

import base64
import json
import pathlib
import re
import sys

from browser import (browsers, check_accessibility, expect, is_chromium, page_errors, record_bodies,
                     sent_bodies, sync_playwright, wait_until, wait_until_kept)

URL, FOLDER, KEY = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
PATIENCE = 60_000  # milliseconds

RICH = """## Reading a file by lines

A *short* example, with `with` so that the file is **closed** again:

```python
def lines(path):
    # one at a time: the file may be large
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            yield number, line.rstrip("\\n")
```

| Way | Memory | Note |
|---|---|---|
| `for line in file` | a line | the usual one |
| `file.readlines()` | the file | simple, for small ones |

1. Blanks at the end stay, as only the line break is cut off.
2. See [the manual](https://docs.python.org/3/library/io.html)."""

THINKING = """<think>
The weather depends on the <b>city</b>.
Rome is meant.
</think>

I look it up.
<tool_call>
{"name": "get_weather", "arguments": {"city": "Rome", "days": 2}}
</tool_call>"""
TOOLS = """[{"type": "function", "function": {"name": "get_weather", "parameters":
  {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}]"""

NASTY = """<img src=x onerror="window.hurt=1"> <script>window.hurt=2</script>

[click](javascript:window.hurt=3) ![x](http://127.0.0.1:9/pixel.png)

```html
<img src=x onerror="window.hurt=4"><script>window.hurt=5</script>
```

```"><img src=x onerror=window.hurt=6>
text
```"""


class Visit:
    """One browser profile with the page open."""

    def __init__(self, browser, **options):
        self.context = browser.new_context(**options)
        self.reads_clipboard = is_chromium(browser)
        self.shots = FOLDER / browser.browser_type.name
        self.shots.mkdir(parents=True, exist_ok=True)
        if self.reads_clipboard:
            self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.outside, self.errors = [], page_errors(self.page)
        self.page.on("request", self.note)
        record_bodies(self.page)
        self.page.on("console", self.note_console)
        self.page.goto(URL)
        expect(self.page.locator("#model")).to_have_text("hf:tiny/chat")

    def note(self, request):
        if not request.url.startswith((URL, "data:", "blob:")):
            self.outside.append(request.url)

    @property
    def sent(self):
        """Bodies of chats since the page was loaded."""
        return sent_bodies(self.page, "/v1/chat/completions")

    def note_console(self, message):
        if message.type == "error" and "401" not in message.text:
            self.errors.append(message.text)

    def send(self, text):
        # In Firefox, fill() would press Enter at the end of each line.
        self.page.locator("#text").evaluate(
            "(field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }", text)
        self.page.press("#text", "Enter")

    def ask(self, text):
        count = self.answers().count()
        self.send(text)
        expect(self.answers()).to_have_count(count + 1)
        self.finished()

    def answers(self):
        return self.page.locator(".answer")

    def system_prompt(self, text):
        self.page.click("#open-settings")
        self.page.fill("#s-system", text)
        self.page.click("#settings button[value=done]")

    def reload(self):
        wait_until_kept(self.page, "rbee-chat", "chats")
        self.page.reload()

    def finished(self):
        expect(self.page.locator("#send")).to_be_visible()

    def shoot(self, name):
        self.page.screenshot(path=self.shots / f"{name}.png")

    def end(self):
        assert not self.errors, self.errors
        assert not self.outside, self.outside
        self.context.close()


def give_key(visit):
    page = visit.page
    visit.send("hello")
    expect(page.locator("#settings")).to_be_visible()
    expect(page.locator("#s-key")).to_be_focused()
    page.fill("#s-key", KEY)
    page.click("#settings button[value=done]")
    expect(page.locator(".failure")).to_contain_text("API key")
    page.locator(".answer .tools button", has_text="Regenerate").click()
    expect(page.locator(".answer .body")).to_have_text("hello")
    visit.finished()
    assert visit.page.locator(".failure").count() == 0


def check_markdown(visit):
    page = visit.page
    page.click("#new")
    visit.system_prompt(RICH)
    visit.ask("How do I read a large file line by line in Python?")
    visit.system_prompt("")
    answer = visit.answers().last
    expect(answer.locator("h2")).to_have_text("Reading a file by lines")
    expect(answer.locator("td")).to_have_count(6)
    expect(answer.locator(".code .hljs-keyword").first).to_have_text("def")
    expect(answer.locator(".figures")).to_contain_text("tokens/s")
    link = answer.locator("a")
    assert link.get_attribute("rel") == "noopener noreferrer"
    if not visit.reads_clipboard:
        return
    answer.locator(".copy-code").click()
    code = re.compile(r'def lines\(path\):\n    # one.*"\\n"\)\n', re.DOTALL)
    wait_until(page, "the code in the clipboard",
               lambda: code.fullmatch(page.evaluate("navigator.clipboard.readText()")))


def check_thoughts_and_calls(visit):
    page = visit.page
    page.click("#new")
    page.click("#open-settings")
    page.fill("#s-tools", "no JSON")
    page.click("#settings button[value=done]")
    visit.send("anything")
    expect(page.locator(".failure")).to_contain_text("not JSON")
    page.click("#open-settings")
    page.fill("#s-tools", TOOLS)
    page.click("#settings button[value=done]")
    page.click("#new")
    visit.system_prompt(THINKING)
    visit.ask("How is the weather in Rome?")
    visit.system_prompt("")
    assert visit.sent[-1]["tools"][0]["function"]["name"] == "get_weather", visit.sent[-1]
    answer = visit.answers().last
    expect(answer.locator(".body")).to_have_text("I look it up.")
    expect(answer.locator(".call-head b")).to_have_text("get_weather")
    call = answer.locator(".call pre")
    expect(call).not_to_be_visible()
    answer.locator(".call summary").click()
    expect(call).to_be_visible()
    expect(call).to_contain_text('"city": "Rome"')
    thoughts = answer.locator(".thoughts-text")
    expect(thoughts).not_to_be_visible()
    answer.locator(".thoughts summary").click()
    expect(thoughts).to_be_visible()
    expect(thoughts).to_contain_text("on the <b>city</b>")
    visit.shoot("chat_thoughts")
    page.click("#theme")
    page.click("#theme")
    visit.shoot("chat_thoughts_dark")
    page.click("#theme")
    visit.reload()  # kept with the chat
    page.locator("#chats .open", has_text="How is the weather").click()
    expect(visit.answers().last.locator(".call-head b")).to_have_text("get_weather")
    page.click("#open-settings")
    page.fill("#s-tools", "")
    page.click("#settings button[value=done]")


def check_injection(visit):
    page = visit.page
    page.click("#new")
    visit.ask(NASTY)
    answer = visit.answers().last
    assert answer.locator("img, script, iframe").count() == 0
    assert answer.locator("a[href^='javascript']").count() == 0
    expect(answer.locator("a", has_text=re.compile("^x$"))).to_have_count(1)  # the picture
    page.wait_for_timeout(100)
    assert page.evaluate("window.hurt") is None


def check_stop(visit):
    page = visit.page
    page.click("#new")
    visit.send("hold on")
    expect(visit.answers().locator(".body")).to_have_text("hold on")
    expect(page.locator("#stop")).to_be_visible()
    page.press("#text", "Escape")
    visit.finished()
    expect(visit.answers().locator(".body")).to_have_text("hold on")
    assert page.locator(".failure").count() == 0
    visit.send("hold again")
    page.locator("#stop").click()
    visit.finished()


def check_regenerate_and_edit(visit):
    page = visit.page
    page.click("#new")
    visit.ask("first")
    visit.ask("second")
    assert [m["content"] for m in visit.sent[-1]["messages"]] == ["first", "first", "second"]
    visit.answers().last.locator("button", has_text="Regenerate").click()
    visit.finished()
    assert [m["content"] for m in visit.sent[-1]["messages"]] == ["first", "first", "second"]
    page.locator(".user").first.locator("button", has_text="Edit").click()
    page.fill(".editing textarea", "changed")
    page.press(".editing textarea", "Enter")
    expect(visit.answers()).to_have_count(1)
    expect(visit.answers().locator(".body")).to_have_text("changed")
    visit.finished()
    expect(page.locator("#chats .now .open")).to_have_text("changed")


def check_versions(visit):
    """Of the chat of check_regenerate_and_edit: what was edited or made anew can be seen again."""
    page = visit.page
    first, versions = page.locator(".user").first, page.locator(".version")
    expect(first.locator(".version")).to_have_text("2/2")
    first.get_by_label("Previous version").click()
    expect(page.locator(".user .body")).to_have_text(["first", "second"])
    expect(versions).to_have_text(["1/2", "2/2"])  # of the question, and of the last answer
    visit.answers().last.get_by_label("Previous version").click()
    expect(versions).to_have_text(["1/2", "1/2"])
    visit.reload()  # kept with the chat
    page.locator("#chats .open", has_text="changed").click()
    expect(versions).to_have_text(["1/2", "1/2"])
    first.get_by_label("Next version").click()
    expect(page.locator(".user .body")).to_have_text(["changed"])
    visit.ask("third")
    assert [m["content"] for m in visit.sent[-1]["messages"]] == ["changed", "changed", "third"]


def check_going_on(visit):
    """A stopped answer goes on where it ended."""
    page = visit.page
    page.click("#new")
    visit.send("hold this")
    expect(visit.answers().locator(".body")).to_have_text("hold this")
    page.locator("#stop").click()
    visit.finished()
    answer = visit.answers().last
    answer.get_by_role("button", name="Continue", exact=True).click()
    expect(answer.locator(".body")).to_have_text("hold thishold this")
    page.locator("#stop").click()
    visit.finished()
    sent = visit.sent[-1]
    assert sent["messages"][-1] == {"role": "assistant", "content": "hold this"}, sent
    assert (sent["continue_final_message"], sent["add_generation_prompt"]) == (True, False), sent
    visit.ask("done")
    expect(answer.get_by_role("button", name="Continue", exact=True)).to_have_count(0)


def check_settings(visit):
    page = visit.page
    page.click("#open-settings")
    page.fill("#s-system", "Be brief.")
    page.fill("#s-temperature", "0.5")
    page.fill("#s-top_k", "7")
    page.fill("#s-max_tokens", "2")
    page.fill("#s-thinking_token_budget", "0")
    page.select_option("#s-reasoning_effort", "low")
    page.fill("#s-stop", "END\n###")
    page.locator("#settings summary").click()
    page.fill("#s-xtc_probability", "0.25")
    assert page.get_attribute("#s-top_k", "title") == "top_k"
    visit.shoot("chat_settings")
    page.click("#settings button[value=done]")
    visit.ask("twelve letters")
    sent = visit.sent[-1]
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}, sent
    assert (sent["temperature"], sent["top_k"], sent["max_tokens"]) == (0.5, 7, 2), sent
    assert (sent["thinking_token_budget"], sent["reasoning_effort"]) == (0, "low"), sent
    shown = float(page.get_attribute("#s-top_p", "placeholder"))
    assert sent["top_p"] == shown and "seed" not in sent, sent
    assert (sent["stop"], sent["xtc_probability"]) == (["END", "###"], 0.25), sent
    expect(visit.answers().last.locator(".body")).to_have_text("Be brief")
    page.click("#open-settings")
    for name in ("system", "temperature", "top_k", "max_tokens", "thinking_token_budget", "stop",
                 "xtc_probability"):
        page.fill(f"#s-{name}", "")
    page.select_option("#s-reasoning_effort", "")
    page.click("#settings button[value=done]")


# 2 x 2 pixels, one of each colour and white.
PICTURE = ("iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEklEQVR42mP4z8DAAMIM/4EAAB/uBfvxq7p3"
           "AAAAAElFTkSuQmCC")


def drop_picture(page, name):
    page.evaluate("""([data, name]) => {
      const bytes = Uint8Array.from(atob(data), letter => letter.charCodeAt(0));
      const transfer = new DataTransfer();
      transfer.items.add(new File([bytes], name, {type: "image/png"}));
      document.dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, cancelable: true}));
    }""", [PICTURE, name])


def check_pictures(visit):
    page = visit.page
    page.click("#new")
    expect(page.locator("#attach")).to_be_visible()
    file = {"name": "a.png", "mimeType": "image/png", "buffer": base64.b64decode(PICTURE)}
    page.set_input_files("#files", file)
    expect(page.locator("#attached img")).to_have_count(1)
    drop_picture(page, "b.png")
    expect(page.locator("#attached img")).to_have_count(2)
    drop_picture(page, "c.png")  # the worker takes two
    expect(page.locator("#status")).to_contain_text("2 pictures at most")
    expect(page.locator("#attached img")).to_have_count(2)
    page.locator("#attached button").first.click()
    expect(page.locator("#attached img")).to_have_count(1)
    page.set_input_files("#files", {"name": "x.png", "mimeType": "image/png", "buffer": b"no"})
    expect(page.locator("#status")).to_contain_text("x.png is no picture")
    visit.shoot("chat_attach")
    visit.ask("What do you see?")
    expect(page.locator("#attached")).to_be_hidden()
    url = "data:image/png;base64," + PICTURE
    assert visit.sent[-1]["messages"] == [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "text", "text": "What do you see?"}]}], visit.sent[-1]
    expect(page.locator(".user img")).to_have_attribute("src", url)
    visit.shoot("chat_picture")
    visit.reload()  # kept in the browser
    page.locator("#chats .open", has_text="What do you see?").click()
    expect(page.locator(".user img")).to_have_attribute("src", url)
    visit.ask("And now?")
    assert visit.sent[-1]["messages"][0]["content"][0]["image_url"]["url"] == url


NOTES = "K\u00e4se ```x```\n"


def check_text_files(visit):
    page = visit.page
    page.click("#new")
    page.set_input_files("#files", [
        {"name": "notes.md", "mimeType": "text/markdown", "buffer": NOTES.encode()},
        {"name": "a.bin", "mimeType": "application/octet-stream", "buffer": b"\x00\x01"}])
    expect(page.locator("#status")).to_contain_text("a.bin is neither text nor a picture")
    expect(page.locator("#attached .file")).to_have_count(1)
    check_accessibility(page, "an attached file")
    page.get_by_label("Remove notes.md").click()
    expect(page.locator("#attached")).to_be_hidden()
    page.set_input_files("#files", {"name": "notes.md", "mimeType": "text/markdown", "buffer": NOTES.encode()})
    expect(page.locator("#attached .file")).to_have_count(1)
    visit.ask("What is in it?")
    assert visit.sent[-1]["messages"] == [{"role": "user", "content":
        f"notes.md:\n````\n{NOTES}````\n\nWhat is in it?"}], visit.sent[-1]
    file = page.locator(".user .file")
    expect(file.locator("pre")).not_to_be_visible()
    file.locator("summary").click()
    expect(file.locator("pre")).to_have_text(NOTES.rstrip())
    page.set_input_files("#files", {"name": "big.txt", "mimeType": "text/plain", "buffer": b"x" * 1100000})
    expect(page.locator("#status")).to_contain_text("big.txt is larger than 1 MiB")


def saved(page, button):
    """The text of the file that the button offers. Playwright hears of no downloads in Firefox."""
    page.evaluate("""() => {
      const make = URL.createObjectURL;
      URL.createObjectURL = blob => { window.offered = blob; return make.call(URL, blob); };
    }""")
    page.click("#open-settings")
    page.click(button)
    page.click("#settings button[value=done]")
    return page.evaluate("window.offered.text()")


def check_files_of_chats(visit):
    page = visit.page
    page.locator("#chats .open", has_text="How is the weather").click()
    text = saved(page, "#export-one")
    assert text.startswith("# How is the weather in Rome?\n\n## User\n"), text
    assert "I look it up." in text and "Tool call: get_weather" in text, text
    everything = saved(page, "#export")
    titles = page.locator("#chats .open").all_text_contents()
    assert [chat["title"] for chat in json.loads(everything)] == titles
    page.click("#open-settings")
    page.click("#forget")
    page.click("#forget")
    expect(page.locator("#status")).to_contain_text("all chats are deleted")
    page.set_input_files("#import-file", {"name": "no.json", "mimeType": "application/json", "buffer": b"[1]"})
    expect(page.locator("#status")).to_contain_text("no.json holds no chats")
    expect(page.locator("#chats .open")).to_have_count(0)
    page.set_input_files("#import-file", {"name": "chats.json", "mimeType": "application/json",
                                          "buffer": everything.encode()})
    expect(page.locator("#chats .open")).to_have_text(titles)


def check_axe(visit):
    page = visit.page
    check_accessibility(page, "an empty chat")
    page.locator("#chats .open", has_text="How is the weather").click()
    for summary in page.locator(".answer summary").all():
        summary.click()
    check_accessibility(page, "reasoning and a call")
    page.locator("#chats .open", has_text="How do I read").click()
    check_accessibility(page, "Markdown")
    page.locator("#chats .open", has_text="What is in it?").click()
    check_accessibility(page, "a text file")


def check_keyboard(visit):
    """A chat without a pointer; the answer is read aloud."""
    page = visit.page
    page.keyboard.press("Control+Shift+O")
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type("by keys")
    page.keyboard.press("Enter")
    visit.finished()
    expect(page.locator("#heard")).to_have_text("by keys")
    page.locator("#text").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    expect(page.locator(":focus")).to_have_text("Regenerate")
    page.keyboard.press("Enter")
    expect(visit.answers().locator(".version")).to_have_text("2/2")
    visit.finished()


def check_kept(visit):
    page = visit.page
    before = page.locator("#chats .open").all_text_contents()
    assert len(before) >= 4, before
    visit.reload()
    expect(page.locator("#chats .open")).to_have_text(before)
    page.fill("#find", "**closed**")
    expect(page.locator("#chats .open")).to_have_count(1)
    page.locator("#chats .open").click()
    expect(visit.answers().locator("h2")).to_have_text("Reading a file by lines")
    page.fill("#find", "")
    row = page.locator("#chats div", has_text="hold on")
    row.hover()
    row.locator(".drop").click()
    row.locator(".drop").click()
    expect(page.locator("#chats .open")).to_have_count(len(before) - 1)


def check_themes(visit):
    page = visit.page
    page.locator("#chats .open", has_text="How do I read").click()
    expect(visit.answers()).to_have_count(1)
    visit.shoot("chat_light")
    page.click("#theme")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", background)[:3])) < 60, background
    visit.shoot("chat_dark")
    page.keyboard.press("Control+Shift+O")
    expect(page.locator("#empty")).to_be_visible()
    visit.shoot("chat_empty")


def check_whole_name(page, name):
    """The name of the model stands there to its end."""
    cut = page.evaluate("""name => {
      const element = document.getElementById("model");
      element.textContent = name;
      return element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight ||
        element.getBoundingClientRect().right > innerWidth;
    }""", name)
    assert not cut, name


def check_phone(browser):
    touch = {"has_touch": True, "is_mobile": True} if is_chromium(browser) else {}
    visit = Visit(browser, viewport={"width": 390, "height": 844}, device_scale_factor=2, **touch)
    page = visit.page
    tap = page.tap if touch else page.click
    give_key(visit)
    expect(page.locator("#side")).not_to_be_visible()
    tap("#menu")
    expect(page.locator("#side")).to_be_visible()
    tap("#new")
    expect(page.locator("#side")).not_to_be_visible()
    visit.system_prompt(RICH)
    visit.ask("How do I read a large file line by line in Python?")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, width
    assert page.evaluate("document.documentElement.scrollHeight") <= 844
    expect(page.locator("#text")).to_be_in_viewport()
    visit.shoot("chat_phone")
    page.set_viewport_size({"width": 360, "height": 740})
    visit.system_prompt("```python\nprint('" + "a long line " * 12 + "')\n```")
    visit.ask("A long line of code?")
    for part in ("header", "#messages", ".answer", "#composer", "#send"):
        box = page.locator(part).last.bounding_box()
        assert box["x"] + box["width"] <= 360, (part, box)
    assert page.evaluate("(box => box.scrollWidth > box.clientWidth)"
                         "([...document.querySelectorAll('.code pre')].at(-1))")
    check_accessibility(page, "a phone")
    check_whole_name(page, "SmolLM2-135M-Instruct.Q4_1")
    check_whole_name(page, "hf:bartowski/Mistral-Small-3.2-24B-Instruct-2506-GGUF:Q4_K_M")
    page.evaluate("document.getElementById('model').textContent = 'a-long-name-'.repeat(20)")
    assert page.evaluate("document.querySelector('main').scrollWidth") <= 360
    visit.shoot("chat_phone_code")
    tap("#menu")
    page.wait_for_timeout(300)
    visit.shoot("chat_phone_list")
    check_escape(visit)
    visit.end()


def check_escape(visit):
    """It closes what is open, the list or a dialog, and only then stops an answer. The list covers a page that keys do not reach."""
    page = visit.page
    page.keyboard.press("Escape")
    expect(page.locator("#side")).not_to_be_visible()
    expect(page.locator("#menu")).to_be_focused()
    visit.system_prompt("")
    page.fill("#text", "hold on")
    page.press("#text", "Enter")
    expect(page.locator("#stop")).to_be_visible()
    page.click("#menu")
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate("!document.activeElement.closest('main')")
    page.keyboard.press("Escape")
    expect(page.locator("#side")).not_to_be_visible()
    page.evaluate("document.getElementById('models').showModal()")
    page.keyboard.press("Escape")
    expect(page.locator("#models")).not_to_be_visible()
    expect(page.locator("#stop")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#stop")).not_to_be_visible()
    page.click("#menu")
    page.set_viewport_size({"width": 1180, "height": 740})
    page.fill("#text", "The list is beside the chat now.")


def visit_all(browser):
    visit = Visit(browser, viewport={"width": 1180, "height": 780})
    for check in (give_key, check_markdown, check_thoughts_and_calls, check_injection, check_stop,
                  check_regenerate_and_edit, check_versions, check_going_on, check_settings, check_pictures,
                  check_text_files, check_kept, check_themes, check_axe, check_keyboard, check_files_of_chats):
        check(visit)
        print(browser.browser_type.name, check.__name__, "passed", flush=True)
    visit.end()
    check_phone(browser)
    print(browser.browser_type.name, "check_phone passed", flush=True)


def main():
    with sync_playwright() as play:
        for browser in browsers(play):
            visit_all(browser)


if __name__ == "__main__":
    main()
