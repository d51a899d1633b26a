// Saves what is shown as a file.

import { button } from "./elements.js";

const BEGINS_FORMULA = /^[=+\-@\t\r]/;

// A text that a spreadsheet would take for a formula gets an apostrophe: strangers wrote it.
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const safe = BEGINS_FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csv(rows) {
  const heads = [...new Set(rows.flatMap((each) => Object.keys(each)))];
  return [heads, ...rows.map((each) => heads.map((name) => each[name]))]
    .map((each) => each.map(cell).join(",")).join("\r\n") + "\r\n";
}

export function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// Two buttons; rows: asks for the rows, which may take a while.
export function downloads(name, rows, failed) {
  const file = name.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "") || "pulsarx";
  const act = (kind, write, type) => button(kind, async () => {
    try {
      save(`${file}.${kind.toLowerCase()}`, type, write(await rows()));
    } catch (error) {
      failed(`Not saved: ${error.message}`);
    }
  }, { "data-of": "download", title: `Save as ${kind}`, "aria-label": `Save as ${kind}` });
  return [act("JSON", (found) => `${JSON.stringify(found, null, 1)}\n`, "application/json"),
    act("CSV", csv, "text/csv")];
}
