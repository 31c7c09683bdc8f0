// What this browser keeps: chats in IndexedDB, settings in localStorage.

const opened = new Promise((done, fail) => {
  const request = indexedDB.open("rbee-chat", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("chats", {keyPath: "id"});
  request.onsuccess = () => done(request.result);
  request.onerror = () => fail(request.error);
});

async function on(mode, act) {
  const database = await opened;
  return new Promise((done, fail) => {
    const transaction = database.transaction("chats", mode);
    const request = act(transaction.objectStore("chats"));
    transaction.oncomplete = () => done(request.result);
    transaction.onerror = transaction.onabort = () => fail(transaction.error);
  });
}

// A chat: {id, title, changed (milliseconds), messages: [{role, content, ...}]}.
export async function allChats() {
  const chats = await on("readonly", store => store.getAll());
  return chats.sort((a, b) => b.changed - a.changed);
}
export const saveChat = chat => on("readwrite", store => store.put(chat));
export const dropChat = id => on("readwrite", store => store.delete(id));
export const dropAll = () => on("readwrite", store => store.clear());

export function loadSettings() {
  try {
    return JSON.parse(localStorage.getItem("rbee-settings")) || {};
  } catch {
    return {};  // somebody else's, or cut off
  }
}
export const saveSettings = settings =>
  localStorage.setItem("rbee-settings", JSON.stringify(settings));
