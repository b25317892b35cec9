// @ts-check
import { h } from "/dom.js";

/** By how many rows PageUp and PageDown move. */
const PAGE = 10;
/** Where a key goes from a place among rows and columns. @type {Record<string, (row: number, column: number) => [row: number, column: number]>} */
const MOVES = {
  ArrowUp: (row, column) => [row - 1, column],
  ArrowDown: (row, column) => [row + 1, column],
  ArrowLeft: (row, column) => [row, column - 1],
  ArrowRight: (row, column) => [row, column + 1],
  PageUp: (row, column) => [row - PAGE, column],
  PageDown: (row, column) => [row + PAGE, column],
  Home: (row) => [row, 0],
  End: (row) => [row, Infinity],
  "Control+Home": () => [0, 0],
  "Control+End": () => [Infinity, Infinity],
};

/** Cells of which a table takes long to lay out: columns have the same width then. */
const MANY = 500;

const short = (key) => key.split(".").pop().replaceAll("_", " ");

/**
 * Cells by the factor with the most levels across, and all others down, each with what it comes to so far.
 * @param {{ factors: Record<string, string[]>, cells: { cell: number, levels: string[], text: string, planned: number }[] }} plan
 * The Tab key enters it at one cell; arrow keys, Home, End, PageUp and PageDown move there, Enter chooses.
 * @param {(cell: number) => void} chosen is told which cell is clicked
 * @param {number | null} entered the cell where the Tab key enters; null for the first
 */
export function heatMap(plan, chosen, entered = null) {
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
  /** @type {Map<EventTarget | null, number>} */
  const cells = new Map();
  const body = h("tbody");
  for (const [others, row] of rows) {
    body.append(h("tr", {}, h("th", { scope: "row", class: "word" }, others), ...levels.map((level) => {
      const cell = row.get(level);
      if (!cell) return h("td", { tabindex: -1 }, "–");
      const text = `cell ${cell.cell}: ${cell.text}`;
      const place = h("td", { title: text, tabindex: -1 }, "·");
      cells.set(place, cell.cell);
      places.set(cell.cell, { place, text, value: null, planned: cell.planned });
      return place;
    })));
  }
  const others = keys.filter((key) => key !== across).map(short).join(" · ");
  const about = h("p", { class: "help" }, "\u00a0");
  const grid = h("table", { class: plan.cells.length > MANY ? "heat many" : "heat", role: "grid", "aria-label": "Cells", "aria-readonly": "true" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "word" }, others), ...levels.map((level) =>
      h("th", { scope: "col" }, across ? `${short(across)} ${level}` : "")))), body);
  const element = h("div", {}, h("div", { class: "scroll tall" }, grid), about);

  let current = /** @type {HTMLElement} */ (places.get(entered ?? -1)?.place ?? body.querySelector("td"));
  const enter = (place) => {
    current.tabIndex = -1;
    current = place;
    current.tabIndex = 0;
    about.textContent = current.title || "\u00a0";
  };
  if (current) current.tabIndex = 0;
  grid.addEventListener("focusin", (event) => { if (event.target.matches("td")) enter(event.target); });
  const choose = (place) => { if (cells.has(place)) chosen(/** @type {number} */ (cells.get(place))); };
  grid.addEventListener("click", (event) => choose(event.target.closest("td")));
  grid.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") choose(event.target);
    const move = MOVES[(event.ctrlKey ? "Control+" : "") + event.key];
    if (move) {
      const within = (at, length) => Math.max(0, Math.min(at, length - 1));
      const [row, column] = move(current.parentElement.sectionRowIndex, current.cellIndex - 1);
      // The first of a row is its head.
      body.rows[within(row, body.rows.length)].cells[1 + within(column, levels.length)].focus();
    } else if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
  });

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
      if (cell.place === document.activeElement) about.textContent = cell.place.title;
      if (!wider) shade(cell);
    }
    if (wider) for (const cell of places.values()) shade(cell);
  }
  return { element, fill, entered: () => cells.get(current) ?? null };
}
