const specs = JSON.parse(document.getElementById("specs").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function config() {
  const css = getComputedStyle(document.documentElement);
  const colour = (name) => css.getPropertyValue(name).trim();
  const narrow = document.body.clientWidth < 600; // legends side by side would be cut off
  const words = { labelColor: colour("--soft"), titleColor: colour("--ink"), labelFontSize: 12, titleFontSize: 12, titleFontWeight: 600 };
  return {
    background: "transparent", font: getComputedStyle(document.body).fontFamily,
    view: { stroke: null }, mark: { color: colour("--accent") },
    axis: { ...words, gridColor: colour("--line"), domainColor: colour("--line"), tickColor: colour("--line") },
    legend: { ...words, columns: narrow ? 3 : 4, symbolStrokeWidth: 2, padding: 0, offset: 8,
      layout: { top: { direction: narrow ? "vertical" : "horizontal" } } },
  };
}
// Inside a closed fold a chart has no width to fill: it is drawn when the fold opens.
function draw(again) {
  for (const [id, spec] of Object.entries(specs)) {
    const place = document.getElementById(id);
    if (place.closest("details:not([open])") || (place.childElementCount && !again)) continue;
    vegaEmbed("#" + id, { ...spec, config: config(), autosize: { type: "fit", contains: "padding", resize: true } },
      { actions: false, renderer: "svg", ast: false });
  }
}
draw(false);
for (const fold of document.querySelectorAll("details:has(.chart)")) fold.addEventListener("toggle", () => fold.open && draw(false));
dark.addEventListener("change", () => draw(true));
