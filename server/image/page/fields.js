// The fields outlive a reload, but not those of the picture to start from, which does not.
import {recall, remember} from "./memory.js";

const form = document.getElementById("form");
const kKey = "rbee-pictures";
const fields = [...form.elements].filter(field =>
  /^(INPUT|TEXTAREA|SELECT)$/.test(field.tagName) && !field.closest("fieldset") &&
  !["size", "lora", "embedding"].includes(field.id));

export function wireKept() {
  const keep = () => remember(kKey,
    JSON.stringify(Object.fromEntries(fields.map(field => [field.id, field.value]))));
  for (const name of ["input", "click", "submit"]) form.addEventListener(name, keep);
  // What a control is for shows over its label too.
  for (const field of form.elements) {
    const label = field.closest("label");
    if (label && field.title) label.title = field.title;
  }
}

export function restore() {
  let kept = {};
  try {
    kept = JSON.parse(recall(kKey)) || {};
  } catch { /* somebody else's, or cut off */ }
  for (const field of fields) {
    const known = field.tagName !== "SELECT" ||
      [...field.options].some(option => option.value === kept[field.id]);
    if (typeof kept[field.id] === "string" && known) field.value = kept[field.id];
  }
}
