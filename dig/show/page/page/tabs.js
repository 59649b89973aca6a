// The three panels at the side, one at a time.

const NAMES = ["findings", "details", "overview"];

export class Tabs {
  constructor(onShow) {
    this.shown = "findings";
    this.onShow = onShow;
    for (const [i, name] of NAMES.entries()) {
      const tab = document.getElementById(`tab-${name}`);
      tab.addEventListener("click", () => this.show(name));
      tab.addEventListener("keydown", (e) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
        if (!step) return;
        const next = NAMES[(i + step + NAMES.length) % NAMES.length];
        this.show(next);
        document.getElementById(`tab-${next}`).focus();
      });
    }
  }

  show(name) {
    if (!NAMES.includes(name)) return;
    this.shown = name;
    for (const one of NAMES) {
      const tab = document.getElementById(`tab-${one}`),
        isShown = one === name;
      tab.setAttribute("aria-selected", String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      document.getElementById(one).hidden = !isShown;
    }
    this.onShow(name);
  }
}
