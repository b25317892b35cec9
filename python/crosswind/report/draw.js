const specs = JSON.parse(document.getElementById("specs").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
// The names in each legend: of each field once, whatever layer it is in.
function legends(spec) {
  const encodings = [spec, ...(spec.layer ?? [])].map((view) => view.encoding ?? {});
  const channels = encodings.flatMap(({ color, strokeDash }) => [color, strokeDash]);
  const shown = channels.filter((channel) => channel?.scale?.domain && channel.legend !== null);
  return [...new Map(shown.map((channel) => [channel.field, channel.scale.domain])).values()];
}
// The largest number of columns, up to four, with which the legends fit into a chart of `width` pixels.
function columns(spec, width, narrow) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = "12px " + getComputedStyle(document.body).fontFamily;
  const space = width - 80, symbol = 28; // without the axis beside the drawing; a symbol with its margins
  const measured = legends(spec).map((names) => names.map((name) => context.measureText(name).width + symbol));
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const column = (widths, count, at) => Math.max(0, ...widths.filter((_, index) => index % count === at));
  const wide = (widths, count) => sum(Array.from({ length: count }, (_, at) => column(widths, count, at)));
  const fits = (count) => {
    const all = measured.map((widths) => wide(widths, count));
    return (narrow ? Math.max(0, ...all) : sum(all)) <= space;
  };
  return [4, 3, 2].find(fits) ?? 1;
}
function config(spec, width) {
  const css = getComputedStyle(document.documentElement);
  const colour = (name) => css.getPropertyValue(name).trim();
  const narrow = document.body.clientWidth < 600; // legends side by side would be cut off
  const words = { labelColor: colour("--soft"), titleColor: colour("--ink"), labelFontSize: 12, titleFontSize: 12, titleFontWeight: 600 };
  return {
    background: "transparent", font: getComputedStyle(document.body).fontFamily,
    view: { stroke: null }, mark: { color: colour("--accent") },
    axis: { ...words, gridColor: colour("--line"), domainColor: colour("--line"), tickColor: colour("--line") },
    legend: { ...words, columns: columns(spec, width, narrow), symbolStrokeWidth: 2, padding: 0, offset: 8,
      layout: { top: { direction: narrow ? "vertical" : "horizontal" } } },
  };
}
// Inside a closed fold a chart has no width to fill: it is drawn when the fold opens.
function draw(again) {
  for (const [id, spec] of Object.entries(specs)) {
    const place = document.getElementById(id);
    if (place.closest("details:not([open])") || (place.childElementCount && !again)) continue;
    vegaEmbed("#" + id, { ...spec, config: config(spec, place.clientWidth), autosize: { type: "fit", contains: "padding", resize: true } },
      { actions: false, renderer: "svg", ast: false });
  }
}
draw(false);
for (const fold of document.querySelectorAll("details:has(.chart)")) fold.addEventListener("toggle", () => fold.open && draw(false));
dark.addEventListener("change", () => draw(true));
