// Elements from names, keys and children. Text is only ever set as text, so nothing in a run can
// become markup.

/** An element: `h("ul.rows", ...)`. Keys may come before the children: `on...` are listeners, `class`
    and `text` what they say. */
export function h(name, ...children) {
  const [tag, ...classes] = name.split("."),
    hasKeys = children[0] && Object.getPrototypeOf(children[0]) === Object.prototype,
    keys = hasKeys ? children.shift() : {};
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(keys)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "text") element.textContent = value;
    else if (key === "class") element.className = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** A button; `keys` are further keys of the element. */
export function buttonOf(text, onclick, keys) {
  return h("button", { type: "button", text, onclick, ...keys });
}

/** A paragraph of a class. */
export function para(kind, text) {
  return h("p", { class: kind, text });
}

/** A part of a drawing, with what it says at the pointer. */
export function svg(name, keys, title, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(keys)) element.setAttribute(key, value);
  if (title) element.append(svg("title", {}, "", title));
  element.append(...children);
  return element;
}

/** What shows a part of the page, and is made anew when what it shows has another version. */
export class Panel {
  version = "";

  constructor(app, element) {
    Object.assign(this, { app, element });
  }

  /** Whether the version is another one than before. */
  isOther(version) {
    const before = this.version;
    this.version = version;
    return version !== before;
  }
}

/** Fills an element anew; who was on a button in it from the keyboard is on the same one again. */
export function refill(element, ...children) {
  const before = document.activeElement,
    wasInside = before !== element && element.contains(before);
  element.replaceChildren(...children.filter(Boolean));
  if (!wasInside) return;
  const label = (one) => one.dataset.finding ?? one.textContent;
  const same = [...element.querySelectorAll("button")].find((one) => label(one) === label(before));
  (same ?? element).focus({ preventScroll: true });
}

/** Sets keys of an element that differ; to set others would have the browser lay out all anew. */
export function put(element, keys) {
  for (const [key, value] of Object.entries(keys)) if (element[key] !== value) element[key] = value;
}

export function $(id) {
  return document.getElementById(id);
}

/** A canvas for its size on the page, and its pen. */
export function pen(canvas) {
  const { clientWidth, clientHeight } = canvas,
    ratio = devicePixelRatio || 1;
  put(canvas, {
    width: Math.round(clientWidth * ratio),
    height: Math.round(clientHeight * ratio),
  });
  const ctx = canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  return ctx;
}
