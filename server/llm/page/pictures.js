// Pictures that a message takes along, as data: URLs.

const kKept = 1 << 20;  // bytes of a file that goes as it is
const kSide = 2048;     // pixels of a side that larger ones are drawn at

function asUrl(file) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}

// PNG and JPEG files that are not large stay as they are; all that the browser can draw otherwise
// becomes a JPEG. Throws where it cannot.
export async function readPicture(file) {
  const picture = await createImageBitmap(file);
  if (/^image\/(png|jpeg)$/.test(file.type) && file.size <= kKept) return asUrl(file);
  const scale = Math.min(1, kSide / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.92);
}

export const picturesIn = transfer =>
  [...(transfer?.files ?? [])].filter(file => file.type.startsWith("image/"));

export function pictureRow(urls, onDrop) {
  const row = document.createElement("div");
  row.className = "pictures";
  urls.forEach((url, index) => {
    const frame = row.appendChild(document.createElement("figure"));
    const image = frame.appendChild(document.createElement("img"));
    image.src = url;
    image.alt = `Picture ${index + 1}`;
    if (!onDrop) return;
    const button = frame.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = "\u00d7";
    button.setAttribute("aria-label", `Remove picture ${index + 1}`);
    button.onclick = () => onDrop(index);
  });
  return row;
}

// A message as OpenAI's API takes it.
export function withPictures({role, content, pictures}) {
  if (!pictures?.length) return {role, content};
  const parts = pictures.map(url => ({type: "image_url", image_url: {url}}));
  if (content) parts.push({type: "text", text: content});
  return {role, content: parts};
}
