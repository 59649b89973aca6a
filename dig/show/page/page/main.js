// Puts the page together. `window.dig` is the page at work, and what it shows as plain values.

import { copy } from "./acts.js";
import { App } from "./app.js";
import { Cards } from "./cards.js";
import { Details } from "./details.js";
import { $ } from "./dom.js";
import { Painter } from "./draw.js";
import { Filters, startLegend } from "./filters.js";
import { Findings } from "./findings.js";
import { Heading, Hint, Tip } from "./heading.js";
import { Input } from "./input.js";
import { startKeys } from "./keys.js";
import { Minimap } from "./minimap.js";
import { Overview } from "./overview.js";
import { Search } from "./search.js";
import { start } from "./source.js";
import { state } from "./state.js";
import { Tabs } from "./tabs.js";
import { colours, startTheme } from "./theme.js";
import { Timebar } from "./timebar.js";

const canvas = $("canvas");
const app = new App(canvas);
app.painter = new Painter(canvas, app);
app.findings = new Findings(app, $("findings"));
app.details = new Details(app, $("details"));
app.overview = new Overview(app, $("overview"));
app.tabs = new Tabs((name) => {
  app[name].update();
  app.ask();
});
app.search = new Search(app, $("search"), $("results"));
app.timebar = new Timebar(app, $("scrubber"), $("play"));
app.minimap = new Minimap(app, $("minimap"));
app.parts = {
  heading: new Heading(app),
  cards: new Cards(app, $("headline"), $("cards")),
  hint: new Hint(app),
  tip: new Tip(app, $("tip")),
  filters: new Filters(app, $("filters")),
};

startTheme(() => app.recolour());
app.painter.recolour(colours());
startLegend(app, $("legend"));
startKeys(app, $("keys"));
new Input(app, canvas);

const buttons = {
  raw: () => app.setCleaned(false),
  cleaned: () => app.setCleaned(true),
  wall: () => app.setAxis("wall"),
  logical: () => app.setAxis("logical"),
  fold: () => app.toggleFold(),
  fit: () => app.everything(),
  in: () => app.zoomHere(1.6),
  out: () => app.zoomHere(1 / 1.6),
  play: () => app.timebar.toggle(),
  back: () => app.timebar.step(-1),
  on: () => app.timebar.step(1),
  end: () => app.setAt(null),
  theme: () => app.toggleTheme(),
  help: () => $("keys").showModal(),
  copy: () => {
    app.address.update();
    copy(app, location.href, $("copy"));
  },
};
for (const [id, act] of Object.entries(buttons)) $(id).addEventListener("click", act);

new ResizeObserver(() => app.resize()).observe($("picture"));
addEventListener("popstate", () => app.open(location.hash));

window.dig = {
  app,
  add: (rows) => app.add(rows),
  get state() {
    return state(app);
  },
};
start(app, $("data"));
