/**
 * Playwright tests on an emulated path: browser and test on one host, a server on another.
 *
 * Outside, a test that `onPath` wraps has `crosswind exec` start Playwright for this test alone on the client's host. There
 * it is the test itself. So in virtual time everything in it is on the path's clock, the browser as Playwright's timeouts.
 */
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { test as base } from "@playwright/test";

export { expect } from "@playwright/test";

const host = process.env.CROSSWIND_TEST_HOST;
const port = Number(process.env.CROSSWIND_TEST_PORT || 0);
const url = `http://server:${port}`;

const option = (value) => [value, { option: true }];

export const test = base.extend({
  server: option(""),
  network: option(""),
  delay: option(""),
  loss: option(""),
  rate: option(""),
  queue: option(""),
  clock: option("virtual"),
  hops: option([]),
  changes: option([]),
  beside: option([]),
  repetitions: option(1),
  seed: option(1),
  failIf: option([]),
  environment: option([]),
  settings: option({}),

  asked: async ({ server, network, delay, loss, rate, queue, clock, hops, changes, beside, repetitions, seed, failIf, environment, settings }, use) => {
    await use({ server, failIf, environment, repeated: { hop: hops, at: changes, beside },
      options: { network, delay, loss, rate, queue, clock, repetitions, seed, ...settings } });
  },

  /** Inside: where the server is, and how long each exchange took, in seconds, as far as the test says so. */
  net: async ({}, use, testInfo) => {
    const times = [];
    await use({ address: host, port, url, times });
    await testInfo.attach("crosswind-times", { body: JSON.stringify(times), contentType: "application/json" });
  },

  baseURL: async ({ baseURL }, use) => { await use(host ? baseURL ?? url : baseURL); },
});

/** The body of a test, which runs on the path. */
export function onPath(body) {
  return host ? body : async ({ asked }, testInfo) => { await run(asked, testInfo); };
}

/** A hook of tests on a path, which has nothing to do outside. */
export function inside(hook) {
  return host ? hook : async () => {};
}

async function run({ server, options, repeated, failIf, environment }, testInfo) {
  testInfo.setTimeout(0); // Inside, the test has its own; the path has its --timeout.
  const kept = process.env.CROSSWIND_REPORT;
  const directory = kept ? join(kept, testInfo.testId) : testInfo.outputPath("run");
  const words = ["exec", "--json", "--output", directory];
  for (const [name, value] of Object.entries(options)) {
    if (value !== "") words.push(`--${name.replaceAll("_", "-")}`, String(value));
  }
  for (const [name, values] of Object.entries(repeated)) {
    for (const value of values) words.push(`--${name}`, value);
  }
  if (server) words.push("--server", server);
  const ended = await crosswind([...words, "--", ...commandOf(testInfo, Boolean(server), environment)]);
  let result;
  try {
    result = JSON.parse(ended.errors.trimEnd().split("\n").at(-1));
  } catch {
    throw new Error(`crosswind ended with exit status ${ended.status}\n${ended.errors}`);
  }
  await testInfo.attach("crosswind", { body: JSON.stringify(result, null, 1), contentType: "application/json" });
  for (const repetition of result.repetitions) {
    for (const text of [...repetition.reasons, ...repetition.warnings.map((warning) => warning.text)]) {
      testInfo.annotations.push({ type: "crosswind", description: text });
    }
  }
  if (result.exit_status !== 0) throw new Error(`on the path, ${directory}:\n${ended.errors.split("\n").slice(0, -2).join("\n")}`);
  if (failIf.length || kept) await judge(directory, failIf, kept);
}

/** Every condition has to pass. */
async function judge(directory, failIf, kept) {
  const html = kept ? ["--html", join(directory, "report.html")] : [];
  const { output, errors } = await crosswind(["report", directory, "--json", ...html, ...failIf.flatMap((each) => ["--fail-if", each])]);
  if (!output) throw new Error(errors);
  const failed = JSON.parse(output).thresholds.filter(({ verdict }) => verdict !== "pass");
  if (failed.length) throw new Error(failed.map(({ sentence }) => sentence).join("\n"));
}

/** Playwright, for one test and with no more than that needs. */
function commandOf(testInfo, hasPort, environment) {
  const { configFile, rootDir } = testInfo.config;
  const playwright = createRequire(configFile ?? join(rootDir, "any.js")).resolve("@playwright/test/cli");
  const title = testInfo.titlePath.map(pattern).join(" ");
  return [
    "env", "CROSSWIND_TEST_HOST={address}", `CROSSWIND_TEST_PORT=${hasPort ? "{port}" : ""}`,
    ...environment.map((name) => `${name}=${process.env[name] ?? ""}`),
    process.execPath, playwright, "test", "--grep", `(^| )${title}( @.*)?$`,
    ...(configFile ? ["--config", configFile] : []),
    ...(testInfo.project.name ? ["--project", testInfo.project.name] : []),
    "--reporter", fileURLToPath(new URL("reporter.mjs", import.meta.url)),
    "--output", "{output}", "--workers", "1", "--retries", "0",
  ];
}

/** A text as part of a regular expression. Braces would be placeholders of Crosswind. */
const pattern = (text) => text.replaceAll(/[^\p{L}\p{N}_ -]/gu, ".");

function crosswind(words) {
  return new Promise((resolve, reject) => {
    const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(TEST_|PW_|PWTEST_)/.test(name)));
    const child = spawn("crosswind", words, { env: environment, stdio: ["ignore", "pipe", "pipe"] });
    const said = { output: "", errors: "" };
    child.stdout.setEncoding("utf8").on("data", (text) => { said.output += text; });
    child.stderr.setEncoding("utf8").on("data", (text) => { said.errors += text; });
    child.on("error", (error) => reject(new Error(`${error.message}\nhint: install Crosswind, so that \`crosswind doctor\` answers`)));
    child.on("close", (status) => resolve({ status, ...said }));
  });
}
