// A store of the browser's IndexedDB. Entries have an `id`. Where the browser forbids this page to
// keep anything, entries stay until the page is left.

function open(name, store) {
  return new Promise((done, fail) => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(store, {keyPath: "id"});
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });
}

function onDisk(opened, store) {
  const on = (mode, act) => new Promise((done, fail) => {
    const transaction = opened.transaction(store, mode);
    const request = act(transaction.objectStore(store));
    transaction.oncomplete = () => done(request.result);
    transaction.onerror = transaction.onabort = () => fail(transaction.error);
  });
  return {
    all: () => on("readonly", entries => entries.getAll()),
    save: entry => on("readwrite", entries => entries.put(entry)),
    drop: id => on("readwrite", entries => entries.delete(id)),
    dropAll: () => on("readwrite", entries => entries.clear()),
  };
}

function inMemory() {
  const entries = new Map();
  return {
    all: () => [...entries.values()],
    save: entry => { entries.set(entry.id, entry); },
    drop: id => { entries.delete(id); },
    dropAll: () => { entries.clear(); },
  };
}

export function database(name, store) {
  let problem = null;
  const kept = open(name, store).then(opened => onDisk(opened, store), error => {
    problem = error;
    return inMemory();
  });
  const on = act => async (...values) => (await kept)[act](...values);
  return {
    all: on("all"), save: on("save"), drop: on("drop"), dropAll: on("dropAll"),
    // Why entries are lost when the page is left; null: they are not.
    problem: async () => (await kept, problem),
  };
}
