// Which model answers: of several behind one port the reader picks one, or has one fetched.
import {modelStates, watchLoad} from "./loading.js";
import {make} from "./messages.js";
import {remember, settings} from "./settings.js";
import {health, pull} from "./worker.js";

const $ = id => document.getElementById(id);
const told = {unloaded: "not loaded", starting: "loading", ending: "unloading", paused: "restarting",
  given_up: "failed"};

let chatting = null;  // the models that chat; null: this is one worker
let mostPictures = 0;  // that a request may have
export const takesPictures = () => mostPictures;

function showModel(name) {
  $("model").textContent = name;
  document.title = `${name} - rbee chat`;
}

function showChosen() {
  showModel(settings.model);
  mostPictures = chatting.find(each => each.name === settings.model)?.max_pictures ?? 0;
}

const named = () => new URLSearchParams(location.search).get("model");

// Where the address names a model, it goes on to name the one that is shown.
function setModel(name) {
  remember("model", name);
  if (named() === null) return;
  const address = new URL(location);
  address.searchParams.set("model", name);
  history.replaceState(null, "", address);
}

async function showList() {
  const states = await modelStates(settings.key);
  const options = chatting.map(({name}) => {
    const state = told[states.get(name)?.state];
    return new Option(state ? `${name} (${state})` : name, name);
  });
  $("pick").replaceChildren(...options);
  $("pick").value = settings.model;
}

// Models that draw have a page of their own.
function showOthers(drawing) {
  $("others").hidden = drawing.length === 0;
  $("others").replaceChildren("Pictures: ", ...drawing.flatMap(({name}, i) => {
    const link = make("a", {href: "/?model=" + encodeURIComponent(name), textContent: name});
    return i > 0 ? [", ", link] : [link];
  }));
}

// The name in the list for any name of a model; nothing if it has none.
const listed = (name, names, states) =>
  names.includes(name) ? name : names.find(each => each === states.get(name)?.name);

async function showSeveral(models) {
  chatting = models.filter(each => each.kind === "chat");
  const names = chatting.map(each => each.name);
  const known = names.includes(named() ?? settings.model);
  const states = known ? new Map() : await modelStates(settings.key);
  const chosen = [named(), settings.model].map(name => listed(name, names, states)).find(Boolean);
  if (names.length === 0) remember("model", undefined);
  else if (settings.model !== (chosen ?? names[0])) setModel(chosen ?? names[0]);
  showOthers(models.filter(each => each.kind === "image"));
  $("pick").hidden = names.length < 2;
  if (names.length === 0) return showModel("no model yet");
  showChosen();
  return showList();
}

export async function showModels() {
  const facts = await health();
  if (facts.models) {
    await showSeveral(facts.models);
    $("get").hidden = !facts.pull;
    return;
  }
  remember("model", undefined);
  mostPictures = facts.max_pictures ?? 0;
  $("device").textContent = `${facts.architecture}, ${facts.quant_kind}, ` +
    `${facts.context_length} tokens of context`;
  showModel(facts.model);
}

// Tells how far the load of the chosen model is, until the returned function is called.
export function watchChosen(say) {
  if (!chatting) return () => {};
  const show = (text, share) => {
    say(text);
    $("load").hidden = false;
    if (share >= 0) $("load").value = share;
    else $("load").removeAttribute("value");
  };
  const end = watchLoad(settings.model, () => settings.key, show);
  return () => {
    end();
    if ($("load").hidden) return;
    $("load").hidden = true;
    say("");
    showModels().catch(() => {});  // what could be learnt about the loaded model
  };
}

// ---- fetching a model

let stopper = null;  // ends the fetch that runs

// The server may list a fetched model by another form of its name: the one that has it as an alias,
// or whichever is new.
async function choose(name) {
  const before = chatting.map(each => each.name);
  const {models} = await health();
  const found = models.filter(each => each.kind === "chat");
  const names = found.map(each => each.name);
  const chosen = listed(name, names, await modelStates(settings.key)) ??
    names.find(each => !before.includes(each));
  if (chosen) setModel(chosen);
  await showSeveral(models);
}

async function fetchModel(event) {
  event.preventDefault();
  const name = $("get-name").value.trim();
  if (!name || stopper) return;
  const say = (text, bad = false) => {
    $("get-status").textContent = text;
    $("get-status").classList.toggle("bad", bad);
  };
  stopper = new AbortController();
  $("get-bar").hidden = false;
  $("get-go").disabled = true;
  try {
    for await (const {status, total, completed} of pull(name, settings.key, stopper.signal)) {
      say(total ? `${status}: ${(completed ?? 0) / 1e6 | 0} of ${total / 1e6 | 0} MB` : status);
      if (total) $("get-bar").value = (completed ?? 0) / total;
      else $("get-bar").removeAttribute("value");
    }
    await choose(name);
    say(`${name} is here`);
  } catch (error) {
    say(error.name === "AbortError" ? "stopped" : error.message, error.name !== "AbortError");
  }
  stopper = null;
  $("get-bar").hidden = true;
  $("get-go").disabled = false;
}

export function wireModels() {
  $("pick").onchange = () => {
    setModel($("pick").value);
    showChosen();
  };
  $("pick").onpointerdown = $("pick").onfocus = showList;
  $("get").onclick = () => {
    $("models").showModal();
    $("get-name").focus();
  };
  $("get-form").onsubmit = fetchModel;
  $("models").onclose = () => stopper?.abort();
}
