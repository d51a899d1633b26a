// Makes elements. What comes from names and messages is put in as text, and never as HTML.

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) found.addEventListener(name.slice(2), value);
    else found.setAttribute(name, value === true ? "" : value);
  }
  found.append(...children.filter((each) => each !== null && each !== undefined)
    .map((each) => (each instanceof Node ? each : String(each))));
  return found;
}

// heads: [text or element, class, attributes]; a row is a list of cells, or one element.
export function table(label, heads, rows) {
  const head = heads.map(([text, kind, more]) =>
    make("th", { scope: "col", class: kind, ...more }, text));
  const body = rows.map((row) => (row instanceof Node ? row
    : make("tr", {}, ...row.map((cell, at) => make("td", { class: heads[at][1] }, cell)))));
  return make("div", { class: "scroll" },
    make("table", { "aria-label": label }, make("thead", {}, make("tr", {}, ...head)),
      make("tbody", {}, ...body)));
}

// pairs: [name, what is shown].
export function facts(pairs) {
  return make("dl", { class: "facts" }, ...pairs.filter((each) => each).map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

export function button(text, onclick, more = {}) {
  return make("button", { type: "button", "data-id": `${text} ${more["data-of"] ?? ""}`,
    onclick, ...more }, text);
}

export function select(options, chosen, more = {}) {
  const found = make("select", more, ...options.map(([value, text]) =>
    make("option", { value, selected: value === chosen }, text)));
  return found;
}

// What has no shape of its own, or turns the direction of what follows, is written out, but for the
// signs that choose how a character in front of them looks.
export function plain(text) {
  return String(text).replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]|(?![\ufe00-\ufe0f])\p{Default_Ignorable_Code_Point}|\p{Bidi_Control}|\p{Cs}/gu,
    (each) => {
      const code = each.codePointAt(0).toString(16);
      return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
    });
}

// One line of it.
export const line = (text) => plain(text).replace(/[\n\t]/g, " ");

// A field of a number that holds none has an empty text, and that is no 0.
export function whole(text, least) {
  const found = Number(text);
  if (!text || !Number.isSafeInteger(found) || found < least)
    throw new Error(`${text || "nothing"} is no whole number from ${least} on`);
  return found;
}

export const count = (value) =>
  (value === null || value === undefined ? "\u2013" : Number(value).toLocaleString("en"));

export function rate(value) {
  if (value === null || value === undefined) return "\u2013";
  return value >= 100 ? count(Math.round(value)) : value.toFixed(1);
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "\u2013";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; bytes >= 1024 && at < units.length - 1; at++) bytes /= 1024;
  return `${at ? bytes.toFixed(1) : bytes} ${units[at]}`;
}

export const share = (part) => `${(part * 100).toFixed(part < 0.1 ? 1 : 0)} %`;

export function age(seconds) {
  if (seconds === null || seconds === undefined || seconds < 0) return "\u2013";
  const steps = [[86400, "d"], [3600, "h"], [60, "min"]];
  for (const [of, unit] of steps) if (seconds >= of) return `${Math.floor(seconds / of)} ${unit}`;
  return `${seconds} s`;
}

// In the time of the browser, to the millisecond, as it is written in a field of a form.
export function time(ms) {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  const local = new Date(ms - date.getTimezoneOffset() * 60000);
  return local.toISOString().replace("T", " ").replace("Z", "");
}
