// A chat's messages are the line that is shown. Where the reader edits a message or has an answer
// made anew, the line from there on is put aside: what comes before it keeps all `lines` (null: the
// one that is shown) and which one that is (`at`).

const before = (chat, index) => index > 0 ? chat.messages[index - 1] : chat;

// Puts the messages from `index` on aside; what is added next begins another line.
export function fork(chat, index) {
  const place = before(chat, index), rest = chat.messages.splice(index);
  const empty = rest.every(each => each.role === "assistant" && !each.content && !each.calls);
  if (empty) return;
  place.lines ??= [null];
  place.at ??= 0;
  place.lines[place.at] = rest;
  place.at = place.lines.push(null) - 1;
}

// Which line of how many goes on at `index`.
export function lineAt(chat, index) {
  const {lines = [null], at = 0} = before(chat, index);
  return {at, count: lines.length};
}

// Shows the line number `to` from `index` on.
export function turnTo(chat, index, to) {
  const place = before(chat, index);
  place.lines[place.at] = chat.messages.splice(index);
  chat.messages.push(...place.lines[to]);
  place.lines[to] = null;
  place.at = to;
}
