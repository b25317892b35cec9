const specs = JSON.parse(document.getElementById("specs").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
// The names in each legend: of each field once, whatever layer it is in.
function legends(spec) {
  const encodings = [spec, ...(spec.layer ?? [])].map((view) => view.encoding ?? {});
  const channels = encodings.flatMap(({ color, strokeDash, shape }) => [color, strokeDash, shape]);
  const shown = channels.filter((channel) => channel?.scale?.domain && channel.legend !== null);
  return [...new Map(shown.map((channel) => [channel.field, channel.scale.domain])).values()];
}
function textWidth(text) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = "12px " + getComputedStyle(document.body).fontFamily;
  return context.measureText(text).width;
}
// The pixels beside the drawing: those of the rows' names, where each row has one, else of an axis with numbers.
const rowsOf = (spec) => [spec, ...(spec.layer ?? [])].map((view) => view.encoding?.y).find((of) => of?.axis?.labelExpr);
function beside(spec) {
  const y = rowsOf(spec);
  if (!y) return 70;
  const names = Object.values(spec.datasets).flat().map((row) => row[y.field]).filter((name) => typeof name === "string");
  return 20 + Math.max(0, ...[...new Set(names.flatMap((name) => name.split("\n")))].map(textWidth));
}
// The largest number of columns, up to four, with which the legends fit into a chart of `width` pixels.
function columns(spec, width, narrow) {
  const space = width - beside(spec) - 10, symbol = 28; // a symbol with its margins
  const measured = legends(spec).map((names) => names.map((name) => textWidth(name) + symbol));
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const column = (widths, count, at) => Math.max(0, ...widths.filter((_, index) => index % count === at));
  const wide = (widths, count) => sum(Array.from({ length: count }, (_, at) => column(widths, count, at)));
  const fits = (count) => {
    const all = measured.map((widths) => wide(widths, count));
    return (narrow ? Math.max(0, ...all) : sum(all)) <= space;
  };
  return [4, 3, 2].find(fits) ?? 1;
}
// Legends of more than two lines stand above the drawing, not in its place; of more than one where each row has a name.
function height(spec, width) {
  const narrow = isNarrow(width), lines = legends(spec).map((names) => Math.ceil(names.length / columns(spec, width, narrow)));
  const most = narrow ? lines.reduce((total, number) => total + number, 0) : Math.max(0, ...lines);
  return spec.height + 17 * Math.max(0, most - (rowsOf(spec) ? 1 : 2));
}
// Numbers as the page's tables have them.
const LOCALE = { decimal: ".", thousands: "\u202f", grouping: [3], currency: ["", ""] };
// The page's policy allows neither styles that a script adds nor code made of expressions.
const EMBED = { actions: false, renderer: "svg", ast: true, formatLocale: LOCALE, defaultStyle: false, tooltip: { disableDefaultStyle: true } };
const isNarrow = (width) => width < 560 && document.body.clientWidth < 600; // legends side by side would be cut off
// How a chart looks in the page, or in a file, which is light whatever the page is.
const pageColours = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const FILE_COLOURS = { "--ink": "#1c2230", "--soft": "#5b6475", "--line": "#dfe3ea", "--accent": "#0072b2" };
function config(spec, width, colour = pageColours) {
  const narrow = isNarrow(width);
  const words = { labelColor: colour("--soft"), titleColor: colour("--ink"), labelFontSize: 12, titleFontSize: 12, titleFontWeight: 600 };
  // A title longer than the drawing is wide goes on below the names of the rows.
  const aligned = narrow && beside(spec) > 100 ? { titleAnchor: "end", titleAlign: "right" } : {};
  return {
    background: "transparent", font: getComputedStyle(document.body).fontFamily,
    padding: { left: 5, top: 5, right: 10, bottom: 5 }, // The last label of an axis may end 10 px beyond it (labelBound).
    view: { stroke: null }, mark: { color: colour("--accent") },
    axisX: aligned,
    axis: { ...words, gridColor: colour("--line"), domainColor: colour("--line"), tickColor: colour("--line") },
    legend: { ...words, columns: columns(spec, width, narrow), symbolStrokeWidth: 2, padding: 0, offset: 8,
      layout: { top: { direction: narrow ? "vertical" : "horizontal" } } },
  };
}
// Titles of the axis below that are longer than a chart is wide, in lines.
function inLines(spec, width) {
  const broken = ({ encoding, ...view }) => {
    const title = encoding?.x?.title, isLong = typeof title === "string" && 1.1 * textWidth(title) > width - 30;
    return { ...view, encoding: isLong ? { ...encoding, x: { ...encoding.x, title: title.split(/(?<=,) /) } } : encoding };
  };
  return spec.layer ? { ...spec, layer: spec.layer.map(broken) } : broken(spec);
}
// A chart as a file: drawn anew, at a width of its own.
const FILE_WIDTH = 900;
async function asView(spec) {
  const place = document.createElement("div");
  const own = { ...spec, width: FILE_WIDTH, height: height(spec, FILE_WIDTH), background: "#ffffff", padding: 16 };
  const options = { config: config(spec, FILE_WIDTH, (name) => FILE_COLOURS[name]), ...EMBED };
  return (await vegaEmbed(place, { ...own, autosize: { type: "fit", contains: "padding" } }, options)).view;
}
// What each column of a chart's rows is, with its unit, where an axis says so. Limits keep their names: low, high.
function titles(spec) {
  const channels = [spec, ...(spec.layer ?? [])].flatMap((view) => Object.values(view.encoding ?? {})).filter(({ field }) => !["low", "high"].includes(field));
  return Object.fromEntries(channels.filter(({ field, title }) => field && title).map(({ field, title }) => [field, title.replace(/, log scale$/, "")]));
}
// The rows that a chart draws, below their heads. Those without any name only draw lines and margins.
function asRows(spec) {
  const rows = Object.values(spec.datasets).flat().filter((row) => Object.values(row).some((value) => typeof value === "string"));
  const names = [...new Set(rows.flatMap(Object.keys))], heads = titles(spec);
  return [names.map((name) => heads[name] ?? name), ...rows.map((row) => names.map((name) => String(row[name] ?? "").replaceAll("\n", " · ")))];
}
function asCsv(spec) {
  // A spreadsheet would run a text that begins so, and hides the apostrophe.
  const inert = (text) => (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
  const quoted = (text) => (/[",\r]/.test(inert(text)) ? `"${inert(text).replaceAll('"', '""')}"` : inert(text));
  return asRows(spec).map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}
// The same as a table in the page, as far as anybody reads it there.
const MOST_ROWS = 500;
function asTable(spec, name) {
  const [heads, ...rows] = asRows(spec), table = document.createElement("table"), region = document.createElement("div");
  table.createCaption().textContent = `Data of the chart ${name}` + (rows.length > MOST_ROWS ? `: ${MOST_ROWS} of ${rows.length} rows; the CSV file has all` : "");
  const line = (section, texts, tag, scope) => {
    const row = section.insertRow();
    for (const text of texts) row.append(Object.assign(document.createElement(tag), { textContent: text, ...(scope && { scope }) }));
  };
  line(table.createTHead(), heads, "th", "col");
  const body = table.createTBody();
  for (const texts of rows.slice(0, MOST_ROWS)) line(body, texts, "td");
  region.append(table);
  Object.assign(region, { className: "scroll tall", tabIndex: 0, role: "group", ariaLabel: `Data of the chart ${name}` });
  return region;
}
const FORMATS = {
  SVG: async (spec) => new Blob([await (await asView(spec)).toSVG()], { type: "image/svg+xml" }),
  PNG: async (spec) => (await fetch(await (await asView(spec)).toImageURL("png", 2))).blob(),
  CSV: async (spec) => new Blob([asCsv(spec)], { type: "text/csv" }),
};
const sectionOf = (figure) => figure.closest("section, details[id]")?.querySelector("h2, summary")?.textContent;
function fileName(figure, format) {
  const words = [document.querySelector("h1").textContent.split(":")[0], sectionOf(figure), figure.querySelector("figcaption")?.textContent];
  const text = words.filter(Boolean).join(" ").replace(/[^\p{L}\p{N}.%]+/gu, "-").slice(0, 160).replace(/^-+|-+$/g, "");
  return `${text || "chart"}.${format.toLowerCase()}`;
}
async function save(figure, spec, format) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await FORMATS[format](spec));
  link.download = fileName(figure, format);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
for (const [id, spec] of Object.entries(specs)) {
  const figure = document.getElementById(id).closest("figure"), bar = document.createElement("div");
  const name = figure.querySelector("figcaption")?.textContent ?? sectionOf(figure);
  bar.className = "save";
  const button = (text, label, action) => {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: text, title: label, ariaLabel: `${text}: ${label}` });
    made.addEventListener("click", () => action(made));
    bar.append(made);
  };
  button("Table", `data of the chart ${name}`, (made) => {
    const shown = bar.nextElementSibling;
    shown ? shown.remove() : bar.after(asTable(spec, name));
    made.ariaExpanded = String(!shown);
  });
  bar.firstElementChild.ariaExpanded = "false";
  for (const format of Object.keys(FORMATS)) button(format, `save the chart ${name}`, () => save(figure, spec, format));
  figure.append(bar);
}
// A chart for a place of `width` pixels, without its rows: the drawing fits any width, but columns and lines of text do not.
function laidOut(spec, width) {
  const { datasets, ...view } = inLines(spec, width);
  return { ...view, height: height(spec, width), config: config(spec, width), autosize: { type: "fit", contains: "padding", resize: true } };
}
// Inside a closed fold a chart has no width to fill: it is drawn when the fold opens.
const drawn = new Map();
function draw() {
  for (const [id, spec] of Object.entries(specs)) {
    const place = document.getElementById(id);
    if (place.closest("details:not([open])")) continue;
    const view = laidOut(spec, place.clientWidth), before = drawn.get(id), layout = JSON.stringify(view);
    if (before?.layout === layout) continue;
    const drawing = Object.assign(document.createElement("div"), { ariaHidden: "true" });
    place.replaceChildren(drawing); // The place has a role and a name; those of the marks in it say nothing.
    before?.embedded.then((embedded) => embedded.finalize());
    drawn.set(id, { layout, embedded: vegaEmbed(drawing, { ...view, datasets: spec.datasets }, EMBED) });
  }
}
draw();
for (const fold of document.querySelectorAll("details:has(.chart)")) fold.addEventListener("toggle", draw);
dark.addEventListener("change", draw);
addEventListener("resize", draw);
