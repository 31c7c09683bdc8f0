// Texts by name, in the browser's localStorage. Where it forbids this page to keep anything, or has
// no room, the page remembers them until it is left.

const here = new Map();

export function recall(name) {
  if (here.has(name)) return here.get(name);
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function remember(name, text) {
  try {
    localStorage.setItem(name, text);
    here.delete(name);
  } catch {
    here.set(name, text);
  }
}
