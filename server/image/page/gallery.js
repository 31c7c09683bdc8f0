// The pictures that were drawn. This browser keeps the newest.

import {database} from "./database.js";
import {saveFile} from "./save.js";

const $ = id => document.getElementById(id);
const kKept = 200;  // pictures
const kept = database("rbee-pictures", "pictures");
let entries = [];   // {id, blob, seed, prompt}, newest first
let last = 0;       // the newest id: milliseconds, and never twice the same

function button(name, act) {
  const node = document.createElement("button");
  node.type = "button";
  node.textContent = name;
  node.onclick = () => act(node);
  return node;
}

const showHead = () => { $("past").hidden = entries.length === 0; };

async function drop(entry, figure) {
  entries = entries.filter(other => other !== entry);
  const next = figure.nextElementSibling ?? figure.previousElementSibling;
  URL.revokeObjectURL(figure.querySelector("img").src);
  figure.remove();
  showHead();
  (next?.querySelector("button") ?? $("prompt")).focus();
  await kept.drop(entry.id);
}

// `acts`: what else can be done with a picture, by the button's name; `show` shows it large.
function figureOf(entry, {show, acts}) {
  const figure = document.createElement("figure"), image = new Image();
  image.src = URL.createObjectURL(entry.blob);
  image.alt = entry.prompt;
  image.loading = "lazy";
  const open = button("", () => show(entry));
  open.className = "open";
  open.title = "Shows it large";
  open.append(image);
  const text = document.createElement("figcaption");
  text.textContent = `${entry.prompt} (seed ${entry.seed})`;
  const row = document.createElement("div");
  row.className = "row";
  row.append(button("Save", () => saveFile(`rbee-${entry.seed}.png`, entry.blob)));
  for (const [name, act] of Object.entries(acts())) row.append(button(name, () => act(entry)));
  row.append(button("Delete", () => drop(entry, figure)));
  figure.append(open, text, row);
  return figure;
}

export async function keep(blob, seed, prompt, ways) {
  last = Math.max(Date.now(), last + 1);
  const entry = {id: last, blob, seed, prompt};
  entries.unshift(entry);
  $("gallery").prepend(figureOf(entry, ways));
  showHead();
  await kept.save(entry);
  for (const old of entries.splice(kKept)) await kept.drop(old.id);
}

const isPicture = entry =>
  Number.isFinite(entry.id) && entry.blob instanceof Blob && typeof entry.prompt === "string";

// Without what is no picture of this page: somebody else's. Throws where pictures are lost when the
// page is left.
export async function showKept(ways) {
  const found = (await kept.all()).filter(isPicture).sort((a, b) => b.id - a.id);
  entries = [...entries, ...found];
  last = Math.max(last, found[0]?.id ?? 0);
  $("gallery").append(...found.map(entry => figureOf(entry, ways)));
  showHead();
  const why = await kept.problem();
  if (why) throw why;
}

export async function forget() {
  entries = [];
  $("gallery").replaceChildren();
  showHead();
  await kept.dropAll();
}
