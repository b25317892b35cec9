// @ts-check
import { h } from "/dom.js";

/** Cells of which a table takes long to lay out: columns have the same width then. */
const MANY = 500;

const short = (key) => key.split(".").pop().replaceAll("_", " ");

/**
 * Cells by the factor with the most levels across, and all others down, each with what it comes to so far.
 * @param {{ factors: Record<string, string[]>, cells: { cell: number, levels: string[], text: string, planned: number }[] }} plan
 * @param {(cell: number) => void} chosen is told which cell is clicked
 */
export function heatMap(plan, chosen) {
  const keys = Object.keys(plan.factors);
  const across = keys.reduce((best, key) => plan.factors[key].length > (plan.factors[best]?.length ?? 0) ? key : best, keys[0] ?? "");
  const at = keys.indexOf(across);
  const levels = plan.factors[across] ?? [""];
  const rows = new Map();
  for (const cell of plan.cells) {
    const others = cell.levels.filter((_, index) => index !== at).join(" · ");
    if (!rows.has(others)) rows.set(others, new Map());
    rows.get(others).set(cell.levels[at] ?? "", cell);
  }
  /** @type {Map<number, { place: HTMLElement, text: string, value: number | null, planned: number }>} */
  const places = new Map();
  const body = h("tbody");
  for (const [others, row] of rows) {
    body.append(h("tr", {}, h("th", { scope: "row", class: "word" }, others), ...levels.map((level) => {
      const cell = row.get(level);
      if (!cell) return h("td", {}, "–");
      const text = `cell ${cell.cell}: ${cell.text}`;
      const place = h("td", { title: text, onclick: () => chosen(cell.cell) }, "·");
      places.set(cell.cell, { place, text, value: null, planned: cell.planned });
      return place;
    })));
  }
  const others = keys.filter((key) => key !== across).map(short).join(" · ");
  const element = h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Cells" }, h("table", { class: plan.cells.length > MANY ? "heat many" : "heat" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "word" }, others), ...levels.map((level) =>
      h("th", { scope: "col" }, across ? `${short(across)} ${level}` : "")))), body));
  let [least, most] = [Infinity, -Infinity];

  const shade = ({ place, value }) => {
    if (value === null || !(most > least)) return;
    place.style.setProperty("--heat", ((value - least) / (most - least)).toFixed(3));
  };

  /** @param {[cell: number, done: number, bad: number, value: number | null, text: string][]} cells */
  function fill(cells) {
    let wider = false;
    for (const [number, done, bad, value, text] of cells) {
      const cell = places.get(number);
      if (!cell || !done) continue;
      const { planned } = cell;
      cell.value = value;
      if (value !== null && (value < least || value > most)) {
        [least, most, wider] = [Math.min(least, value), Math.max(most, value), true];
      }
      const count = done >= planned && !bad ? "" : ` ${done}/${planned}`;
      cell.place.textContent = `${text || "no value"}${count}${bad ? `, ${bad} bad` : ""}`;
      cell.place.title = `${cell.text}: ${done} of ${planned} done${bad ? `, ${bad} bad` : ""}${text ? `, mean ${text}` : ""}`;
      if (bad) cell.place.dataset.bad = "";
      if (!wider) shade(cell);
    }
    if (wider) for (const cell of places.values()) shade(cell);
  }
  return { element, fill };
}
