const { factors, metrics, cells } = JSON.parse(document.getElementById("cells").textContent);
const MOST_ROWS = 200;
const choice = document.getElementById("choice"), list = document.getElementById("list"), shown = document.getElementById("cell");
const make = (tag, text, more) => Object.assign(document.createElement(tag), text === undefined ? {} : { textContent: text }, more);
const byNumber = new Map(cells.map((cell) => [cell[0], cell]));
const nameOf = (cell) => factors.map(([name, levels], at) => `${name} ${levels[cell[1][at]]}`).filter((text) => !text.endsWith(" ")).join(", ");
const verdict = (cell) => (cell[5] ? (cell[6].length ? "warning" : "valid") : "INVALID");
const value = (cell, at) => cell[7][at]?.[0][metrics[at][2]] ?? null;
const grouped = (number) => number.toString().replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
function table(heads, rows, caption) {
  const made = make("table");
  if (caption) made.createCaption().textContent = caption;
  const line = (section, texts, tag) => {
    const row = section.insertRow();
    for (const text of texts) row.append(text instanceof Node ? text : make(tag, text ?? "–"));
  };
  line(made.createTHead(), heads, "th");
  const body = made.createTBody();
  for (const texts of rows) line(body, texts, "td");
  const region = make("div", undefined, { className: "scroll", tabIndex: 0, role: "group", ariaLabel: caption });
  region.append(made);
  return region;
}
// The mean of each repetition as a bar from 0 to the largest.
function bars(means, unit) {
  const NS = "http://www.w3.org/2000/svg", most = Math.max(...means, 0) || 1, width = Math.min(24, 600 / means.length);
  const drawing = document.createElementNS(NS, "svg");
  drawing.setAttribute("viewBox", `0 0 ${width * means.length} 60`);
  drawing.setAttribute("width", width * means.length);
  drawing.setAttribute("height", 60);
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `Means of ${means.length} repetitions: ${Math.min(...means)} to ${most} ${unit}`);
  means.forEach((mean, at) => {
    const bar = document.createElementNS(NS, "rect"), high = (58 * Math.max(0, mean)) / most;
    for (const [name, number] of Object.entries({ x: at * width + 1, y: 60 - high, width: width - 2, height: high })) bar.setAttribute(name, number);
    bar.setAttribute("class", "bar");
    drawing.append(bar);
  });
  return drawing;
}
function show() {
  const cell = byNumber.get(Number(location.hash.slice(1)));
  shown.replaceChildren();
  if (!location.hash || !cell) return;
  shown.append(make("h2", `Cell ${cell[0]}: ${nameOf(cell)}`));
  shown.append(make("p", `${verdict(cell)}; ${cell[4]} repetitions, ${grouped(cell[2])} exchanges, ${grouped(cell[3])} lost`));
  for (const text of cell[6]) shown.append(make("p", text, { className: "foot" }));
  metrics.forEach(([title, unit], at) => {
    if (!cell[7][at]) return;
    const [[median, mean], means] = cell[7][at];
    shown.append(make("h3", `${title}, ${unit}`), bars(means, unit));
    shown.append(table(["median", "mean", "means of the repetitions"], [[median, mean, means.join(", ")]], title));
  });
  const hint = make("p", "Its intervals and charts: ", { className: "foot" });
  hint.append(make("code", `crosswind report RUN --cell ${cell[0]}`));
  shown.append(hint);
}
const chosen = factors.map(() => -1);
let sorting = -1, up = true;
function fill() {
  let rows = cells.filter((cell) => chosen.every((level, at) => level < 0 || cell[1][at] === level));
  if (sorting >= 0) rows = rows.toSorted((a, b) => ((value(a, sorting) ?? Infinity) - (value(b, sorting) ?? Infinity)) * (up ? 1 : -1));
  const heads = ["cell", ...factors.map(([name]) => name), "n", "lost", ...metrics.map(([title, unit, mean]) => `${title}, ${mean ? "mean" : "median"}, ${unit}`), "verdict"];
  const lines = rows.slice(0, MOST_ROWS).map((cell) => {
    const link = make("td");
    link.append(make("a", String(cell[0]), { href: `#${cell[0]}` }));
    return [link, ...factors.map(([, levels], at) => levels[cell[1][at]]), grouped(cell[2]), grouped(cell[3]), ...metrics.map((_, at) => value(cell, at)), verdict(cell)];
  });
  const first = rows.length > MOST_ROWS ? `, the first ${MOST_ROWS} of them shown` : "";
  list.replaceChildren(table(heads, lines, `${grouped(rows.length)} cells${first}`));
}
function select(label, names, take) {
  const box = make("label", `${label} `), made = make("select");
  names.forEach((name, at) => made.append(make("option", name, { value: at })));
  made.addEventListener("change", () => { take(Number(made.value)); fill(); });
  box.append(made);
  choice.append(box);
}
factors.forEach(([name, levels], at) => select(name, ["all", ...levels], (level) => { chosen[at] = level - 1; }));
const orders = ["cell", ...metrics.flatMap(([title]) => [`${title}, smallest first`, `${title}, largest first`])];
select("in order of", orders, (at) => { sorting = at ? (at - 1) >> 1 : -1; up = at % 2 === 1; });
window.addEventListener("hashchange", () => { show(); window.scrollTo(0, 0); });
fill();
show();
