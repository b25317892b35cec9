// @ts-check
/**
 * An element. Texts become text, never markup: names and titles are other people's.
 * @param {string} tag
 * @param {Record<string, any>} attributes `on...` are listeners, `null` and `false` are left out
 * @param {...(Node | string | null | undefined)} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** @param {{ error: string, hint?: string | null }} problem */
export function complaint(problem) {
  return h("p", { class: "banner bad", role: "alert" }, problem.error, problem.hint ? ` Hint: ${problem.hint}` : "");
}

/** "1 cell", "2 cells". @param {number} number @param {string} what */
export const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

/**
 * What the server answers. Throws what it complains of.
 * @param {string} path
 * @param {object} [body] sent as JSON
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function ask(path, body, signal) {
  let answer;
  try {
    answer = await fetch(path, body === undefined ? { signal } : { method: "POST", body: JSON.stringify(body), signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw { error: "The server does not answer.", hint: "start it again: crosswind ui" };
  }
  const data = await answer.json().catch(() => ({ error: `the server failed (${answer.status})` }));
  if (!answer.ok) throw data;
  return data;
}

/** Rows as a table. @param {any[]} heads @param {any[][]} rows @param {Record<string, any>} attributes */
export function table(heads, rows, attributes = {}) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": heads.filter((head) => typeof head === "string").join(", ") }, h("table", attributes,
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col", class: "word" }, head)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", { class: "word" }, cell)))))));
}
