// Colours for the canvas, as the style sheet has them; light or dark as the system or the reader
// wants.

const KEY = "dig-theme";
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** The colours that hold now. */
export function colours() {
  const style = getComputedStyle(document.documentElement),
    [tokens] = document.styleSheets[0].cssRules; // see tokens.css
  const names = [...tokens.style].filter((name) => name.startsWith("--"));
  return Object.fromEntries(
    names.map((name) => [name.slice(2), style.getPropertyValue(name).trim()]),
  );
}

export function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

/** Takes a theme that the reader chose, and keeps it. */
export function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem(KEY, name);
  } catch {
    /* a page from disk may have no storage */
  }
}

/** Begins with what was chosen before, or with what the system wants, and follows it. */
export function startTheme(onChange) {
  const root = document.documentElement;
  root.dataset.theme = kept() ?? (DARK.matches ? "dark" : "light");
  DARK.addEventListener("change", () => {
    if (kept()) return;
    root.dataset.theme = DARK.matches ? "dark" : "light";
    onChange();
  });
}

function kept() {
  try {
    const name = localStorage.getItem(KEY);
    return name === "dark" || name === "light" ? name : null;
  } catch {
    return null;
  }
}
