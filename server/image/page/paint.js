// The picture to start from, and the mask that is painted over it.

const $ = id => document.getElementById(id);
const canvas = $("canvas"), pen = canvas.getContext("2d", {willReadFrequently: true});
const mask = document.createElement("canvas"), maskPen = mask.getContext("2d");
const shown = document.createElement("canvas"), shownPen = shown.getContext("2d");

let source = null;      // an ImageBitmap
let strokes = [];       // {width, erase, points} that make the mask
let undone = [];        // strokes that can come back
let stroke = null;      // the one that the pointer draws
let brush = null;       // where the keyboard's brush is

export const hasSource = () => source !== null;
export const isPainted = () => strokes.some(each => !each.erase);

// Stripes of two colours: one of them differs from any picture.
function stripes() {
  const tile = document.createElement("canvas"), ink = tile.getContext("2d");
  tile.width = tile.height = 16;
  ink.fillStyle = "#fff";
  ink.fillRect(0, 0, 16, 16);
  ink.fillStyle = "#d6007a";
  ink.fillRect(0, 0, 16, 8);
  return tile;
}

function redraw() {
  if (!source) return;
  [shown.width, shown.height] = [mask.width, mask.height];
  shownPen.drawImage(mask, 0, 0);
  shownPen.globalCompositeOperation = "source-in";
  shownPen.fillStyle = shownPen.createPattern(stripes(), "repeat");
  shownPen.fillRect(0, 0, shown.width, shown.height);
  pen.drawImage(source, 0, 0, canvas.width, canvas.height);
  pen.globalAlpha = 0.7;
  pen.drawImage(shown, 0, 0);
  pen.globalAlpha = 1;
  if (brush) drawBrush();
}

// A ring of two colours, where the keyboard paints next.
function drawBrush() {
  for (const [colour, wide] of [["#fff", 4], ["#000", 2]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = wide * perPixel();
    pen.beginPath();
    pen.arc(brush[0], brush[1], $("brush").value * perPixel() / 2, 0, 2 * Math.PI);
    pen.stroke();
  }
}

const perPixel = () => canvas.width / (canvas.getBoundingClientRect().width || canvas.width);

// The part of a stroke from its point number `from` on.
function paint({width, erase, points}, from = 0) {
  maskPen.globalCompositeOperation = erase ? "destination-out" : "source-over";
  maskPen.strokeStyle = "#fff";
  maskPen.lineCap = maskPen.lineJoin = "round";
  maskPen.lineWidth = width;
  maskPen.beginPath();
  maskPen.moveTo(...points[Math.max(0, from - 1)]);
  for (const [x, y] of points.slice(from)) maskPen.lineTo(x + 0.01, y);  // a dot has a length too
  maskPen.stroke();
}

function showButtons() {
  $("undo").disabled = strokes.length === 0;
  $("redo").disabled = undone.length === 0;
}

function repaint() {
  maskPen.clearRect(0, 0, mask.width, mask.height);
  strokes.forEach(each => paint(each));
  showButtons();
  redraw();
}

function undo() {
  if (strokes.length) undone.push(strokes.pop());
  repaint();
}

function redo() {
  if (undone.length) strokes.push(undone.pop());
  repaint();
}

function clearMask() {
  strokes = [];
  undone = [];
  repaint();
}

function begin(point) {
  stroke = {width: $("brush").value * perPixel(), erase: $("erase").checked, points: [point]};
  strokes.push(stroke);
  undone = [];
  paint(stroke);
  showButtons();
  redraw();
}

const placeOf = event => {
  const box = canvas.getBoundingClientRect();
  return [(event.clientX - box.left) * perPixel(), (event.clientY - box.top) * perPixel()];
};

const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};

function onKey(event) {
  if (event.ctrlKey || event.metaKey) {
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    return key === "y" || event.shiftKey ? redo() : undo();
  }
  if (!moves[event.key] && event.key !== " ") return;
  event.preventDefault();
  brush ??= [canvas.width / 2, canvas.height / 2];
  if (event.key === " ") return begin([...brush]);
  const step = $("brush").value * perPixel() / (event.shiftKey ? 8 : 2);
  const [x, y] = moves[event.key];
  brush = [Math.min(canvas.width, Math.max(0, brush[0] + x * step)),
    Math.min(canvas.height, Math.max(0, brush[1] + y * step))];
  redraw();
}

export function wirePaint() {
  canvas.addEventListener("pointerdown", event => {
    canvas.setPointerCapture(event.pointerId);
    brush = null;
    if (event.buttons && source) begin(placeOf(event));
  });
  canvas.addEventListener("pointermove", event => {
    if (!event.buttons || !stroke) return;
    stroke.points.push(placeOf(event));
    paint(stroke, stroke.points.length - 1);
    redraw();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, () => { stroke = null; });
  }
  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("keyup", event => { if (event.key === " ") stroke = null; });
  canvas.addEventListener("blur", () => { brush = null; redraw(); });
  $("undo").onclick = undo;
  $("redo").onclick = redo;
  $("wipe").onclick = clearMask;
}

// The sides of the picture that many times as large, as a worker takes them.
function fitted(scale) {
  const side = pixels => Math.min(2048, Math.max(64, Math.round(pixels * scale / 8) * 8));
  return [side(source.width), side(source.height)];
}

// Starts from a picture. Returns the sides to draw at: the picture's, but photographs become no
// larger than what the model draws, whose larger side is `own`.
export function setSource(bitmap, own) {
  source = bitmap;
  const longer = Math.max(source.width, source.height);
  const shorter = Math.min(source.width, source.height);
  [canvas.width, canvas.height] = [mask.width, mask.height] = fitted(Math.min(1, 2048 / longer));
  clearMask();
  return fitted(Math.min(1, own / shorter, 2048 / longer));
}

export function dropSource() {
  source = null;
  strokes = undone = [];
}

function base64(surface, background) {
  const flat = document.createElement("canvas"), out = flat.getContext("2d");
  flat.width = mask.width;
  flat.height = mask.height;
  out.fillStyle = background;
  out.fillRect(0, 0, flat.width, flat.height);
  out.drawImage(surface, 0, 0, flat.width, flat.height);
  return flat.toDataURL("image/png");
}

// The fields of a request that starts from the picture.
export function sourceFields() {
  const strength = Number($("strength").value);
  if (!isPainted()) {
    return {operation: "image_transform", input_image: base64(source, "#fff"), strength};
  }
  const out = {operation: "image_inpaint", init_image: base64(source, "#fff"),
    mask_image: base64(mask, "#000"), mask_fill: $("fill").value, strength};
  out.mask_blur = Number($("blur").value || $("blur").placeholder);
  if ($("invert").checked) out.mask_invert = true;
  if ($("area").value) out.mask_only = true;
  if ($("area").value && $("padding").value) out.mask_padding = Number($("padding").value);
  return out;
}

// The blur that leaves no hard edges.
export const usualBlur = () => Math.round(Math.max(canvas.width, canvas.height) / 128);
