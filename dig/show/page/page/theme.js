// Colours for the canvas, as the style sheet has them; light or dark as the system or the reader
// wants.

const NAMES = [
  "ground",
  "panel",
  "band",
  "ink",
  "ink-2",
  "ink-3",
  "line",
  "line-2",
  "accent",
  "bar",
  "bar-ink",
  "edge",
  "delay",
  "reroute",
  "discard",
  "wait",
  "error",
  "warning",
  "note",
  "silenced",
  "heal",
  "problem",
  "solution",
  "raw_data",
  "message",
  "notice",
  "system",
  "final",
  "other",
  "density",
];

const KEY = "dig-theme";
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** The colours that hold now. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
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
