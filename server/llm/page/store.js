// What this browser keeps: chats in IndexedDB, settings in localStorage.

import {database} from "./database.js";

const kept = database("rbee-chat", "chats");

// A chat: {id, title, changed (milliseconds), messages: [{role, content, ...}]}.
export async function allChats() {
  return (await kept.all()).sort((a, b) => b.changed - a.changed);
}
export const saveChat = chat => kept.save(chat);
export const dropChat = id => kept.drop(id);
export const dropAll = () => kept.dropAll();

export function loadSettings() {
  try {
    return JSON.parse(localStorage.getItem("rbee-settings")) || {};
  } catch {
    return {};  // somebody else's, or cut off
  }
}
export const saveSettings = settings =>
  localStorage.setItem("rbee-settings", JSON.stringify(settings));
