// The page of `crosswind ui` by the keyboard alone: nothing here moves or clicks a mouse.
import { expect, test } from "@playwright/test";

/** As `crosswind ui` prints it. */
const ADDRESS = process.env.ADDRESS;
const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

/** More than the form can say, and more repetitions than end before they are stopped. */
const STUDY = `title = "Stopped"
[path]
delay = "10ms"
loss = "2%"
[workload]
kind = "echo"
transport = ["tcp", "websocket"]
[host]
clock = "virtual"
[study]
repetitions = 1000
`;

/** What has the focus, and what is wrong with how that is shown. */
function focused(page) {
  return page.evaluate(() => {
    const element = /** @type {HTMLElement} */ (document.activeElement);
    const label = element.closest("label");
    const name = element.getAttribute("aria-label") ?? (label ? label.querySelector("span") ?? label : element).textContent ?? "";
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    const [left, top] = [Math.max(box.left, 0), Math.max(box.top, 0)];
    const [right, bottom] = [Math.min(box.right, innerWidth), Math.min(box.bottom, innerHeight)];
    const above = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    const wrong = outlineStyle === "none" || parseFloat(outlineWidth) < 2 ? "no ring"
      : right <= left || bottom <= top ? "not in sight"
      : !element.contains(above) && above !== label && !label?.contains(above) ? `below ${above?.outerHTML.slice(0, 80)}` : "";
    return { tag: element.localName, name: name.trim().slice(0, 60), wrong, text: element.textContent ?? "" };
  });
}

/** Presses Tab until something of this name has the focus; all on the way has to be seen. */
async function tabTo(page, name, key = "Tab") {
  const seen = [];
  for (let times = 0; times < 80; times++) {
    await page.keyboard.press(key);
    const { tag, name: here, wrong } = await focused(page);
    if (tag !== "body") expect(wrong, here).toBe("");
    seen.push(here);
    if (here.startsWith(name)) return;
  }
  throw new Error(`${key} does not come to ${name}: ${seen.join(", ")}`);
}

/** What Tab comes to, one after another, until it leaves the page or comes back. */
async function walk(page, key) {
  const names = [];
  await page.evaluate(() => { globalThis.walked = new Set([document.body]); });
  for (;;) {
    await page.keyboard.press(key);
    const isNew = await page.evaluate(() => globalThis.walked.size < globalThis.walked.add(document.activeElement).size);
    if (!isNew) return names;
    const { name, wrong } = await focused(page);
    expect(wrong, name).toBe("");
    names.push(name);
  }
}

async function open(page, hash) {
  await page.goto("about:blank");
  await page.goto(`${ADDRESS}${hash}`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
}

const READY = {
  "#/runs": (page) => page.getByRole("searchbox"),
  "#/new": (page) => page.locator(".banner.good"),
  "#/path": (page) => page.getByRole("heading", { name: "Measured" }),
  "#/live": (page) => page.getByRole("button", { name: "Watch" }),
  "#/networks": (page) => page.locator("summary").first(),
  "#/studies": (page) => page.getByRole("table"),
};

for (const [width, colorScheme] of [[1280, "light"], [360, "dark"]]) {
  test(`each page is walked through both ways, ${width} pixels, ${colorScheme}`, async ({ page }) => {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    await open(page, "#/runs");
    const run = await page.getByRole("link", { name: /^keyboard-/ }).getAttribute("href");
    for (const [hash, ready] of Object.entries({ ...READY, [run]: (here) => here.locator(".heat td", { hasText: "ms" }).first() })) {
      await open(page, hash);
      await expect(ready(page)).toBeVisible();
      const there = await walk(page, "Tab");
      const inOrder = await page.locator(FOCUSABLE).evaluateAll((all) => all.filter((one) => one.tabIndex >= 0 && one.checkVisibility()).length);
      expect(there.slice(0, 2), hash).toEqual(["To the content", "Runs"]);
      expect(there.length, hash).toBe(inOrder);
      expect(await walk(page, "Shift+Tab"), hash).toEqual(there.reverse());
    }
  });
}

test("runs are filtered, and a report is opened", async ({ page, context }) => {
  await open(page, "#/runs");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter"); // To the content
  expect((await focused(page)).tag).toBe("main");
  expect(page.url()).toContain("#/runs");
  await tabTo(page, "Filter");
  await page.keyboard.type("no such run");
  await expect(page.getByRole("status")).toHaveText("0 of 1 run");
  await expect(page.getByRole("link", { name: /^keyboard-/ })).toBeHidden();
  await page.keyboard.press("Escape");
  await page.keyboard.type("KEYBOARD done");
  await expect(page.getByRole("status")).toHaveText("1 of 1 run");
  await page.keyboard.press("Tab"); // the table
  await page.keyboard.press("Tab"); // its tick
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(page).toHaveTitle("Four cells · Crosswind");
  expect((await focused(page)).tag).toBe("main");

  await expect(page.locator(".heat td", { hasText: "ms" })).toHaveCount(4);
  const cell = () => page.evaluate(() => document.activeElement.title.split(":")[0]);
  await tabTo(page, "Message, from 1");
  await page.keyboard.press("Tab"); // Explain this message
  await page.keyboard.press("Tab");
  const moves = [["ArrowRight", 2], ["ArrowDown", 3], ["ArrowLeft", 1], ["ArrowUp", 0], ["Control+End", 3], ["Home", 1], ["PageUp", 0], ["End", 2],
    ["PageDown", 3], ["Control+Home", 0], ["ArrowLeft", 0], ["ArrowDown", 1], ["ArrowRight", 3]];
  expect(await cell()).toBe("cell 0");
  for (const [key, to] of moves) {
    await page.keyboard.press(key);
    expect(await cell(), key).toBe(`cell ${to}`);
    expect((await focused(page)).wrong).toBe("");
  }
  await page.keyboard.press("Enter");
  await expect(page.getByLabel("Cell, from 0")).toHaveValue("3");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Tab");
  expect(await cell()).toBe("cell 3");

  await tabTo(page, "Report", "Shift+Tab");
  const opened = context.waitForEvent("page");
  await page.keyboard.press("Enter");
  const report = await opened;
  await expect(report.getByRole("heading", { level: 1 })).toHaveText("Four cells");
  await report.keyboard.press("Tab");
  expect((await focused(report)).wrong).toBe("");
});

test("a study is made, changed, started, stopped and removed", async ({ page }) => {
  await open(page, "#/runs");
  await tabTo(page, "New study");
  await page.keyboard.press("Enter");
  const toml = page.getByLabel("The study as TOML");
  const start = page.getByRole("button", { name: "Start" });
  await expect(start).toHaveAttribute("aria-disabled", "false");
  await tabTo(page, "Compared with what");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("tcp,websocket");
  await expect(toml).toHaveValue(/"websocket"/);
  await expect(start).toHaveAttribute("aria-disabled", "false");
  expect((await focused(page)).name).toBe("Compared with what");
  for (const [field, text] of [["How sure", "400"], ["Loss of each direction", "2%"]]) {
    await tabTo(page, field);
    await page.keyboard.press("Control+A");
    await page.keyboard.type(text);
  }
  await expect(toml).toHaveValue(/loss = "2%"/);

  // What the form cannot say closes it; the button that opens it again hands the focus on to it.
  const write = async () => {
    await tabTo(page, "The study as TOML");
    await page.keyboard.press("Control+A");
    await page.keyboard.type(STUDY);
    await expect(page.getByText("The TOML says more than the form can")).toBeVisible();
    expect((await focused(page)).name).toBe("The study as TOML");
  };
  await write();
  await page.keyboard.press("Shift+Tab");
  expect((await focused(page)).name).toBe("Write the TOML anew from the form");
  await page.keyboard.press("Enter");
  await expect(page.getByText("The TOML says more than the form can")).toBeHidden();
  expect((await focused(page)).name).toBe("What");
  await write();

  // An error leads to its line, and the focus goes there.
  await page.keyboard.type("[nonsense]");
  await expect(page.getByText("nonsense: unknown table")).toBeVisible();
  await tabTo(page, "Go to line");
  await page.keyboard.press("Enter");
  expect((await focused(page)).name).toBe("The study as TOML");
  await page.keyboard.type("# ");
  await expect(start).toHaveAttribute("aria-disabled", "false");

  await tabTo(page, "Start");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/#\/run\/my-study-/);
  await expect(page.getByRole("status").first()).toHaveText("running");
  await expect(page.locator(".heat td", { hasText: "ms" }).first()).toBeVisible();

  // News takes the focus from nothing.
  await tabTo(page, "Last repetitions");
  const rows = page.getByRole("region", { name: "Last repetitions" }).getByRole("row");
  const before = await rows.count();
  await expect.poll(() => rows.count()).toBeGreaterThan(before);
  expect((await focused(page)).name).toBe("Last repetitions");
  await tabTo(page, "Stop", "Shift+Tab");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("status").first()).toHaveText("interrupted");
  expect((await focused(page)).name).toBe("Stop");

  await tabTo(page, "Remove");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  expect((await focused(page)).name).toBe("Cancel");
  await page.keyboard.press("Tab");
  expect(await dialog.evaluate((it) => it.contains(document.activeElement))).toBe(true);
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
  expect((await focused(page)).name).toBe("Remove");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/#\/runs/);
  await expect(page.getByRole("link", { name: /^my-study-/ })).toHaveCount(0);
});

test("a path by hand is moved", async ({ page }) => {
  await open(page, "#/runs");
  await tabTo(page, "Path by hand");
  await page.keyboard.press("Enter");
  const median = page.getByRole("row", { name: /^tcp/ }).getByRole("cell").nth(2);
  const text = await median.textContent();
  await tabTo(page, "Delay, one way");
  await page.keyboard.press("End");
  await expect(page.getByRole("slider", { name: "Delay, one way" })).toHaveValue("300");
  await expect(median).not.toHaveText(text ?? "");
  expect((await focused(page)).name).toBe("Delay, one way");
  await tabTo(page, "Loss of each direction");
  for (const key of ["PageUp", "ArrowRight", "ArrowLeft", "Home", "ArrowUp"]) await page.keyboard.press(key);
  await expect(page.getByRole("slider", { name: "Loss of each direction" })).toHaveAttribute("aria-valuetext", "0.5 %");

  // Who reads the numbers when new ones come goes on reading.
  let answer = () => {};
  const asked = new Promise((done) => { answer = done; });
  await expect(page.getByText("Measuring…")).toHaveCount(0);
  await page.route("**/api/path", async (route) => { await asked; await route.continue(); });
  const slow = await median.textContent();
  await tabTo(page, "Delay, one way", "Shift+Tab");
  await page.keyboard.press("Home");
  await tabTo(page, "transport, , median, transfers that arrived");
  answer();
  await expect(median).not.toHaveText(slow ?? "");
  expect((await focused(page)).name).toBe("transport, , median, transfers that arrived");
});

test("a host is watched", async ({ page }) => {
  await open(page, "#/live");
  for (const [field, words] of [["Host", "127.0.0.1"], ["TCP port", new URL(ADDRESS).port], ["Seconds", "5"]]) {
    await tabTo(page, field);
    await page.keyboard.press("Control+A");
    await page.keyboard.type(words);
  }
  await page.keyboard.press("Enter"); // in the form's last field
  await expect(page.getByRole("table")).toBeVisible();
  await tabTo(page, "until, sent, lost, median, 95 % below, jitter");
  const rows = page.getByRole("row");
  const before = await rows.count();
  await expect.poll(() => rows.count()).toBeGreaterThan(before);
  expect((await focused(page)).name).toBe("until, sent, lost, median, 95 % below, jitter");
  await tabTo(page, "Stop", "Shift+Tab");
  await page.keyboard.press("Enter");
  await expect(page.getByText("Stopped.")).toBeVisible();
  expect((await focused(page)).name).toBe("Stop");
});
