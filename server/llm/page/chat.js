// The page of the chat worker.
import {asSent, attachmentRow, isPicture, readPicture, readText} from "./attachments.js";
import {fork, turnTo} from "./branches.js";
import {chatsOf, newId} from "./chats.js";
import {copy, editor, make, messageNode} from "./messages.js";
import {showModels, takesPictures, watchChosen, wireModels} from "./models.js";
import {saveFile} from "./save.js";
import {asMarkdown, askForKey, settings, wireSettings} from "./settings.js";
import {allChats, dropAll, dropChat, problem, saveChat} from "./store.js";
import {wireTheme} from "./theme.js";
import {Refused, complete} from "./worker.js";

const $ = id => document.getElementById(id);
let chats = [];
let chat = null;     // the one that is shown; null: a new one, not kept yet
let running = null;  // {chat, message, abort} of the answer that is being written
let editing = -1;    // index of the message that is being edited
let attached = {pictures: [], files: []};  // for the next message

// `quiet`: not read aloud, since it changes all the time.
function say(text, bad = false, quiet = false) {
  $("status").setAttribute("aria-live", quiet ? "off" : "polite");
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

// Asks on the button itself, once. Returns whether it asked.
function sure(button) {
  if (button.textContent === "Sure?") return false;
  const before = button.textContent;
  button.textContent = "Sure?";
  button.onblur = () => { button.textContent = before; };
  return true;
}

function dropButton(entry) {
  const button = make("button", {className: "drop", textContent: "Delete"});
  button.setAttribute("aria-label", `Delete ${entry.title}`);
  button.onclick = async () => {
    if (sure(button)) return;
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
    open.onclick = () => { drawer(false); show(entry); };
    const row = make("div", {className: entry === chat ? "now" : ""}, open, dropButton(entry));
    if (entry === chat) open.setAttribute("aria-current", "true");
    return row;
  }));
}

const drawerIsOpen = () => !$("shade").hidden;
function drawer(open) {
  $("side").classList.toggle("shown", open);
  $("shade").hidden = !open;
  document.querySelector("main").inert = open;  // what it covers
  $("menu").setAttribute("aria-expanded", open);
}
function closeDrawer() {
  drawer(false);
  $("menu").focus();
}

// ---- messages

// What the buttons of messages do.
const acts = {
  isWritten: message => running?.message === message,
  edit: index => { editing = index; showMessages(); },
  regenerate: index => { if (!running) answerFrom(index); },
  goOn: () => { if (!running) answer(chat, chat.messages.at(-1)); },
  turn: (index, to) => {
    if (running) return;
    turnTo(chat, index, to);
    keep(chat);
    showMessages();
    $("messages").children[index]?.querySelector(".tools button:not(:disabled)")?.focus();
  },
};

function nodeOf(message, index) {
  if (index !== editing) return messageNode(chat, index, acts);
  return editor(message, {
    cancel: () => { editing = -1; showMessages(); },
    send: content => {
      if (running) return;
      editing = -1;
      fork(chat, index);
      chat.messages.push({...message, lines: undefined, at: undefined, content});
      if (index === 0) chat.title = titleOf(content);
      answerFrom(index + 1);
    },
  });
}

function showMessages() {
  const messages = chat?.messages ?? [];
  $("empty").hidden = messages.length > 0;
  $("messages").replaceChildren(...messages.map(nodeOf));
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
    $("messages").lastChild.replaceWith(messageNode(chat, chat.messages.length - 1, acts));
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

// The messages before the answer, and the answer so far if it has begun. Calls that nobody answers
// are shown, but not sent.
function historyOf(target, message) {
  const said = target.messages.filter(each => each !== message || each.content);
  return said.filter(each => each.content || each.pictures?.length || each.files?.length).map(asSent);
}

async function write(target, message, abort) {
  let first = 0, last = 0, pieces = 0;
  const before = message.tokens ?? 0;
  const watched = watchChosen(text => say(text, false, true));
  try {
    for await (const piece of complete(historyOf(target, message), settings, abort.signal)) {
      if (!pieces) watched();
      if (addPiece(message, piece)) {
        last = performance.now();
        first ||= last;
        ++pieces;
        say(`${pieces} pieces`, false, true);
        redraw(message);
      } else {
        message.reason = piece.reason;
        message.tokens = before + (piece.usage?.completion_tokens ?? pieces);
        message.thoughtTokens = piece.usage?.completion_tokens_details?.reasoning_tokens;
      }
    }
  } catch (error) {
    if (error.name !== "AbortError") fail(message, error);
    message.tokens = before + pieces;
  }
  watched();
  const seconds = (last - first) / 1000;
  if (pieces > 1 && seconds > 0) message.speed = (message.tokens - before - 1) / seconds;
  say("");
  $("heard").textContent = message.failure ?? message.content;
}

function fail(message, error) {
  message.failure = error.message;
  if (!(error instanceof Refused) || error.status !== 401) return;
  message.failure = "This worker wants an API key: set it in the settings.";
  askForKey();
}

// Has the model write `message`, the last one, or go on with it.
async function answer(target, message) {
  const abort = new AbortController();
  delete message.failure;
  delete message.reason;
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

// Puts the messages from `index` on aside and has the model answer the one before.
function answerFrom(index) {
  if (running) return;
  const message = {role: "assistant", content: ""};
  fork(chat, index);
  chat.messages.push(message);
  return answer(chat, message);
}

function stop() { running?.abort.abort(); }

const isEmpty = ({pictures, files}) => !pictures.length && !files.length;

function send() {
  const content = $("text").value.trim();
  if (!content && isEmpty(attached) || running) return;
  $("text").value = "";
  grow();
  const message = {role: "user", content};
  for (const kind of ["pictures", "files"]) if (attached[kind].length) message[kind] = attached[kind];
  const title = titleOf(content || attached.files[0]?.name || "A picture");
  attached = {pictures: [], files: []};
  showAttached();
  chat ??= {id: newId(), title, messages: []};
  chat.messages.push(message);
  answerFrom(chat.messages.length);
}

function showAttached() {
  $("attached").hidden = isEmpty(attached);
  $("attached").replaceChildren(attachmentRow(attached, (kind, index) => {
    attached[kind].splice(index, 1);
    showAttached();
    $("text").focus();
  }));
}

async function attachOne(file) {
  if (!isPicture(file)) return attached.files.push(await readText(file));
  const most = takesPictures();
  if (attached.pictures.length >= most) {
    throw new Error(most ? `a request takes ${most} pictures at most`
      : "this model reads text alone, no pictures");
  }
  attached.pictures.push(await readPicture(file));
}

async function attach(files) {
  say("");
  for (const file of files) {
    try {
      await attachOne(file);
    } catch (error) {
      say(error.message, true);
    }
  }
  showAttached();
}

// ---- chats as files

async function importChats(file) {
  try {
    const found = await chatsOf(file);
    for (const each of found) await saveChat(each);
    chats = [...found, ...chats].sort((a, b) => b.changed - a.changed);
    showList();
    say(`${found.length} chats are here`);
  } catch (error) {
    say(error.message, true);
  }
}

function wireFiles() {
  const save = (name, type, text) => saveFile(name, new Blob([text], {type}));
  $("export").onclick = () =>
    save("rbee-chats.json", "application/json", JSON.stringify(chats, null, 1));
  $("export-one").onclick = () => {
    if (!chat) return;
    const name = chat.title.replace(/[^\p{L}\p{N} -]/gu, "").trim() || "chat";
    save(`${name}.md`, "text/markdown", asMarkdown(chat));
  };
  $("import").onclick = () => $("import-file").click();
  $("import-file").onchange = () => {
    importChats($("import-file").files[0]);
    $("import-file").value = "";
    $("settings").close();
  };
  $("forget").onclick = async () => {
    if (sure($("forget"))) return;
    stop();
    await dropAll();
    chats = [];
    show(null);
    say("all chats are deleted");
  };
}

// ---- what the reader does

function grow() {
  $("text").style.height = "auto";
  $("text").style.height = `${$("text").scrollHeight}px`;
}

function newChat() {
  drawer(false);
  show(null);
}

// Whatever is open closes before an answer stops; dialogs do so by themselves.
function onEscape() {
  if (document.querySelector("dialog[open]")) return;
  if (drawerIsOpen()) {
    closeDrawer();
  } else if (running) {
    stop();
  }
}

function onKey(event) {
  if (event.key === "Escape") {
    onEscape();
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
  $("files").onchange = () => { attach([...$("files").files]); $("files").value = ""; };
  $("text").onpaste = event => {
    const files = [...event.clipboardData?.files ?? []];
    if (!files.length) return;
    event.preventDefault();
    attach(files);
  };
  document.ondragover = event => event.preventDefault();
  document.ondrop = event => {
    event.preventDefault();
    attach(event.dataTransfer?.files ?? []);
  };
  $("stop").onclick = stop;
  $("new").onclick = newChat;
  $("menu").onclick = () => { drawer(true); $("hide").focus(); };
  $("hide").onclick = $("shade").onclick = closeDrawer;
  // A wide page has the list beside the chat.
  matchMedia("(max-width: 46rem)").onchange = () => drawer(false);
  $("find").oninput = showList;
  $("down").onclick = toEnd;
  $("scroll").onscroll = () => { $("down").hidden = atEnd(); };
  $("messages").onclick = event => {
    const button = event.target.closest(".copy-code");
    if (button) copy(button.closest(".code").querySelector("code").textContent, button);
  };
  wireTheme($("theme"));
  wireFiles();
  wireModels();
  wireSettings();
  document.onkeydown = onKey;
}

async function begin() {
  wire();
  try {
    await showModels();
    $("where").textContent = location.host;
  } catch {
    $("model").textContent = "the worker does not answer";
  }
  try {
    chats = await allChats();
    const why = await problem();
    if (why) throw why;
  } catch (error) {
    say(`chats cannot be kept in this browser: ${error.message}`, true);
  }
  show(null);
}

begin();
