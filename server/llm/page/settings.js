// The dialog of settings, and chats as text.
import {loadSettings, saveSettings} from "./store.js";

const $ = id => document.getElementById(id);
const inputs = [...document.querySelectorAll("[id^='s-']")];

export let settings = loadSettings();

export function remember(name, value) {
  settings[name] = value;
  saveSettings(settings);
}

function read() {
  settings = {model: settings.model};
  for (const input of inputs) {
    if (input.value === "" || !input.validity.valid) continue;
    settings[input.id.slice(2)] = input.type === "number" ? Number(input.value) : input.value;
  }
  $("key-label").classList.remove("wanted");
  saveSettings(settings);
}

export function openSettings() {
  for (const input of inputs) input.value = settings[input.id.slice(2)] ?? "";
  $("settings").showModal();
}

export function askForKey() {
  $("key-label").classList.add("wanted");
  openSettings();
  $("s-key").focus();
}

// The line of a chat that is shown.
export function asMarkdown(chat) {
  const parts = chat.messages.map(({role, content, thoughts, calls = [], files = []}) => [
    `## ${role === "user" ? "User" : "Assistant"}`,
    ...files.map(({name}) => `(File: ${name})`),
    ...(thoughts ? [`<details><summary>Reasoning</summary>\n\n${thoughts}\n\n</details>`] : []),
    ...(content ? [content] : []),
    ...calls.map(call => `Tool call: ${call.name}\n\n\`\`\`json\n${call.arguments}\n\`\`\``),
  ].join("\n\n"));
  return `# ${chat.title}\n\n${parts.join("\n\n")}\n`;
}

// What a setting is called in the API shows over it.
export function wireSettings() {
  for (const input of inputs) {
    if (["key", "system"].includes(input.id.slice(2))) continue;
    input.title = input.closest("label").title = input.id.slice(2);
  }
  $("open-settings").onclick = openSettings;
  $("settings").onclose = read;
}
