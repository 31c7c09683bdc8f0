// Markdown as HTML. The text is a stranger's: no HTML of it is let through, links go only where
// markdown-it allows, and pictures become links, as nothing is loaded from elsewhere.
/* global markdownit, hljs */

const escape = text => {
  const node = document.createElement("span");
  node.textContent = text;
  return node.innerHTML;
};

function highlight(code, language) {
  if (!language || !hljs.getLanguage(language)) return escape(code);
  try {
    return hljs.highlight(language, code, true).value;
  } catch {
    return escape(code);
  }
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

function codeBlock(tokens, index) {
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

export const toHtml = text => renderer.render(text);
