// The worker's API.
import {events} from "./events.js";

const token = document.getElementById("token");
const tokenLabel = document.getElementById("tokenLabel");

export async function ask(path, options = {}) {
  const headers = {...options.headers};
  if (token.value) headers.Authorization = "Bearer " + token.value;
  const reply = await fetch(path, {...options, headers});
  if (reply.status === 401) tokenLabel.hidden = false;
  if (!reply.ok) {
    const text = await reply.text();
    let message = text;
    try { message = JSON.parse(text).error.message; } catch { /* not the worker's own form */ }
    throw new Error(message || "the worker answered " + reply.status);
  }
  return reply;
}

export async function post(path, body, options = {}) {
  const reply = await ask(path, {method: "POST", body: JSON.stringify(body),
    headers: {"Content-Type": "application/json"}, ...options});
  return reply.json();
}

// Yields [event, data] of a job's stream.
export async function* eventsOf(path) {
  for await (const {event, data} of events((await ask(path)).body)) {
    if (data !== "[DONE]") yield [event, JSON.parse(data)];
  }
}

const asUrl = blob => new Promise((done, fail) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result);
  reader.onerror = () => fail(reader.error);
  reader.readAsDataURL(blob);
});

export const base64Of = async blob => (await asUrl(blob)).split(",")[1];

export function blobOf(base64) {
  const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
  return new Blob([bytes], {type: "image/png"});
}

// How a picture was made: pictures of this worker, and of others that write what AUTOMATIC1111
// does, say it. Empty if it is not known.
export async function settingsOf(blob) {
  try {
    return (await post("/sdapi/v1/png-info", {image: await asUrl(blob)})).parameters;
  } catch {
    return {};  // a picture without settings is a picture still
  }
}
