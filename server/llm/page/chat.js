// The page of the chat worker.
import {allChats, dropAll, dropChat, loadSettings, saveChat, saveSettings} from "./store.js";
import {toHtml} from "./markdown.js";
import {pictureRow, picturesIn, readPicture, withPictures} from "./pictures.js";
import {Refused, complete, health} from "./worker.js";

const $ = id => document.getElementById(id);
let settings = loadSettings();
let chats = [];
let chat = null;     // the one that is shown; null: a new one, not kept yet
let running = null;  // {chat, message, abort} of the answer that is being written
let editing = -1;    // index of the message that is being edited
let attached = [];   // data: URLs of pictures for the next message
let mostPictures = 0;  // that a request may have

function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function say(text, bad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

async function keep(what) {
  try {
    await saveChat(what);
  } catch (error) {
    say(`this chat could not be kept: ${error.message}`, true);
  }
}

// ---- the list of chats

function dropButton(entry) {
  const button = make("button", {className: "drop", textContent: "Delete"});
  button.onclick = async () => {
    if (button.textContent === "Delete") {
      button.textContent = "Sure?";
      button.onblur = () => { button.textContent = "Delete"; };
      return;
    }
    if (running?.chat === entry) stop();
    await dropChat(entry.id);
    chats = chats.filter(other => other !== entry);
    if (chat === entry) show(null);
    showList();
  };
  return button;
}

function showList() {
  const wanted = $("find").value.trim().toLowerCase();
  const found = chats.filter(entry => !wanted || entry.title.toLowerCase().includes(wanted) ||
    entry.messages.some(message => message.content.toLowerCase().includes(wanted)));
  $("chats").replaceChildren(...found.map(entry => {
    const open = make("button", {className: "open", textContent: entry.title, title: entry.title});
    open.onclick = () => { show(entry); drawer(false); };
    const row = make("div", {className: entry === chat ? "now" : ""}, open, dropButton(entry));
    if (entry === chat) open.setAttribute("aria-current", "true");
    return row;
  }));
}

function drawer(open) {
  $("side").classList.toggle("shown", open);
  $("shade").hidden = !open;
}

// ---- messages

function figures(message) {
  if (!message.tokens) return "";
  const speed = message.speed ? `, ${message.speed.toFixed(1)} tokens/s` : "";
  const cut = message.reason === "length" ? ", cut off at the limit" : "";
  const thoughts = message.thoughtTokens ? `, ${message.thoughtTokens} of them thoughts` : "";
  return `${message.tokens} tokens${thoughts}${speed}${cut}`;
}

async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => { button.textContent = before; }, 1200);
}

function tool(name, act) {
  const button = make("button", {type: "button", textContent: name});
  button.onclick = () => act(button);
  return button;
}

function toolsOf(message, index) {
  const row = make("div", {className: "tools"});
  if (running?.message === message) return row;
  if (message.content) row.append(tool("Copy", button => copy(message.content, button)));
  if (message.role === "user") {
    row.append(tool("Edit", () => { editing = index; showMessages(); }));
  } else {
    row.append(tool("Regenerate", () => answerFrom(index)));
    row.append(make("span", {className: "figures", textContent: figures(message)}));
  }
  return row;
}

function editor(message, index) {
  const text = make("textarea", {value: message.content, rows: 3});
  text.setAttribute("aria-label", "Edit the message");
  const cancel = make("button", {type: "button", textContent: "Cancel"});
  const done = make("button", {type: "button", className: "main", textContent: "Send"});
  cancel.onclick = () => { editing = -1; showMessages(); };
  done.onclick = () => {
    if (!text.value.trim() && !message.pictures?.length) return;
    editing = -1;
    message.content = text.value.trim();
    if (index === 0) chat.title = titleOf(message.content);
    answerFrom(index + 1);
  };
  text.onkeydown = event => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      done.click();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      cancel.click();
    }
  };
  setTimeout(() => text.focus());
  return make("div", {className: "message user editing"}, text,
    make("div", {className: "row"}, cancel, done));
}

// What the model thought, closed unless the reader opens it.
function thoughtsNode(message) {
  const writing = running?.message === message && !message.content && !message.calls?.length;
  const head = make("summary", {textContent: writing ? "Thinking" : "Thoughts"});
  const text = make("div", {className: "thoughts-text", textContent: message.thoughts});
  const node = make("details", {className: "thoughts", open: message.thoughtsOpen ?? false}, head,
    text);
  head.classList.toggle("waiting", writing);
  node.ontoggle = () => { message.thoughtsOpen = node.open; };
  return node;
}

// Arguments as lines where they are JSON, as they came otherwise.
function argumentsText(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

function callNode(call) {
  return make("div", {className: "call"},
    make("div", {className: "call-head"}, make("span", {textContent: "calls"}),
      make("b", {textContent: call.name})),
    make("pre", {textContent: argumentsText(call.arguments)}));
}

function messageNode(message, index) {
  if (index === editing) return editor(message, index);
  const user = message.role === "user";
  const node = make("div", {className: `message ${user ? "user" : "answer"}`});
  const body = make("div", {className: "body"});
  if (user) {
    if (message.pictures?.length) node.append(pictureRow(message.pictures));
    body.textContent = message.content;
    body.hidden = !message.content;
  } else {
    body.innerHTML = toHtml(message.content);
    const silent = !message.content && !message.thoughts && !message.calls?.length;
    body.classList.toggle("waiting", running?.message === message && silent);
    body.hidden = !message.content && !silent;
  }
  if (message.thoughts) node.append(thoughtsNode(message));
  node.append(body);
  for (const call of message.calls ?? []) node.append(callNode(call));
  if (message.failure) {
    node.append(make("div", {className: "failure", textContent: message.failure}));
  }
  node.append(toolsOf(message, index));
  return node;
}

function showMessages() {
  const messages = chat?.messages ?? [];
  $("empty").hidden = messages.length > 0;
  $("messages").replaceChildren(...messages.map(messageNode));
  $("send").hidden = running !== null;
  $("stop").hidden = running === null;
}

function show(other) {
  chat = other;
  editing = -1;
  showMessages();
  showList();
  toEnd();
  $("text").focus();
}

const atEnd = () => $("scroll").scrollHeight - $("scroll").scrollTop - $("scroll").clientHeight < 60;
function toEnd() { $("scroll").scrollTop = $("scroll").scrollHeight; }

// Draws only the message that grows, at most once for each picture of the screen.
let drawn = false;
function redraw(message) {
  if (drawn) return;
  drawn = true;
  requestAnimationFrame(() => {
    drawn = false;
    if (running?.message !== message || running.chat !== chat) return;
    const follow = atEnd();
    $("messages").lastChild.replaceWith(messageNode(message, chat.messages.length - 1));
    if (follow) toEnd();
  });
}

// ---- answers

function addCall(message, piece) {
  message.calls ??= [];
  const call = message.calls[piece.index] ??= {name: "", arguments: ""};
  call.name ||= piece.function.name ?? "";
  call.arguments += piece.function.arguments ?? "";
}

// What a piece brings. False: it is the last, and brings no text.
function addPiece(message, piece) {
  if (piece.thought) message.thoughts = (message.thoughts ?? "") + piece.thought;
  if (piece.text) message.content += piece.text;
  if (piece.call) addCall(message, piece.call);
  return Boolean(piece.thought || piece.text || piece.call);
}

const titleOf = text => text.replace(/\s+/g, " ").slice(0, 60);

async function write(target, message, abort) {
  let first = 0, last = 0, pieces = 0;
  // Calls that nobody answers are shown, but not sent.
  const history = target.messages.slice(0, -1)
    .filter(each => each.content || each.pictures?.length).map(withPictures);
  try {
    for await (const piece of complete(history, settings, abort.signal)) {
      if (addPiece(message, piece)) {
        last = performance.now();
        first ||= last;
        ++pieces;
        say(`${pieces} pieces`);
        redraw(message);
      } else {
        message.reason = piece.reason;
        message.tokens = piece.usage?.completion_tokens ?? pieces;
        message.thoughtTokens = piece.usage?.completion_tokens_details?.reasoning_tokens;
      }
    }
  } catch (error) {
    if (error.name !== "AbortError") fail(message, error);
    message.tokens ||= pieces;
  }
  const seconds = (last - first) / 1000;
  if (message.tokens > 1 && seconds > 0) message.speed = (message.tokens - 1) / seconds;
  say("");
}

function fail(message, error) {
  message.failure = error.message;
  if (!(error instanceof Refused) || error.status !== 401) return;
  message.failure = "This worker wants an API key: set it in the settings.";
  $("key-label").classList.add("wanted");
  $("settings").showModal();
  $("s-key").focus();
}

// Drops the messages from `index` on and has the model answer the one before.
async function answerFrom(index) {
  if (running) return;
  const target = chat, message = {role: "assistant", content: ""}, abort = new AbortController();
  target.messages.length = index;
  target.messages.push(message);
  target.changed = Date.now();
  chats = [target, ...chats.filter(other => other !== target)];
  running = {chat: target, message, abort};
  showMessages();
  showList();
  toEnd();
  await keep(target);
  await write(target, message, abort);
  running = null;
  if (chats.includes(target)) await keep(target);
  const follow = atEnd();
  showMessages();
  if (follow) toEnd();
}

function stop() { running?.abort.abort(); }

function send() {
  const content = $("text").value.trim();
  if (!content && !attached.length || running) return;
  $("text").value = "";
  grow();
  const pictures = attached;
  attached = [];
  showAttached();
  chat ??= {id: `${Date.now()}-${Math.random().toString(36).slice(2)}`, title: titleOf(content || "A picture"),
    messages: []};
  chat.messages.push(pictures.length ? {role: "user", content, pictures} : {role: "user", content});
  answerFrom(chat.messages.length);
}

function showAttached() {
  $("attached").hidden = attached.length === 0;
  $("attached").replaceChildren(pictureRow(attached, index => {
    attached.splice(index, 1);
    showAttached();
  }));
}

async function attach(files) {
  for (const file of files) {
    if (attached.length >= mostPictures) {
      say(mostPictures ? `a request takes ${mostPictures} pictures at most`
        : "this model reads text alone, no pictures", true);
      break;
    }
    try {
      attached.push(await readPicture(file));
    } catch {
      say(`${file.name} is no picture that this browser can draw`, true);
    }
  }
  showAttached();
}

// ---- settings

const inputs = [...document.querySelectorAll("[id^='s-']")];

function readSettings() {
  settings = {theme: settings.theme, model: settings.model};
  for (const input of inputs) {
    if (input.value === "" || !input.validity.valid) continue;
    settings[input.id.slice(2)] = input.type === "number" ? Number(input.value) : input.value;
  }
  $("key-label").classList.toggle("wanted", false);
  saveSettings(settings);
}

function showSettings() {
  for (const input of inputs) input.value = settings[input.id.slice(2)] ?? "";
}

const themes = {auto: "light", light: "dark", dark: "auto"};
const dark = matchMedia("(prefers-color-scheme: dark)");

function showTheme() {
  const theme = settings.theme ?? "auto";
  document.documentElement.dataset.theme =
    theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
  $("theme").title = `Theme: ${theme === "auto" ? "the system's" : theme}`;
}

function exportChats() {
  const file = new Blob([JSON.stringify(chats, null, 1)], {type: "application/json"});
  const link = make("a", {href: URL.createObjectURL(file), download: "rbee-chats.json"});
  link.click();
  URL.revokeObjectURL(link.href);
}

// ---- what the reader does

function grow() {
  $("text").style.height = "auto";
  $("text").style.height = `${$("text").scrollHeight}px`;
}

function newChat() {
  show(null);
  drawer(false);
}

function onKey(event) {
  if (event.key === "Escape" && !$("settings").open) {
    running ? stop() : drawer(false);
  } else if (event.key.toLowerCase() === "o" && event.shiftKey && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    newChat();
  } else if (event.key === "/" && !event.target.closest("input, textarea")) {
    event.preventDefault();
    $("text").focus();
  }
}

function wire() {
  $("composer").onsubmit = event => { event.preventDefault(); send(); };
  $("text").oninput = grow;
  $("text").onkeydown = event => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  $("attach").onclick = () => $("files").click();
  $("files").onchange = () => { attach($("files").files); $("files").value = ""; };
  $("text").onpaste = event => {
    const files = picturesIn(event.clipboardData);
    if (!files.length) return;
    event.preventDefault();
    attach(files);
  };
  document.ondragover = event => event.preventDefault();
  document.ondrop = event => {
    event.preventDefault();
    attach(picturesIn(event.dataTransfer));
  };
  $("stop").onclick = stop;
  $("new").onclick = newChat;
  $("menu").onclick = () => drawer(true);
  $("hide").onclick = $("shade").onclick = () => drawer(false);
  $("find").oninput = showList;
  $("down").onclick = toEnd;
  $("scroll").onscroll = () => { $("down").hidden = atEnd(); };
  $("messages").onclick = event => {
    const button = event.target.closest(".copy-code");
    if (button) copy(button.closest(".code").querySelector("code").textContent, button);
  };
  $("open-settings").onclick = () => { showSettings(); $("settings").showModal(); };
  $("settings").onclose = readSettings;
  $("export").onclick = exportChats;
  $("forget").onclick = async () => {
    stop();
    await dropAll();
    chats = [];
    show(null);
    say("all chats are deleted");
  };
  $("theme").onclick = () => {
    settings.theme = themes[settings.theme ?? "auto"];
    saveSettings(settings);
    showTheme();
  };
  dark.onchange = showTheme;
  document.onkeydown = onKey;
}

// Of one worker its model; of several models behind one port those that chat, to pick from.
function showModels(facts) {
  const chatting = facts.models?.filter(each => each.kind === "chat");
  if (!chatting) {
    delete settings.model;
    showAttach(facts);
    $("device").textContent = `${facts.architecture}, ${facts.quant_kind}, ` +
      `${facts.context_length} tokens of context`;
    return showModel(facts.model);
  }
  const names = chatting.map(each => each.name);
  if (!names.includes(settings.model)) settings.model = names[0];
  showOthers(facts.models.filter(each => each.kind === "image"));
  $("model").hidden = names.length > 1;
  $("pick").hidden = names.length < 2;
  $("pick").replaceChildren(...names.map(name => new Option(name)));
  $("pick").value = settings.model;
  $("pick").onchange = () => {
    settings.model = $("pick").value;
    saveSettings(settings);
    pick();
  };
  const pick = () => {
    showModel(settings.model);
    showAttach(chatting.find(each => each.name === settings.model));
  };
  pick();
}

// Models that draw have a page of their own.
function showOthers(drawing) {
  $("others").hidden = drawing.length === 0;
  $("others").replaceChildren("Pictures: ", ...drawing.flatMap(({name}, i) => {
    const link = document.createElement("a");
    link.href = "/?model=" + encodeURIComponent(name);
    link.textContent = name;
    return i > 0 ? [", ", link] : [link];
  }));
}

function showAttach({max_pictures = 0}) {
  mostPictures = max_pictures;
  $("attach").hidden = mostPictures === 0;
}

function showModel(name) {
  $("model").textContent = name;
  document.title = `${name} - rbee chat`;
}

async function begin() {
  showTheme();
  showSettings();
  wire();
  try {
    showModels(await health());
    $("where").textContent = location.host;
  } catch {
    $("model").textContent = "the worker does not answer";
  }
  try {
    chats = await allChats();
  } catch (error) {
    say(`chats cannot be kept in this browser: ${error.message}`, true);
  }
  show(null);
}

begin();
