// What a message takes along: pictures as data: URLs, and text files as {name, text}.

const kKept = 1 << 20;  // bytes of a picture that goes as it is
const kSide = 2048;     // pixels of a side that larger ones are drawn at
const kText = 1 << 20;  // bytes of a text file

function asUrl(file) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}

export const isPicture = file => file.type.startsWith("image/") && file.type !== "image/svg+xml";

// PNG and JPEG files that are not large stay as they are; all that the browser can draw otherwise
// becomes a JPEG. Throws where it cannot.
export async function readPicture(file) {
  let picture = null;
  try {
    picture = await createImageBitmap(file);
  } catch {
    throw new Error(`${file.name} is no picture that this browser can draw`);
  }
  if (/^image\/(png|jpeg)$/.test(file.type) && file.size <= kKept) return asUrl(file);
  const scale = Math.min(1, kSide / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.92);
}

export async function readText(file) {
  if (file.size > kText) throw new Error(`${file.name} is larger than 1 MiB`);
  let text = "";
  try {
    text = new TextDecoder("utf-8", {fatal: true}).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is neither text nor a picture`);
  }
  if (text.includes("\0")) throw new Error(`${file.name} is neither text nor a picture`);
  return {name: file.name, text};
}

function removeButton(what, remove) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "\u00d7";
  button.setAttribute("aria-label", `Remove ${what}`);
  button.onclick = remove;
  return button;
}

function pictureNode(url, index, onDrop) {
  const frame = document.createElement("figure");
  const image = frame.appendChild(document.createElement("img"));
  image.src = url;
  image.alt = `Picture ${index + 1}`;
  if (onDrop) frame.append(removeButton(`picture ${index + 1}`, () => onDrop("pictures", index)));
  return frame;
}

function fileNode({name, text}, index, onDrop) {
  const node = document.createElement("details"), head = document.createElement("summary");
  const body = document.createElement("pre");
  node.className = "file";
  head.textContent = name;
  body.textContent = text;
  body.tabIndex = 0;  // it scrolls
  node.append(head, body);
  if (!onDrop) return node;
  const row = document.createElement("div");
  row.className = "file-row";
  row.append(node, removeButton(name, () => onDrop("files", index)));
  return row;
}

// With `onDrop` each can be removed: it gets the list's name and the index.
export function attachmentRow({pictures = [], files = []}, onDrop) {
  const row = document.createElement("div");
  row.className = "pictures";
  row.append(...pictures.map((url, index) => pictureNode(url, index, onDrop)),
    ...files.map((file, index) => fileNode(file, index, onDrop)));
  return row;
}

// A fence that the text does not hold.
function fenced({name, text}) {
  let longest = 2;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  const fence = "`".repeat(longest + 1);
  return `${name}:\n${fence}\n${text.replace(/\n$/, "")}\n${fence}`;
}

// A message as OpenAI's API takes it.
export function asSent({role, content, pictures = [], files = []}) {
  const text = [...files.map(fenced), content].filter(Boolean).join("\n\n");
  if (!pictures.length) return {role, content: text};
  const parts = pictures.map(url => ({type: "image_url", image_url: {url}}));
  if (text) parts.push({type: "text", text});
  return {role, content: parts};
}
