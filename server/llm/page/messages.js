// How a message looks. What its buttons do is the page's: `acts`.
import {attachmentRow} from "./attachments.js";
import {lineAt} from "./branches.js";
import {toHtml} from "./markdown.js";

export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

export async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => { button.textContent = before; }, 1200);
}

function figures(message) {
  if (!message.tokens) return "";
  const speed = message.speed ? `, ${message.speed.toFixed(1)} tokens/s` : "";
  const cut = message.reason === "length" ? ", cut off at the limit" : "";
  const thoughts = message.thoughtTokens ? `, ${message.thoughtTokens} of them reasoning` : "";
  return `${message.tokens} tokens${thoughts}${speed}${cut}`;
}

function tool(name, act) {
  const button = make("button", {type: "button", textContent: name});
  button.onclick = () => act(button);
  return button;
}

// Leads to the other lines that go on here.
function lineTools(chat, index, acts) {
  const {at, count} = lineAt(chat, index);
  if (count < 2) return [];
  const turn = (name, text, to) => {
    const button = tool(text, () => acts.turn(index, to));
    button.setAttribute("aria-label", name);
    button.disabled = to < 0 || to >= count;
    return button;
  };
  return [turn("Previous version", "\u2039", at - 1),
    make("span", {className: "version", textContent: `${at + 1}/${count}`}),
    turn("Next version", "\u203a", at + 1)];
}

// An answer that did not come to its end.
const isCut = message => message.content && !message.calls?.length && message.reason !== "stop";

function toolsOf(chat, message, index, acts) {
  const row = make("div", {className: "tools"});
  if (acts.isWritten(message)) return row;
  row.append(...lineTools(chat, index, acts));
  if (message.content) row.append(tool("Copy", button => copy(message.content, button)));
  if (message.role === "user") {
    row.append(tool("Edit", () => acts.edit(index)));
  } else {
    const last = index === chat.messages.length - 1;
    if (last && isCut(message)) row.append(tool("Continue", acts.goOn));
    row.append(tool("Regenerate", () => acts.regenerate(index)));
    row.append(make("span", {className: "figures", textContent: figures(message)}));
  }
  return row;
}

export function editor(message, {cancel, send}) {
  const text = make("textarea", {value: message.content, rows: 3});
  text.setAttribute("aria-label", "Edit the message");
  const no = make("button", {type: "button", textContent: "Cancel"});
  const yes = make("button", {type: "button", className: "main", textContent: "Send"});
  no.onclick = cancel;
  yes.onclick = () => {
    const content = text.value.trim();
    if (content || message.pictures?.length || message.files?.length) send(content);
  };
  text.onkeydown = event => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      yes.click();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      cancel();
    }
  };
  setTimeout(() => text.focus());
  return make("div", {className: "message user editing"}, text,
    make("div", {className: "row"}, no, yes));
}

// What the model thought, closed unless the reader opens it.
function thoughtsNode(message, written) {
  const writing = written && !message.content && !message.calls?.length;
  const head = make("summary", {textContent: writing ? "Reasoning ..." : "Reasoning"});
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

// A tool call, closed unless the reader opens it.
function callNode(call) {
  const node = make("details", {className: "call", open: call.open ?? false},
    make("summary", {className: "call-head"}, make("span", {textContent: "Tool call"}),
      make("b", {textContent: call.name})),
    make("pre", {textContent: argumentsText(call.arguments)}));
  node.ontoggle = () => { call.open = node.open; };
  return node;
}

export function messageNode(chat, index, acts) {
  const message = chat.messages[index], written = acts.isWritten(message);
  const user = message.role === "user";
  const node = make("div", {className: `message ${user ? "user" : "answer"}`});
  const body = make("div", {className: "body"});
  if (user) {
    if (message.pictures?.length || message.files?.length) node.append(attachmentRow(message));
    body.textContent = message.content;
    body.hidden = !message.content;
  } else {
    body.innerHTML = toHtml(message.content);
    const silent = !message.content && !message.thoughts && !message.calls?.length;
    body.classList.toggle("waiting", written && silent);
    body.hidden = !message.content && !silent;
  }
  if (message.thoughts) node.append(thoughtsNode(message, written));
  node.append(body);
  for (const call of message.calls ?? []) node.append(callNode(call));
  if (message.failure) {
    node.append(make("div", {className: "failure", textContent: message.failure}));
  }
  node.append(toolsOf(chat, message, index, acts));
  return node;
}
