// Lists to choose from: sizes, samplers, upscalers, LoRAs and embeddings.
import {ask} from "./server.js";

const $ = id => document.getElementById(id);
const ratios = [["Square", 1, 1], ["Landscape", 4, 3], ["Landscape", 3, 2], ["Landscape", 16, 9],
  ["Portrait", 3, 4], ["Portrait", 2, 3], ["Portrait", 9, 16]];

// Sides of this ratio with about the model's number of pixels. Large models were trained at
// multiples of 64.
function sidesOf(across, down, model) {
  if (down > across) return sidesOf(down, across, model).reverse();
  const pixels = model.width * model.height, grid = pixels >= 768 * 768 ? 64 : 8;
  const side = length => Math.max(64, Math.round(length / grid) * grid);
  const width = side(Math.sqrt(pixels * across / down));
  return [width, side(pixels / width)];
}

export function fillSizes(model) {
  $("size").length = 1;  // as the fields say
  for (const [name, across, down] of ratios) {
    const [width, height] = sidesOf(across, down, model);
    $("size").add(new Option(`${name} ${across}:${down}, ${width} x ${height}`, `${width}x${height}`));
  }
  showSize();
}

function showSize() {
  const now = `${$("width").value || $("width").placeholder}x` +
    `${$("height").value || $("height").placeholder}`;
  $("size").value = now;
  if ($("size").selectedIndex < 0) $("size").value = "";
}

// At the end of a prompt.
function append(id, text) {
  const before = $(id).value.trimEnd();
  $(id).value = before + (before && !before.endsWith(",") ? ", " : before ? " " : "") + text;
  $(id).dispatchEvent(new Event("input", {bubbles: true}));
}

export function wirePickers(model) {
  $("size").oninput = () => {
    if ($("size").value) [$("width").value, $("height").value] = $("size").value.split("x");
  };
  $("swap").onclick = () => {
    const {width, height} = model();
    [$("width").value, $("height").value] =
      [$("height").value || height, $("width").value || width];
    $("form").dispatchEvent(new Event("input"));
  };
  $("form").addEventListener("input", showSize);
  $("addLora").onclick = () => append("prompt",
    `<lora:${$("lora").value}:${$("loraStrength").value || 1}>`);
  $("addEmbedding").onclick = () => append("prompt", $("embedding").value);
  $("addNegative").onclick = () => append("negative", $("embedding").value);
}

const list = async path => (await ask(path)).json();

async function fillAdapters() {
  const loras = await list("/sdapi/v1/loras");
  const words = Object.keys((await list("/sdapi/v1/embeddings")).loaded);
  for (const {name} of loras) $("lora").add(new Option(name));
  for (const word of words) $("embedding").add(new Option(word));
  $("loraRow").hidden = loras.length === 0;
  $("embeddingRow").hidden = words.length === 0;
  $("adapters").hidden = loras.length + words.length === 0;
}

// Returns the networks that enlarge pictures. Networks have a model's name, other ways to enlarge
// have none.
async function fillUpscalers() {
  const networks = (await list("/sdapi/v1/upscalers")).filter(entry => entry.model_name);
  for (const {name} of networks) for (const id of ["upscaler", "network"]) $(id).add(new Option(name));
  $("networkLabel").hidden = networks.length === 0;
  return networks;
}

export async function fillPickers(onError) {
  try {
    for (const {name} of await list("/sdapi/v1/samplers")) $("sampler").add(new Option(name));
    for (const {name} of await list("/sdapi/v1/schedulers")) $("schedule").add(new Option(name));
    await fillAdapters();
    return await fillUpscalers();
  } catch (error) {
    onError(error);
    return [];
  }
}
