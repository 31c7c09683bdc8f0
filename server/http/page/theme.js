// The theme that the reader chose on one of the pages: light, dark, or the system's.

const dark = matchMedia("(prefers-color-scheme: dark)");
const next = {auto: "light", light: "dark", dark: "auto"};

function chosen() {
  try {
    return localStorage.getItem("rbee-theme") ?? "auto";
  } catch {
    return "auto";  // the browser forbids this page to keep anything
  }
}

function showTheme(button) {
  const theme = chosen();
  document.documentElement.dataset.theme =
    theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
  button.title = `Theme: ${theme === "auto" ? "the system's" : theme}`;
}

export function wireTheme(button) {
  button.onclick = () => {
    localStorage.setItem("rbee-theme", next[chosen()] ?? "light");
    showTheme(button);
  };
  dark.onchange = () => showTheme(button);
  showTheme(button);
}
