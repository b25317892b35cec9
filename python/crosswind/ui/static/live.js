// @ts-check
import { complaint, enable, h, renew, table } from "/dom.js";
import { withKey } from "/token.js";

const SHOWN = 120;

/** A host that is really there, as `crosswind live` sees it. @param {string} host @param {(ended: () => void) => void} onLeave */
export function showLive(host, onLeave) {
  const name = h("input", { value: host, autocomplete: "off", required: true });
  const port = h("input", { inputmode: "numeric", pattern: "[0-9]*", autocomplete: "off" });
  const seconds = h("input", { inputmode: "numeric", pattern: "[0-9]+", value: "60", autocomplete: "off" });
  const said = h("div");
  const line = h("p", { "aria-live": "polite" });
  const results = h("div");
  const start = h("button", { class: "main", type: "submit" }, "Watch");
  const stop = h("button", { type: "button", "aria-disabled": "true", onclick: () => end("Stopped.") }, "Stop");
  /** @type {EventSource | null} */
  let source = null;
  let turn = 0;
  const end = (text) => { turn++; source?.close(); source = null; enable(start, true); enable(stop, false); if (text) line.textContent = text; };
  onLeave(() => end(""));

  async function begin(event) {
    event.preventDefault();
    end("");
    const mine = turn;
    said.replaceChildren();
    results.replaceChildren();
    line.textContent = "Starting…";
    enable(start, false);
    enable(stop, true);
    const asked = new URLSearchParams({ host: name.value.trim(), tcp: port.value.trim(), seconds: seconds.value.trim() });
    /** @type {any[]} */
    const windows = [];
    /** @type {string[][]} */
    const events = [];
    const address = await withKey(`/api/live?${asked}`);
    if (mine !== turn) return;
    source = new EventSource(address);
    source.addEventListener("line", (message) => {
      const news = JSON.parse(/** @type {any} */ (message).data);
      if (news.type === "start") line.textContent = `${news.host} (${news.address}), probed by ${news.probe}`;
      if (news.type === "window") windows.push(news);
      if (news.type === "event") events.push([at(news.at_ns), news.text]);
      if (news.type === "window" || news.type === "event") {
        renew(results, drawn(windows.slice(-SHOWN)),
          table(["until", "sent", "lost", "median", "95 % below", "jitter"], windows.slice(-10).reverse().map((one) =>
            [at(one.end_ns), String(one.sent), String(one.lost), ms(one.median?.value), ms(one.p95?.value), ms(one.jitter_ns)])),
          events.length ? table(["at", "event"], events.slice(-20).reverse()) : "");
      }
      if (news.type === "end") {
        const loss = news.loss?.value ?? null;
        line.textContent = `Over: ${news.answered} of ${news.sent} probes answered${loss === null ? "" : `, loss ${(100 * loss).toPrecision(2)} %`}, `
          + `median ${ms(news.median?.value)}, 95 % below ${ms(news.p95?.value)}.`;
      }
    });
    source.addEventListener("problem", (message) => {
      end(" ");
      said.replaceChildren(complaint(JSON.parse(/** @type {any} */ (message).data)));
    });
    source.addEventListener("over", () => end(""));
    source.onerror = () => {
      if (source) end("The server does not answer.");
    };
  }

  const field = (label, help, control) => h("label", { class: "field" }, h("span", {}, label), control, h("small", {}, help));
  return [h("h1", {}, "Live"), h("p", { class: "help" }, "Loss and round-trip time of a host that is really there; it needs no software."),
    h("form", { class: "row", onsubmit: begin },
      field("Host", "a name or an address", name),
      field("TCP port", "empty: ICMP echo", port),
      field("Seconds", "at most 3600", seconds),
      h("div", { class: "buttons" }, start, stop)),
    said, line, results];
}

const at = (ns) => `${(ns / 1e9).toFixed(0)} s`;
const ms = (ns) => ns === null || ns === undefined ? "–" : ns < 1e6 ? `${(ns / 1e3).toPrecision(3)} µs` : `${(ns / 1e6).toPrecision(3)} ms`;

const NS = "http://www.w3.org/2000/svg";

/** Medians as a line, lost probes as bars below. */
function drawn(windows) {
  const [width, height] = [600, 140];
  const picture = document.createElementNS(NS, "svg");
  const draw = (tag, attributes) => {
    const element = document.createElementNS(NS, tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    picture.append(element);
  };
  const medians = windows.map((one) => one.median?.value ?? null);
  const most = Math.max(...medians.filter((value) => value !== null), 1);
  const step = width / Math.max(windows.length, 20);
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("class", "live");
  picture.setAttribute("role", "img");
  const lost = windows.reduce((sum, one) => sum + one.lost, 0);
  picture.setAttribute("aria-label", `Median round-trip times of ${windows.length} windows, up to ${ms(most)}; ${lost} probes lost`);
  windows.forEach((one, index) => {
    if (one.lost) draw("rect", { class: "lost", x: index * step, width: step - 1, y: 0, height });
  });
  const points = medians.map((value, index) => value === null ? null : `${(index + 0.5) * step},${height - 4 - value / most * (height - 24)}`);
  draw("polyline", { class: "line", points: points.filter(Boolean).join(" ") });
  return h("figure", {}, picture, h("figcaption", { class: "help" }, `Median of each second, up to ${ms(most)}; shaded where probes were lost`));
}
