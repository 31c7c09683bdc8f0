// What a chat is, in this browser's memory and in files. Files are a stranger's: what this page
// would not write is an error.

const kFile = 256 << 20;   // bytes
const kChats = 10_000;     // of a file
const kMessages = 10_000;  // of a chat, in all its lines
const kDepth = 1000;       // of lines in lines
const kTitle = 200;        // letters

const isText = value => typeof value === "string";
const isFlag = value => typeof value === "boolean";
const isNumber = value => Number.isFinite(value);
const listOf = each => value => Array.isArray(value) && value.every(each);
const isPicture = value => isText(value) && /^data:image\/(png|jpeg);base64,/.test(value);
const isFile = value => isText(value?.name) && isText(value.text);
const isCall = value => isText(value?.name) && isText(value.arguments);

const needed = {role: value => ["user", "assistant"].includes(value), content: isText};
const optional = {pictures: listOf(isPicture), files: listOf(isFile), calls: listOf(isCall),
  thoughts: isText, thoughtsOpen: isFlag, reason: isText, failure: isText, tokens: isNumber,
  thoughtTokens: isNumber, speed: isNumber};

function checked(value, checks, into, mayLack) {
  for (const [name, isGood] of Object.entries(checks)) {
    if (mayLack && (value[name] ?? null) === null) continue;
    if (!isGood(value[name])) throw new Error(`"${name}" of a message is not what this page writes`);
    into[name] = value[name];
  }
  return into;
}

// The lines that go on at a message, or at the chat's begin; branches.js says what they are.
function linesFrom({lines, at}, left, depth) {
  if ((lines ?? null) === null) return {};
  const good = Array.isArray(lines) && Number.isInteger(at) && lines[at] === null && depth < kDepth &&
    lines.every((line, index) => index === at || Array.isArray(line));
  if (!good) throw new Error("the versions of a message are not what this page writes");
  return {at, lines: lines.map(line => line && messagesFrom(line, left, depth + 1))};
}

function messagesFrom(list, left, depth) {
  return list.map(value => {
    if (--left.messages < 0) throw new Error(`a chat has more than ${kMessages} messages`);
    if (typeof value !== "object" || value === null) throw new Error("a message is no object");
    const message = checked(value, needed, {}, false);
    return Object.assign(checked(value, optional, message, true), linesFrom(value, left, depth));
  });
}

// A copy with the fields that this page knows. Throws where one is of the wrong kind.
export function chatFrom(value) {
  if (!isText(value?.id) || !isText(value.title) || !Array.isArray(value.messages)) {
    throw new Error("a chat has no id, title or messages");
  }
  const left = {messages: kMessages};
  return {id: value.id, title: value.title.slice(0, kTitle),
    changed: isNumber(value.changed) ? value.changed : Date.now(),
    messages: messagesFrom(value.messages, left, 0), ...linesFrom(value, left, 0)};
}

export const newId = () => `${Date.now()}-${Math.random().toString(36).slice(2)}`;

// Chats of a file that this page saved, with ids of their own: none takes an earlier one's place.
export async function chatsOf(file) {
  if (file.size > kFile) throw new Error(`${file.name} is larger than ${kFile >> 20} MiB`);
  let found = null;
  try {
    found = JSON.parse(await file.text());
  } catch { /* told below */ }
  if (!Array.isArray(found)) throw new Error(`${file.name} holds no chats of this page`);
  if (found.length > kChats) throw new Error(`${file.name} holds more than ${kChats} chats`);
  try {
    return found.map(chatFrom).map(chat => ({...chat, id: newId()}));
  } catch (error) {
    throw new Error(`${file.name} holds no chats of this page: ${error.message}`);
  }
}
