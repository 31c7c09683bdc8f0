// The page of the picture worker.
import {forget, keep, showKept} from "./gallery.js";
import {dropSource, hasSource, setSource, sourceFields, usualBlur, wirePaint} from "./paint.js";
import {fillPickers, fillSizes, wirePickers} from "./pickers.js";
import {ask, base64Of, blobOf, eventsOf, post, settingsOf} from "./server.js";
import {restore, wireKept} from "./fields.js";
import {watchLoad} from "./loading.js";
import {wireTheme} from "./theme.js";

const $ = id => document.getElementById(id);
const kTitle = document.title;
let preview = null, seed = null;  // of the job that runs
let job = null;
let leave = null;  // ends the picture that is being enlarged
let networks = [];  // that enlarge pictures: {name, scale}
let model = {width: 512, height: 512};  // its own size, once that is known
let known = false;
let served = null;  // its name, where there are several
let settings = {};  // that made the picture to start from

// `quiet`: not read aloud, since it changes all the time.
function say(text, bad = false, quiet = false) {
  $("status").setAttribute("aria-live", quiet ? "off" : "polite");
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

// ---- the worker

// What the fields mean that are left empty: in the health of a worker, or of a list's model after
// a worker of it was ready.
function showDefaults({default_width: width, default_height: height, default_steps: steps}) {
  if (!width) return;
  $("width").placeholder = width;
  $("height").placeholder = height;
  $("steps").placeholder = steps;
  model = {width, height};
  known = true;
  fillSizes(model);
}

// Of several models behind one port: the one that the address names, else the first that draws.
function showModels(models) {
  const named = new URLSearchParams(location.search).get("model");
  const drawing = models.filter(each => each.kind === "image");
  const chosen = drawing.find(each => each.name === named) ?? drawing[0];
  served = chosen.name;
  $("about").textContent = served;
  showDefaults(chosen);
  const chatting = models.find(each => each.kind === "chat");
  $("chat").hidden = !chatting;
  if (chatting) $("chat").href = "/?model=" + encodeURIComponent(chatting.name);
}

async function showWorker() {
  try {
    const health = await (await fetch("/health", {headers: {Accept: "application/json"}})).json();
    if (health.models) return showModels(health.models);
    $("about").textContent = `${health.model} (${health.architecture}, ${health.dtype}) on ${health.device}`;
    showDefaults(health);
  } catch { $("about").textContent = "the worker does not answer"; }
}

// `rbee serve` learns them of a worker a moment after that has loaded its model.
async function learnDefaults(tries = 20) {
  if (known) return;
  await showWorker();
  if (tries > 1) setTimeout(() => learnDefaults(tries - 1), 500);
}

// ---- the picture to start from

// Second passes are for pictures from noise.
function showSource() {
  $("source").hidden = !hasSource();
  $("larger").disabled = $("upscaler").disabled = hasSource();
  $("blur").placeholder = usualBlur();
}

let taken = null;  // the last file

async function take(file) {
  if (!file) return;
  taken = file;
  let bitmap = null;
  try {
    bitmap = await createImageBitmap(file);
  } catch { return say("this file is no picture that the browser can read", true); }
  $("source").hidden = false;  // the brush is as wide as it is on the screen
  [$("width").value, $("height").value] = setSource(bitmap, Math.max(model.width, model.height));
  showSource();
  $("reuse").hidden = true;
  const found = await settingsOf(file);
  if (file !== taken) return;  // another one came meanwhile
  settings = found;
  $("reuse").hidden = !("Prompt" in settings);
}

function removeSource() {
  dropSource();
  showSource();
  $("width").value = $("height").value = "";
}

function pick(id, name) {
  const same = option => option.value.toLowerCase() === (name || "").toLowerCase();
  $(id).value = [...$(id).options].find(same)?.value ?? "";
}

// Of a second pass what has no field; until its fields are changed.
let second = {};

function useSecondPass() {
  const scale = settings["Hires upscale"] ?? settings["Hires resize-1"] / settings["Size-1"];
  const there = scale > 0, strength = settings["Denoising strength"];
  $("larger").value = there ? scale : "";
  pick("upscaler", settings["Hires upscaler"] ?? "Lanczos");
  second = {};
  if (there) {
    second.strength = Number(settings["Hires denoising strength"] ?? strength);
    second.steps = Number(settings["Hires steps"] ?? 0);
    for (const name in second) if (Number.isNaN(second[name])) delete second[name];
  } else if (strength) {
    $("strength").value = strength;
    showStrength();
  }
}

function useSettings() {
  const names = {prompt: "Prompt", negative: "Negative prompt", width: "Size-1", height: "Size-2",
    steps: "Steps", scale: "CFG scale", seed: "Seed"};
  for (const [id, name] of Object.entries(names)) $(id).value = settings[name] ?? "";
  pick("sampler", settings["Sampler"]);
  pick("schedule", settings["Schedule type"]);
  $("tiling").value = {True: "both", X: "x", Y: "y"}[settings["Tiling"]] ?? "";
  useSecondPass();
  $("form").dispatchEvent(new Event("input"));  // kept as if they were typed
  say("the settings are those of the picture");
}

const showStrength = () => { $("strengthText").textContent = $("strength").value; };

// ---- one job

function body() {
  const out = {operation: "image_generation", prompt: $("prompt").value, preview_interval: 2};
  if (served) out.model = served;
  const add = (name, id, number) => {
    const text = $(id).value;
    if (text !== "") out[name] = number ? Number(text) : text;
  };
  add("negative_prompt", "negative");
  add("steps", "steps", true);
  add("guidance_scale", "scale", true);
  add("sampler", "sampler");
  add("schedule", "schedule");
  add("seed", "seed", true);
  add("count", "count", true);
  add("tiling", "tiling");
  add("width", "width", true);
  add("height", "height", true);
  if (hasSource()) return Object.assign(out, sourceFields());
  const upscaler = $("upscaler").value, latent = upscaler.startsWith("Latent");
  // Enlarged latents are blocky until much noise went over them; enlarged pictures are not.
  if ($("larger").value !== "") {
    out.hires = {scale: Number($("larger").value), upscaler, strength: latent ? 0.7 : 0.4, ...second};
  }
  return out;
}

let address = null;  // of the picture that is shown

function show(blob, alt) {
  if (address) URL.revokeObjectURL(address);
  $("picture").src = address = URL.createObjectURL(blob);
  $("picture").alt = alt;
  $("picture").hidden = false;
  $("empty").hidden = true;
}

const narrow = matchMedia("(max-width: 46rem)");  // one column: the picture is below the fields

function work(runs) {
  $("go").disabled = runs;
  $("stop").disabled = !runs;
  document.documentElement.toggleAttribute("data-drawing", runs);
  document.title = kTitle;
}

function put(blob, of, prompt) {
  keep(blob, of, prompt, ways)
    .catch(error => say(`this picture could not be kept: ${error.message}`, true));
}

async function showTiles() {
  try {
    const {state, textinfo} = await (await ask("/sdapi/v1/progress")).json();
    if (leave && state.job === "extra-single-image") say(`enlarging: ${textinfo ?? "it waits"}`, false, true);
  } catch { /* the request itself says what is wrong */ }
}

// Through the chosen network, to its size or as near as a worker goes.
async function enlarge({blob, seed, prompt}) {
  if ($("go").disabled) return;
  const {name, scale} = networks.find(entry => entry.name === $("network").value);
  const stopper = new AbortController();
  leave = () => stopper.abort();
  work(true);
  say("enlarging");
  const watch = setInterval(showTiles, 500);
  try {
    const before = await createImageBitmap(blob);
    const factor = Math.min(scale, 8, 4096 / Math.max(before.width, before.height));
    const sent = {image: await base64Of(blob), upscaler_1: name, upscaling_resize: factor};
    if (served) sent.model = served;
    const {image} = await post("/sdapi/v1/extra-single-image", sent, {signal: stopper.signal});
    show(blobOf(image), prompt);
    put(blobOf(image), seed, `${prompt}, enlarged`);
    say("done: enlarged");
  } catch (error) {
    if (stopper.signal.aborted) say("cancelled");
    else say(error.message, true);
  }
  clearInterval(watch);
  leave = null;
  work(false);
}

// What can be done with a picture of the gallery.
const ways = {
  show: ({blob, prompt, seed}) => { show(blob, prompt); say(`${prompt} (seed ${seed})`); },
  acts: () => ({
    "Start from": ({blob}) => take(blob),
    "Settings": async ({blob}) => {
      settings = await settingsOf(blob);
      if ("Prompt" in settings) useSettings();
      else say("this picture does not say how it was made", true);
    },
    ...(networks.length ? {"Enlarge": enlarge} : {}),
  }),
};

function progressText({step, total, tile, tiles, steps_per_second: speed}) {
  if (tiles) return `enlarging: tile ${tile} of ${tiles}`;
  const left = speed > 0 ? `, ${Math.ceil((total - step) / speed)} s left` : "";
  return `step ${step} of ${total}, ${speed.toFixed(1)} steps/s${left}`;
}

function on(event, data, prompt) {
  if (event === "started") {
    seed = data.seed;
    $("again").disabled = false;
    $("bar").hidden = false;
    $("bar").value = 0;
    say(`${data.sampler}, ${data.schedule}, ${data.width} x ${data.height}, seed ${data.seed}`);
  } else if (event === "progress" || event === "preview") {
    $("bar").value = data.percent;
    document.title = `${Math.round(data.percent)}% - ${kTitle}`;
    say(progressText(data), false, true);
    if (event === "preview") show(preview = blobOf(data.image), `Preview: ${prompt}`);
  } else if (event === "complete") {
    if (data.image) show(blobOf(data.image), prompt);
    for (const entry of data.images) put(blobOf(entry.image || data.image), entry.seed, prompt);
    say(`done in ${(data.duration_ms / 1000).toFixed(1)} s`);
  } else if (event === "error") {
    const stopped = data.code === "CANCELLED" && preview;
    if (stopped) put(preview, seed, `${prompt}, stopped`);
    say(stopped ? `${data.message}: the last preview is kept` : data.message, !stopped);
  }
}

// Tells how far the load of the model is, where there are several, until the returned function is
// called.
function watch() {
  if (!served) return () => {};
  let told = "";
  const end = watchLoad(served, () => $("token").value, text => say(told = text, false, true));
  return () => {
    end();
    if (told && $("status").textContent === told) say("");
  };
}

async function draw(event) {
  event.preventDefault();
  if ($("go").disabled) return;
  work(true);
  if (narrow.matches) $("result").scrollIntoView({block: "start"});
  else $("live").scrollIntoView({block: "nearest"});
  const watched = watch();
  try {
    const sent = body();
    preview = null;
    const reply = await post("/v1/jobs", sent);
    watched();
    job = reply.job_id;
    for await (const [name, data] of eventsOf(reply.sse_url)) on(name, data, sent.prompt);
  } catch (error) { say(error.message, true); }
  watched();
  learnDefaults();
  job = null;
  $("bar").hidden = true;
  work(false);
}

function stop() {
  if (job) ask("/v1/jobs/" + job, {method: "DELETE"}).catch(error => say(error.message, true));
  if (leave) leave();
}

// ---- what the reader does

const picturesIn = transfer =>
  [...(transfer?.files ?? [])].filter(file => file.type.startsWith("image/"));

function wireSource() {
  $("drain").onclick = removeSource;
  $("choose").onclick = () => $("file").click();
  $("file").onchange = () => { take($("file").files[0]); $("file").value = ""; };
  for (const name of ["dragover", "dragleave", "drop"]) {
    $("drop").addEventListener(name, event => {
      event.preventDefault();
      $("drop").classList.toggle("over", name === "dragover");
      if (name === "drop") take(event.dataTransfer.files[0]);
    });
  }
  document.addEventListener("paste", event => {
    const [file] = picturesIn(event.clipboardData);
    if (!file) return;
    event.preventDefault();
    take(file);
  });
  $("strength").oninput = showStrength;
  $("reuse").onclick = useSettings;
}

function wire() {
  $("form").onsubmit = draw;
  $("stop").onclick = stop;
  $("random").onclick = () => { $("seed").value = ""; };
  $("again").onclick = () => { $("seed").value = seed; };
  for (const id of ["larger", "upscaler"]) $(id).addEventListener("input", () => { second = {}; });
  document.onkeydown = event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
    else if (event.key === "Escape" && !$("stop").disabled) stop();
  };
  $("forget").onclick = async () => {
    const button = $("forget");
    if (button.textContent === "Delete all") {
      button.textContent = "Sure?";
      button.onblur = () => { button.textContent = "Delete all"; };
      return;
    }
    await forget();
    button.blur();
    say("all pictures are deleted");
  };
  wireSource();
  wirePaint();
  wirePickers(() => model);
  wireKept();
  wireTheme($("theme"));
}

async function begin() {
  wire();
  await showWorker();
  const watched = watch();
  networks = await fillPickers(error => say(error.message, true));
  watched();
  learnDefaults();
  restore();
  $("form").dispatchEvent(new Event("input"));
  showStrength();
  await showKept(ways).catch(error => {
    say(`pictures cannot be kept in this browser: ${error.message}`, true);
  });
  document.documentElement.dataset.ready = "";
}

begin();
