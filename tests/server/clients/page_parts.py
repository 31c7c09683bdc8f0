#!/usr/bin/env python3
"""Parts of the pages by themselves, in headless Chromium and Firefox, and the chat page in a browser that keeps
nothing. Usage: page_parts.py URL

The worker's engine repeats what it is told. Ends with status 77 and a line that says why when there is no Chromium or a
Python package is missing."""

import json
import sys

from browser import (BLOCKED, browsers, expect, page_errors, record_bodies, sent_bodies, sync_playwright,
                     wait_until_kept)

URL = sys.argv[1]
MOST = 5000  # milliseconds on a busy machine; what is quadratic takes minutes


def call(page, module, code, value=None):
    """What a function returns for the exports of one of the page's modules, and a value."""
    return page.evaluate("""async ([name, value]) => {
      const folder = document.querySelector("script[type=module]").src.replace(/[^/]*$/, "");
      return (%s)(await import(folder + name), value);
    }""" % code, [module, value])


READ = """async ({events}, chunks) => {
  const bytes = chunks.map(chunk => Uint8Array.from(chunk));
  const stream = new ReadableStream({start(to) { bytes.forEach(each => to.enqueue(each)); to.close(); }});
  const out = [];
  for await (const {event, data} of events(stream)) out.push([event, data]);
  return out;
}"""


def check_events(page):
    """As https://html.spec.whatwg.org/multipage/server-sent-events.html reads streams."""
    def read(text, size):
        data = text.encode()
        return call(page, "events.js", READ, [list(data[i:i + size]) for i in range(0, len(data), size)])

    text = (": a comment\r\n\r\nevent: first\r\ndata: one\r\ndata:two\r\ndata\r\n\r\n"
            "data: K\u00e4se \U0001f41d\n\nid: 7\nretry: 5\n\nevent:last\rdata:  {\"a\": \":\"}\r\rdata: [DONE]\n\ndata: cut off\n")
    wanted = [["first", "one\ntwo\n"], ["message", "K\u00e4se \U0001f41d"], ["last", ' {"a": ":"}'],
              ["message", "[DONE]"]]
    for size in (1, 2, 3, 7, 1000):
        assert read(text, size) == wanted, (size, read(text, size))
    assert read("", 1) == [] and read("data: x", 3) == []


ANSWER = """async ({complete}, text) => {
  window.fetch = async () => new Response(text, {headers: {"Content-Type": "text/event-stream"}});
  const out = [];
  try {
    for await (const piece of complete([{role: "user", content: "Hi"}], {})) out.push(piece);
  } catch (error) {
    out.push(error.message);
  }
  return out;
}"""


def check_ends(page):
    """A stream without [DONE] is whole if the answer says how it ended."""
    def piece(delta, reason=None):
        return f"data: {json.dumps({'choices': [{'delta': delta, 'finish_reason': reason}]})}\r\n\r\n"

    begun = piece({"content": "a"})
    assert call(page, "worker.js", ANSWER, begun + piece({}, "stop")) == [
        {"text": "a"}, {"reason": "stop", "usage": None}]
    assert call(page, "worker.js", ANSWER, begun) == [{"text": "a"}, "the connection broke off"]
    page.reload()


MARKDOWN = """({toHtml}, [before, unit]) => {
  const text = before + unit.repeat((1 << 20) / unit.length);
  const begin = performance.now();
  toHtml(text);
  return performance.now() - begin;
}"""
FENCED = """({asSent}, unit) => {
  const text = unit.repeat((1 << 20) / unit.length);
  const begin = performance.now();
  const {content} = asSent({role: "user", content: "", files: [{name: "a", text}]});
  return [performance.now() - begin, content.split("\\n")[1]];
}"""
# What rules of the library look far ahead or back for.
UNITS = ("*", "_", "~", "`", "[", "![", "](", "[](", "![](", "[a](<", "|", "<", "<b>", "<!--", "&", "*a_", "_a*", "a**b",
         "[a]: b\n", "http://a.b ", "mailto:", "a@b.c ", "a|b\n-|-\n", "> ", "\n> ", "- ", "a\n\n", " \n", "word ")


def check_times(page):
    """A megabyte of anything is shown within a second on a machine that does nothing else."""
    code = [("```js\n", unit) for unit in ('"', "(", "[", "{", "/*", "(\n", "let a = 5;\n")]
    for text in [("", unit) for unit in UNITS] + code:
        milliseconds = min(call(page, "markdown.js", MARKDOWN, text) for _ in range(2))
        assert milliseconds < MOST, (text, milliseconds)
    for unit in ("`", "``` ", "a"):
        milliseconds, fence = min(call(page, "attachments.js", FENCED, unit) for _ in range(2))
        assert milliseconds < MOST, (unit, milliseconds)
        assert len(fence) == {"`": (1 << 20) + 1, "``` ": 4, "a": 3}[unit], (unit, len(fence))


COLOURS = """({toHtml}, code) => {
  const node = document.createElement("div");
  node.innerHTML = toHtml("```js\\n" + code + "```");
  const strings = [...node.querySelectorAll(".hljs-string")].map(each => each.textContent).join("");
  return [node.querySelector("code").textContent, strings];
}"""


def check_colours(page):
    """Code that is coloured in pieces is whole, and a string that goes over several pieces is one."""
    code = "let a = `" + "a long line of a text\n" * 500 + "`;\n"
    text, strings = call(page, "markdown.js", COLOURS, code)
    assert text == code and strings == code[8:-2], (len(text), len(strings))


GOOD = {"id": "1", "title": "Kept", "changed": 5, "messages": [
    {"role": "user", "content": "a", "pictures": ["data:image/png;base64,AA=="], "files": [{"name": "n", "text": "t"}],
     "lines": [None, [{"role": "assistant", "content": "old"}]], "at": 0},
    {"role": "assistant", "content": "b", "calls": [{"name": "f", "arguments": "{}"}], "tokens": 3, "reason": None}]}
WRONG = ({"content": 5}, {"role": "system"}, {"pictures": ["https://example.com/a.png"]}, {"pictures": "a"},
         {"files": [{"name": "a"}]}, {"calls": [None]}, {"calls": [{"name": "f", "arguments": {}}]}, {"tokens": "<b>"},
         {"thoughts": {}}, {"lines": [[]], "at": 0}, {"lines": [None], "at": 1}, {"lines": {}, "at": 0},
         {"lines": [None, [{"role": "user"}]], "at": 0})


def bring(page, chats):
    page.set_input_files("#import-file", {"name": "c.json", "mimeType": "application/json",
                                          "buffer": json.dumps(chats).encode()})


def check_imports(page):
    titles = page.locator("#chats .open")
    for wrong in WRONG:
        chat = {**GOOD, "messages": [GOOD["messages"][0], {**GOOD["messages"][1], **wrong}]}
        page.evaluate("document.getElementById('status').textContent = ''")
        bring(page, [GOOD, chat])
        expect(page.locator("#status")).to_contain_text("c.json holds no chats of this page: ")
    bring(page, [{**GOOD, "messages": [{"role": "user", "content": ""}] * 10_001}])
    expect(page.locator("#status")).to_contain_text("more than 10000 messages")
    expect(titles).to_have_count(0)
    bring(page, [GOOD])
    expect(titles).to_have_text(["Kept"])
    bring(page, [{**GOOD, "title": "Of the same id", "changed": 4, "unknown": 1}])
    expect(titles).to_have_text(["Kept", "Of the same id"])
    wait_until_kept(page, "rbee-chat", "chats")
    page.reload()
    expect(titles).to_have_text(["Kept", "Of the same id"])
    titles.first.click()
    expect(page.locator(".answer .call-head b")).to_have_text("f")
    expect(page.locator(".answer .version")).to_have_text("1/2")


BAD_RECORD = """() => new Promise(done => {
  const request = indexedDB.open("rbee-chat", 1);
  request.onsuccess = () => {
    const transaction = request.result.transaction("chats", "readwrite");
    transaction.objectStore("chats").put({id: "bad", messages: 5});
    transaction.oncomplete = () => { request.result.close(); done(); };
  };
})"""


def check_bad_record(page):
    """One chat that cannot be read does not hide the others."""
    page.evaluate(BAD_RECORD)
    page.reload()
    expect(page.locator("#chats .open")).to_have_text(["Kept", "Of the same id"])


def check_without_memory(browser):
    page = browser.new_page()
    page.add_init_script(BLOCKED)
    errors = page_errors(page)
    record_bodies(page)
    page.goto(URL)
    expect(page.locator("#model")).to_have_text("hf:tiny/chat")
    expect(page.locator("#status")).to_contain_text("chats cannot be kept in this browser")
    page.click("#theme")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.click("#open-settings")
    page.fill("#s-top_k", "7")
    page.click("#settings button[value=done]")
    page.fill("#text", "hello")
    page.press("#text", "Enter")
    expect(page.locator(".answer .figures")).to_contain_text("tokens")
    expect(page.locator(".answer .body")).to_have_text("hello")
    assert sent_bodies(page, "/v1/chat/completions")[-1]["top_k"] == 7
    row = page.locator("#chats div", has_text="hello")
    row.hover()
    row.locator(".drop").click()
    row.locator(".drop").click()
    expect(page.locator("#chats .open")).to_have_count(0)
    assert not errors, errors


def main():
    with sync_playwright() as play:
        for browser in browsers(play):
            page = browser.new_page()
            errors = page_errors(page)
            page.goto(URL)
            expect(page.locator("#model")).to_have_text("hf:tiny/chat")
            for check in (check_events, check_ends, check_times, check_colours, check_imports, check_bad_record):
                check(page)
                print(browser.browser_type.name, check.__name__, "passed", flush=True)
            assert not errors, errors
            check_without_memory(browser)
            print(browser.browser_type.name, "check_without_memory passed", flush=True)


if __name__ == "__main__":
    main()
