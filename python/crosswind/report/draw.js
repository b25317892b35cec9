const specs = JSON.parse(document.getElementById("specs").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function config() {
  const css = getComputedStyle(document.documentElement);
  const colour = (name) => css.getPropertyValue(name).trim();
  const words = { labelColor: colour("--soft"), titleColor: colour("--ink"), labelFontSize: 12, titleFontSize: 12, titleFontWeight: 600 };
  return {
    background: "transparent", font: getComputedStyle(document.body).fontFamily,
    view: { stroke: null }, mark: { color: colour("--accent") },
    axis: { ...words, gridColor: colour("--line"), domainColor: colour("--line"), tickColor: colour("--line") },
    legend: { ...words, columns: 4, symbolStrokeWidth: 2, padding: 0, offset: 8 },
  };
}
function draw() {
  for (const [id, spec] of Object.entries(specs)) {
    vegaEmbed("#" + id, { ...spec, config: config(), autosize: { type: "fit", contains: "padding", resize: true } },
      { actions: false, renderer: "svg", ast: false });
  }
}
draw();
dark.addEventListener("change", draw);
