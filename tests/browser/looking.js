// What a person would see who looks closely at the page: texts that are hard to read, texts on one
// another, texts that are cut off, and things that are drawn at another moment than their own.
(() => {
  const LEAST = 4.5; // contrast of text and ground (WCAG 2.2, AA)
  const texts = new Map(); // canvas -> what was written on it
  const write = CanvasRenderingContext2D.prototype.fillText;
  let isLooking = false;

  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    if (isLooking) {
      const { width } = this.measureText(text),
        tall = parseFloat(/([\d.]+)px/.exec(this.font)[1]),
        box = { x, y: y - tall / 2, width, height: tall };
      const all = texts.get(this.canvas) ?? [];
      texts.set(this.canvas, all);
      const under = ground(this, box);
      if (under) all.push({ text, box, contrast: contrast(colour(this.fillStyle), under, this.globalAlpha) });
    }
    return write.call(this, text, x, y);
  };

  /** The commonest colour below a text. */
  function ground(ctx, { x, y, width, height }) {
    const ratio = ctx.getTransform().a,
      counts = new Map();
    const [left, top] = [Math.max(0, x * ratio), Math.max(0, y * ratio)].map(Math.round);
    const wide = Math.min(ctx.canvas.width - left, Math.round(width * ratio)),
      tall = Math.min(ctx.canvas.height - top, Math.round(height * ratio));
    if (wide < 1 || tall < 1) return null;
    const { data } = ctx.getImageData(left, top, wide, tall);
    for (let i = 0; i < data.length; i += 4) {
      const key = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return [...counts].sort((a, b) => b[1] - a[1])[0][0].split(",").map(Number);
  }

  const one = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  /** A colour of a style sheet as red, green, blue and alpha. */
  function colour(text) {
    one.clearRect(0, 0, 1, 1);
    one.fillStyle = text;
    one.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = one.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  }

  function over([r, g, b, a = 1], under, alpha = 1) {
    const part = a * alpha;
    return [r, g, b].map((value, i) => value * part + under[i] * (1 - part));
  }

  function contrast(ink, under, alpha = 1) {
    const light = (rgb) =>
      rgb
        .map((value) => value / 255)
        .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
        .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
    const [a, b] = [light(over(ink, under, alpha)), light(under)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  }

  /** The texts of the page itself, with what is seen of each. */
  function written() {
    const found = [],
      walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode,
        parent = node.parentElement;
      if (!node.data.trim() || !parent.checkVisibility() || parent.closest(".spoken, script, style")) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const boxes = [...range.getClientRects()].map((box) => seen(box, parent)).filter(Boolean);
      const style = getComputedStyle(parent),
        chain = ancestors(parent);
      const under = chain
        .toReversed()
        .reduce((rgb, element) => over(colour(getComputedStyle(element).backgroundColor), rgb), [255, 255, 255]);
      const opacity = chain.reduce((all, element) => all * getComputedStyle(element).opacity, 1);
      const isOff = parent.closest("button:disabled:not(.card)"); // a control that is off may be pale
      if (boxes.length)
        found.push({
          text: node.data.trim(), boxes,
          contrast: isOff ? 21 : contrast(colour(style.color), under, opacity),
        });
    }
    return found;
  }

  function ancestors(element) {
    return element ? [element, ...ancestors(element.parentElement)] : [];
  }

  /** What is seen of a box: not what an element around it hides or has scrolled away. */
  function seen(box, parent) {
    let { left, top, right, bottom } = box;
    for (const element of ancestors(parent)) {
      if (getComputedStyle(element).overflow === "visible") continue;
      const around = element.getBoundingClientRect();
      [left, top] = [Math.max(left, around.left), Math.max(top, around.top)];
      [right, bottom] = [Math.min(right, around.right), Math.min(bottom, around.bottom)];
    }
    return right - left > 1 && bottom - top > 1 ? { x: left, y: top, width: right - left, height: bottom - top } : null;
  }

  function meet(a, b) {
    const wide = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x),
      tall = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
    return wide > 1.5 && tall > 2.5;
  }

  function overlaps(all) {
    return all.flatMap((a, i) =>
      all
        .slice(i + 1)
        .filter((b) => a.boxes.some((x) => b.boxes.some((y) => meet(x, y))))
        .map((b) => `${a.text} | ${b.text}`),
    );
  }

  /** Whether the hint in an empty field is longer than the field. */
  function isHintCut(field) {
    const { font, paddingLeft, paddingRight } = getComputedStyle(field),
      room = field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    one.font = font;
    return one.measureText(field.placeholder).width > room;
  }

  /** Elements whose text is cut off without a sign of it. */
  function clipped() {
    const isCut = (element) => {
      if (element.placeholder) return isHintCut(element);
      const { overflowX, textOverflow, webkitLineClamp } = getComputedStyle(element);
      if (overflowX !== "hidden" || !element.textContent.trim()) return false;
      if (webkitLineClamp !== "none") return element.scrollHeight > element.clientHeight + 2 && !element.closest("[title]");
      return element.scrollWidth > element.clientWidth + 1 && textOverflow !== "ellipsis";
    };
    const isOut = (element) => element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".cards, .panel, .spoken");
    return [...document.querySelectorAll("body *")]
      .filter((element) => element.checkVisibility() && !element.closest(".spoken") && (isCut(element) || isOut(element)))
      .map((element) => element.id || element.className || element.textContent.slice(0, 40));
  }

  /** How many pixels something is drawn away from its own moment, at most. */
  function astray(app) {
    const { view, layout, model, painter, minimap } = app;
    if (view.axis !== "wall" || view.folded) return 0;
    const x = ({ us }) => view.gutter + (us - view.from) * view.scale,
      far = [0],
      whole = ({ us }) => view.gutter + 14 + (us * (view.plot - 64)) / view.span;
    for (const i of painter.seated) if (!(painter.slots?.on[i] >= 0)) far.push(painter.seat(i).x - x(model.events[i]));
    for (const one of model.activations) {
      far.push(view.x(layout.startAt[one.i]) - x(one));
      if (one.end) far.push(view.x(layout.endAt[one.i]) - x(one.end));
      far.push(minimap.x(layout.startAt[one.i]) - whole(one));
    }
    for (const { i, from, event } of model.edges) far.push(view.x(layout.fromAt[i]) - x(from ?? event));
    for (const { x: at, all } of painter.flags) far.push(at - x(all[0]));
    for (const { x: at, heal } of painter.marks) far.push(at - x(heal));
    const slider = document.getElementById("scrubber").getBoundingClientRect(),
      share = Number(document.getElementById("scrubber").value) / view.span;
    const thumb = slider.left + 7 + share * (slider.width - 14) - app.canvas.getBoundingClientRect().left;
    far.push(thumb - whole({ us: view.at === null ? model.us : model.times[view.at] }));
    return Math.max(...far.map(Math.abs));
  }

  /** Looks at the page as it is now. */
  window.look = () => {
    const { app } = window.dig;
    isLooking = true;
    texts.clear();
    app.minimap.key = "";
    app.paint();
    isLooking = false;
    const drawn = [...texts.values()].map((all) => all.map((text) => ({ ...text, boxes: [text.box] })));
    const page = written(),
      all = [...page, ...drawn.flat()];
    return {
      texts: all.length,
      contrast: Math.min(...all.map((text) => text.contrast)),
      pale: [...new Set(all.filter((text) => text.contrast < LEAST).map((text) => `${text.text.slice(0, 30)} ${text.contrast.toFixed(2)}`))],
      overlaps: [overlaps(page), ...drawn.map(overlaps)].flat(),
      clipped: clipped(),
      astray: astray(app),
    };
  };
})();
