// Markdown as HTML. The text is a stranger's: no HTML of it is let through, links go only where
// markdown-it allows, and pictures become links, as nothing is loaded from elsewhere.
/* global markdownit, hljs */

const kTime = 300;     // ms that a text may take
const kMarks = 1000;   // of emphasis in a paragraph
const kLinked = 4096;  // letters in which addresses become links
const kPiece = 2048;   // letters of code that the highlighter gets at once

const escape = text => {
  const node = document.createElement("span");
  node.textContent = text;
  return node.innerHTML;
};

// Whole lines, as many as fit; a longer one is a piece of its own.
function* pieces(code) {
  for (let at = 0; at < code.length;) {
    const near = code.lastIndexOf("\n", at + kPiece - 1), next = code.indexOf("\n", at);
    const end = near >= at ? near + 1 : next < 0 ? code.length : next + 1;
    yield code.slice(at, end);
    at = end;
  }
}

// In pieces, since the highlighter's time grows as the square of what it gets. A long line has no
// colours.
function highlight(code, language) {
  if (!language || !hljs.getLanguage(language)) return escape(code);
  let out = "", before = null;
  for (const piece of pieces(code)) {
    hurry();
    const told = piece.length > kPiece ? {value: escape(piece)} :
      hljs.highlight(language, piece, true, before);
    if (told.top) before = told.top;
    out += told.value;
  }
  return out;
}

// The library's own rule looks for trailing blanks in a time that grows as their square.
function newline(state, silent) {
  if (state.src.charCodeAt(state.pos) !== 10) return false;
  if (!silent) {
    let end = state.pending.length;
    while (end > 0 && state.pending.charCodeAt(end - 1) === 32) --end;
    const blanks = state.pending.length - end;
    state.pending = state.pending.slice(0, end);
    state.push(blanks >= 2 ? "hardbreak" : "softbreak", "br", 0);
  }
  ++state.pos;
  while (state.pos < state.posMax && [9, 32].includes(state.src.charCodeAt(state.pos))) ++state.pos;
  return true;
}

const renderer = markdownit({html: false, linkify: true, breaks: false});
renderer.inline.ruler.at("newline", newline);

// Several of the library's rules take a time that grows as the square of a text that was made for
// that. Those that are called again and again give up when the text's time is over.
let end = Infinity;  // of the text's time

class TooSlow extends Error {}

function hurry() {
  if (performance.now() > end) throw new TooSlow();
  return false;
}

renderer.inline.ruler.before("text", "hurry", hurry);
renderer.block.ruler.before("code", "hurry", hurry,
  {alt: ["paragraph", "reference", "blockquote", "list"]});
const {push} = renderer.block.State.prototype;
renderer.block.State.prototype.push = function(...values) {
  hurry();  // a rule makes a whole table
  return push.apply(this, values);
};
renderer.inline.ruler2.before("balance_pairs", "hurry", state => {
  hurry();
  if (state.delimiters.length > kMarks) state.delimiters.length = 0;  // they stay letters
});
const test = renderer.linkify.test.bind(renderer.linkify);  // also asked for each link of a text
renderer.linkify.test = text => hurry() || text.length <= kLinked && test(text);

function codeBlock(tokens, index) {
  hurry();
  const token = tokens[index];
  const language = token.info.trim().split(/\s+/)[0];
  return `<div class="code"><div class="code-head"><span>${escape(language || "text")}</span>` +
    `<button type="button" class="copy-code">Copy</button></div><pre tabindex="0"><code>` +
    `${highlight(token.content, language)}</code></pre></div>`;
}
renderer.renderer.rules.fence = codeBlock;
renderer.renderer.rules.code_block = codeBlock;

// Code and tables scroll on small screens, and so take the focus for the arrow keys.
renderer.renderer.rules.table_open = () => "<table tabindex=\"0\">\n";

renderer.renderer.rules.link_open = (tokens, index, options, environment, self) => {
  tokens[index].attrSet("target", "_blank");
  tokens[index].attrSet("rel", "noopener noreferrer");
  return self.renderToken(tokens, index, options);
};

renderer.renderer.rules.image = (tokens, index) => {
  const token = tokens[index];
  const link = document.createElement("a");
  link.href = token.attrGet("src");
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  link.textContent = token.content || "picture";
  return link.outerHTML;
};

// A text that would take too long is shown as it is.
export function toHtml(text) {
  end = performance.now() + kTime;
  try {
    return renderer.render(text);
  } catch (error) {
    if (!(error instanceof TooSlow)) throw error;
    return `<div class="plain">${escape(text)}</div>`;
  }
}
