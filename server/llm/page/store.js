// What this browser keeps: chats in IndexedDB, settings in localStorage.
import {chatFrom} from "./chats.js";
import {database} from "./database.js";
import {recall, remember} from "./memory.js";

const kept = database("rbee-chat", "chats");

// The newest first, without those that cannot be read: somebody else's.
export async function allChats() {
  const chats = (await kept.all()).flatMap(value => {
    try {
      return [chatFrom(value)];
    } catch {
      return [];
    }
  });
  return chats.sort((a, b) => b.changed - a.changed);
}
export const saveChat = chat => kept.save(chat);
export const dropChat = id => kept.drop(id);
export const dropAll = () => kept.dropAll();
// Why chats are lost when the page is left; null: they are not.
export const problem = () => kept.problem();

export function loadSettings() {
  try {
    const found = JSON.parse(recall("rbee-settings"));
    return typeof found === "object" && found !== null ? found : {};
  } catch {
    return {};  // somebody else's, or cut off
  }
}
export const saveSettings = settings => remember("rbee-settings", JSON.stringify(settings));
