// The theme that the reader chose on one of the pages: light, dark, or the system's.
import {recall, remember} from "./memory.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const next = {auto: "light", light: "dark", dark: "auto"};

const chosen = () => recall("rbee-theme") ?? "auto";

function showTheme(button) {
  const theme = chosen();
  document.documentElement.dataset.theme =
    theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
  button.title = `Theme: ${theme === "auto" ? "the system's" : theme}`;
}

export function wireTheme(button) {
  button.onclick = () => {
    remember("rbee-theme", next[chosen()] ?? "light");
    showTheme(button);
  };
  dark.onchange = () => showTheme(button);
  showTheme(button);
}
