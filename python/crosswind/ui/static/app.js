// @ts-check
import { agreed, announce, ask, complaint, count, enable, h, renew, table } from "/dom.js";
import { heatMap } from "/heat.js";
import { showLive } from "/live.js";
import { withKey } from "/token.js";

const page = /** @type {HTMLElement} */ (document.getElementById("page"));
/** Ends what the page before has left open. */
let leave = () => {};
let shown = 0;

const PAGES = { runs: showRuns, run: showRun, new: showNew, path: showPath, live: (host) => showLive(host, (ended) => { leave = ended; }), networks: showNetworks, studies: showStudies };

async function show() {
  const [, name = "runs", argument = ""] = location.hash.split("/").map(decodeURIComponent);
  const number = ++shown;
  leave();
  leave = () => {};
  for (const link of document.querySelectorAll("nav.top a")) {
    if (link.getAttribute("href") === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const patience = setTimeout(() => page.replaceChildren(h("p", { role: "status" }, "Loading…")), 200);
  try {
    const content = await (PAGES[name] ?? showRuns)(argument);
    if (number !== shown) return;
    page.replaceChildren(...content);
    entitle(content[0].textContent);
  } catch (problem) {
    if (number === shown) page.replaceChildren(complaint(problem.error ? problem : { error: String(problem) }));
  } finally {
    clearTimeout(patience);
  }
}

/** The title of the browser's window. @param {string} text */
function entitle(text) {
  document.title = `${text} · Crosswind`;
}

/** Does something, and says what went wrong. @param {HTMLElement} where @param {() => Promise<void>} action */
async function attempt(where, action) {
  where.replaceChildren();
  try {
    await action();
  } catch (problem) {
    where.replaceChildren(complaint(problem.error ? problem : { error: String(problem) }));
  }
}

async function showRuns() {
  const runs = await ask("/api/runs");
  const said = h("div");
  const choice = () => [...page.querySelectorAll("tr:not([hidden]) input[name=run]:checked")].map((box) => /** @type {any} */ (box).value);
  const compare = h("button", { onclick: async () => {
    const [second, first] = choice();
    if (choice().length === 2) open(await withKey(`/compare?${new URLSearchParams({ a: first, b: second })}`));
    else said.replaceChildren(complaint({ error: "Two runs can be compared.", hint: "tick two of them" }));
  } }, "Compare two");
  const rows = runs.map((run) => run.problem
    ? ["", run.name, run.problem, "", "", "", "", ""]
    : [
      h("input", { type: "checkbox", name: "run", value: run.name, "aria-label": `Choose ${run.name}` }),
      h("a", { href: `#/run/${encodeURIComponent(run.name)}` }, run.name),
      run.title, h("div", { class: "answer" }, run.answer || "–"), run.status, `${run.done}/${run.planned}`, run.started, run.size,
    ]);
  const listed = table([h("span", { class: "unseen" }, "choose"), "run", "title", "answer", "status", "repetitions", "started (UTC)", "size"], rows);
  const found = h("p", { class: "help", role: "status" });
  const words = h("input", { type: "search", autocomplete: "off", oninput: () => {
    const asked = words.value.toLowerCase().split(/\s+/);
    const lines = [...listed.querySelectorAll("tbody tr")];
    for (const line of lines) line.hidden = !asked.every((word) => line.textContent.toLowerCase().includes(word));
    announce(found, words.value ? `${lines.filter((line) => !line.hidden).length} of ${count(runs.length, "run")}` : "");
  } });
  return [
    h("h1", {}, "Runs"),
    runs.length ? h("label", { class: "field filter" }, h("span", {}, "Filter"), words, h("small", {}, "words of name, title, answer or status")) : null,
    found,
    runs.length
      ? listed
      : h("p", {}, "There are no runs yet. ", h("a", { href: "#/new" }, "Start a study"), "."),
    runs.length ? h("div", { class: "buttons" }, compare) : null,
    said,
  ].filter(Boolean);
}

/** @param {string} name */
async function showRun(name) {
  const number = shown;
  const address = `/api/runs/${encodeURIComponent(name)}`;
  const pages = `/runs/${encodeURIComponent(name)}`;
  const [events, ...links] = await Promise.all([`${address}/events`, `${pages}/report`, `${pages}/explain`].map(withKey));
  if (number !== shown) return [];
  const [title, said, line] = [h("h1", {}, name), h("div"), h("p")];
  const status = h("p", { class: "unseen", role: "status" });
  const [bar, heat, log] = [h("progress", { max: 1, value: 0, "aria-label": "Repetitions done" }), h("div"), h("pre", { tabindex: 0, role: "region", "aria-label": "Log" })];
  const ended = h("tbody");
  const button = (text, path, attributes = {}) =>
    h("button", { ...attributes, onclick: () => attempt(said, async () => { await ask(`${address}/${path}`, {}); }) }, text);
  const [stop, resume] = [button("Stop", "stop"), button("Resume", "resume")];
  const remove = h("button", { onclick: async () => {
    if (!await agreed(`Remove ${name} and all that it measured?`, "Remove")) return;
    await attempt(said, async () => { await ask(`${address}/remove`, {}); location.hash = "#/runs"; });
  } }, "Remove");
  const [report, explain] = ["Report", "Explain the slowest"].map((text, at) => h("a", { href: links[at], target: "_blank", rel: "noopener" }, text));
  const which = {
    cell: h("input", { type: "number", min: 0, value: 0, "aria-label": "Cell, from 0" }),
    repetition: h("input", { type: "number", min: 1, value: 1, "aria-label": "Repetition, from 1" }),
    message: h("input", { type: "number", min: 1, value: 1, "aria-label": "Message, from 1" }),
  };
  const choose = h("form", { class: "buttons", hidden: true, onsubmit: async (event) => {
    event.preventDefault();
    const asked = new URLSearchParams({ cell: which.cell.value });
    for (const key of ["repetition", "message"]) asked.set(key, String(which[key].value - 1));
    open(await withKey(`${pages}/explain?${asked}`), "_blank", "noopener");
  } }, h("label", {}, "Cell ", which.cell), h("label", {}, "repetition ", which.repetition), h("label", {}, "message ", which.message),
    h("button", { type: "submit" }, "Explain this message"));
  /** @type {ReturnType<typeof heatMap> | null} */
  let map = null;

  const source = new EventSource(events);
  const on = (event, handle) => source.addEventListener(event, (message) => handle(JSON.parse(/** @type {any} */ (message).data)));
  leave = () => source.close();
  on("plan", (plan) => {
    map = heatMap(plan, (cell) => { which.cell.value = String(cell); }, map?.entered());
    renew(heat, map.element);
    which.cell.max = String(plan.cells.length - 1);
  });
  on("state", (run) => {
    title.textContent = run.title;
    entitle(run.title);
    announce(status, run.status);
    bar.max = run.planned;
    bar.value = run.done;
    const left = run.left === null ? "" : `, about ${run.left} left`;
    line.textContent = `${run.status}: ${run.done.toLocaleString("en")} of ${count(run.planned, "repetition")}${left}; ${run.size}; started ${run.started} UTC`;
    const running = run.status === "running";
    enable(stop, running);
    enable(resume, !running && run.status !== "done");
    enable(remove, !running);
    for (const anchor of [report, explain]) anchor.hidden = run.done === 0;
    choose.hidden = run.done === 0;
  });
  on("cells", (cells) => map?.fill(cells));
  on("ended", (all) => {
    const rows = all.slice(-50).reverse().map((end) => h("tr", {},
      ...[end.at, end.text, end.state, end.outcome].map((text) => h("td", { class: "word" }, text)), h("td", { class: "word long" }, end.why)));
    ended.prepend(...rows);
    while (ended.children.length > 50) ended.lastChild?.remove();
  });
  on("log", (text) => { log.textContent = text; log.scrollTop = log.scrollHeight; });
  on("problem", (problem) => { source.close(); said.replaceChildren(complaint(problem)); });
  source.onerror = () => { line.textContent = "The server does not answer; the run goes on without it."; };
  return [
    title, line, status, bar,
    h("div", { class: "buttons" }, stop, resume, remove, report, explain), choose,
    said,
    h("h2", {}, "Cells"), h("p", { class: "help" }, "The mean so far of what is measured first; the darker, the more. Arrow keys move; Enter takes a cell to be explained."), heat,
    h("h2", {}, "Last repetitions"),
    h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Last repetitions" }, h("table", {}, h("thead", {}, h("tr", {},
      ...["ended (UTC)", "repetition", "state", "exchanges", "why"].map((head) => h("th", { scope: "col", class: "word" }, head)))), ended)),
    h("h2", {}, "Log"), log,
  ];
}

/** @param {string} builtin the built-in study to begin with */
async function showNew(builtin) {
  const choices = await ask("/api/choices");
  /** Of this tab: another one has a study of its own. */
  const draft = `draft ${builtin}`;
  const field = (label, help, control) => h("label", { class: "field" }, h("span", {}, label), control, h("small", {}, help));
  const what = h("select", {}, ...Object.entries(choices.what).map(([name, one]) => h("option", { value: name }, `${name}: ${one.asked}`)));
  const names = h("datalist", { id: "networks" }, ...choices.networks.map((network) => h("option", { value: network.name })));
  const network = h("input", { list: "networks", value: "4g", autocomplete: "off" });
  const compare = h("input", { value: "tcp,quic", autocomplete: "off" });
  const sure = h("input", { value: "5%", autocomplete: "off" });
  const loss = h("input", { value: "", autocomplete: "off" });
  const controls = { what, network, compare, sure, loss };
  const fields = h("fieldset", {},
    field("What", "what one sample is", what),
    field("Over which network", "one or more, with commas between", network), names,
    field("Compared with what", "transports, networks, loss as 0%,2%, KEY=LEVELS, or nothing", compare),
    field("How sure", "5% of the mean, 2ms, or a number of repetitions", sure),
    field("Loss of each direction", "beside what is compared, as 1%; empty: the network's", loss));
  const formSaid = h("p", { class: "help", "aria-live": "polite" });
  const again = h("button", { hidden: true, onclick: () => fromForm() }, "Write the TOML anew from the form");
  const text = h("textarea", { spellcheck: "false", "aria-label": "The study as TOML", "aria-describedby": "check" });
  const check = h("div", { id: "check", "aria-live": "polite" });
  const quick = h("input", { type: "checkbox" });
  const name = h("input", { value: builtin || "my-study", pattern: "[a-z0-9][a-z0-9-]{0,59}", "aria-label": "Name of the study" });
  const on = h("input", { autocomplete: "off", placeholder: "this machine", "aria-label": "Cluster: local:4, tcp://HOST:PORT, slurm:8; empty: this machine" });
  const said = h("div");
  const start = h("button", { class: "main", "aria-disabled": "true", onclick: () => attempt(said, async () => {
    enable(start, false);
    try {
      const run = await ask("/api/runs", { toml: text.value, name: name.value, quick: quick.checked, on: on.value });
      location.hash = `#/run/${encodeURIComponent(run.name)}`;
    } finally {
      enable(start, true);
    }
  }) }, "Start");
  let waiting = 0;
  let asked = new AbortController();
  const soon = (action) => { clearTimeout(waiting); enable(start, false); waiting = setTimeout(action, 300); };

  async function fromForm() {
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    try {
      const form = Object.fromEntries(Object.entries(controls).map(([key, control]) => [key, control.value]));
      text.value = (await ask("/api/form", form, signal)).toml;
      await fromText();
    } catch (problem) {
      if (!signal.aborted) renew(check, complaint(problem));
    }
  }

  async function fromText() {
    sessionStorage.setItem(draft, text.value);
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    let found;
    try {
      found = await ask("/api/check", { toml: text.value, quick: quick.checked }, signal);
    } catch (problem) {
      if (!signal.aborted) renew(check, complaint(problem));
      return;
    }
    if (signal.aborted) return;
    const follows = found.form !== null;
    // What goes away hands its focus on.
    const [inFields, onButton] = [fields.contains(document.activeElement), document.activeElement === again];
    fields.disabled = !follows;
    if (follows && onButton) what.focus();
    again.hidden = follows;
    if (!follows && inFields) again.focus();
    formSaid.textContent = follows ? "" : "The TOML says more than the form can: edit it there.";
    if (follows) {
      for (const [key, control] of Object.entries(controls)) {
        if (control !== document.activeElement) control.value = found.form[key];
      }
    }
    enable(start, !found.error);
    renew(check, ...(found.error ? wrong(found) : forecast(found.plan)));
  }

  function wrong(found) {
    const line = Number(/^study\.toml:(\d+)/.exec(found.error)?.[1] ?? 0);
    const go = () => {
      const lines = text.value.split("\n");
      const before = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
      text.focus();
      text.setSelectionRange(before, before + (lines[line - 1] ?? "").length);
    };
    return [complaint(found), line ? h("button", { onclick: go }, `Go to line ${line}`) : null].filter(Boolean);
  }

  function forecast(plan) {
    const { cells, repetitions, time, packets, disk } = plan.forecast;
    return [
      h("p", { class: "banner good" }, `${count(cells, "cell")}, ${count(repetitions, "repetition")}: about ${time}, ${packets} packets, ${disk} of disk.`),
      ...plan.warnings.map((warning) => h("p", { class: "banner doubtful" }, warning)),
    ];
  }

  what.addEventListener("change", () => { compare.value = choices.what[what.value].compare; });
  for (const control of Object.values(controls)) control.addEventListener("input", () => soon(fromForm));
  text.addEventListener("input", () => soon(fromText));
  quick.addEventListener("change", () => soon(fromText));
  leave = () => { clearTimeout(waiting); asked.abort(); };
  const kept = sessionStorage.getItem(draft);
  if (kept) {
    text.value = kept;
    fromText();
  } else if (builtin) {
    text.value = (await ask(`/api/studies/${encodeURIComponent(builtin)}`)).toml;
    fromText();
  } else fromForm();
  return [
    h("h1", {}, "New study"),
    h("div", { class: "two" },
      h("div", {}, fields, formSaid, again),
      h("div", {}, text, check,
        h("div", { class: "buttons" }, h("label", {}, quick, " a quick first look"), h("label", {}, "name ", name), h("label", {}, "run on ", on), start), said)),
  ];
}

const SLIDERS = {
  delay: { label: "Delay, one way", unit: "ms", max: 300, value: 20, step: 1 },
  jitter: { label: "Jitter", unit: "ms", max: 50, value: 0, step: 1 },
  loss: { label: "Loss of each direction", unit: "%", max: 10, value: 0, step: 0.5 },
  rate: { label: "Rate, 0 is unlimited", unit: "Mbit/s", max: 100, value: 10, step: 1 },
  queue: { label: "Queue before the link, 0 is the usual one", unit: "packets", max: 500, value: 100, step: 10 },
};

async function showPath() {
  const results = h("div");
  const said = h("p", { class: "help" }, "Measuring…");
  const status = h("p", { class: "unseen", role: "status" });
  /** @type {Record<string, any>} */
  const inputs = {};
  const fields = Object.entries(SLIDERS).map(([name, { label, unit, ...range }]) => {
    const shown = h("b", {}, `${range.value} ${unit}`);
    inputs[name] = h("input", { type: "range", min: 0, ...range, "aria-label": label, "aria-valuetext": `${range.value} ${unit}`, oninput: () => {
      shown.textContent = `${inputs[name].value} ${unit}`;
      inputs[name].setAttribute("aria-valuetext", shown.textContent);
      measure();
    } });
    return h("label", { class: "field" }, h("span", {}, label, ": ", shown), inputs[name]);
  });
  const asked = new AbortController();
  let [measuring, moved] = [false, false];

  /** One path at a time: what is moved meanwhile is measured next, and only the last of it. */
  async function measure() {
    moved = true;
    if (measuring) return;
    measuring = true;
    said.textContent = "Measuring…";
    while (moved && !asked.signal.aborted) {
      moved = false;
      try {
        const path = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, Number(input.value)]));
        show(await ask("/api/path", path, asked.signal));
      } catch (problem) {
        if (!asked.signal.aborted) renew(results, complaint(problem.error ? problem : { error: String(problem) }));
      }
    }
    measuring = false;
    said.textContent = "";
  }

  function show({ measured, models }) {
    const most = Math.max(...[...measured, ...models].map((row) => row.ns ?? 0));
    const rows = (all) => all.map((row) => [row.name, h("meter", { max: most, value: row.ns ?? 0, "aria-hidden": "true" }), row.text, row.of]);
    renew(results,
      h("h2", {}, "Measured"), table(["transport", "", "median", "transfers that arrived"], rows(measured)),
      h("h2", {}, "Models of TCP"), table(["model", "", "mean", "what it is"], rows(models)));
    if (!moved) announce(status, measured.map((row) => `${row.name}: ${row.text}`).join(", "));
  }

  leave = () => asked.abort();
  measure();
  return [h("h1", {}, "A path by hand"), h("p", { class: "help" },
    "How long a download of 100 kB takes, from asking for its own connection to the last byte: five on the kernel's own stack in virtual time; and what models of TCP say of it behind the handshake."),
    h("div", { class: "two" }, h("div", {}, ...fields), h("div", {}, said, status, results))];
}

async function showNetworks() {
  const { networks } = await ask("/api/choices");
  return [h("h1", {}, "Networks"), ...networks.map((network) => h("details", {},
    h("summary", {}, h("b", {}, network.name), ` ${network.what}`),
    ...Object.entries(network.keys).map(([hop, keys]) => table([hop || "key", "value"], Object.entries(keys))),
    h("ul", { class: "foot" }, ...network.sources.map((source) => h("li", {}, source)))))];
}

async function showStudies() {
  const { studies } = await ask("/api/choices");
  return [h("h1", {}, "Studies"), table(["study", "title"], studies.map((study) =>
    [h("a", { href: `#/new/${encodeURIComponent(study.name)}` }, study.name), study.title]))];
}

/** @type {HTMLElement} */ (document.querySelector(".skip")).addEventListener("click", (event) => {
  event.preventDefault();  // The address says which page is shown.
  page.focus();
});
addEventListener("hashchange", async () => { await show(); page.focus(); });
show();
