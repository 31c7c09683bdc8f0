// A store of the browser's IndexedDB. Entries have an `id`.

export function database(name, store) {
  const opened = new Promise((done, fail) => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(store, {keyPath: "id"});
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });
  opened.catch(() => {});  // whoever asks for an entry hears of it

  async function on(mode, act) {
    const transaction = (await opened).transaction(store, mode);
    const request = act(transaction.objectStore(store));
    return new Promise((done, fail) => {
      transaction.oncomplete = () => done(request.result);
      transaction.onerror = transaction.onabort = () => fail(transaction.error);
    });
  }
  return {
    all: () => on("readonly", entries => entries.getAll()),
    save: entry => on("readwrite", entries => entries.put(entry)),
    drop: id => on("readwrite", entries => entries.delete(id)),
    dropAll: () => on("readwrite", entries => entries.clear()),
  };
}
