// The policies of a namespace, or of a topic beside those of its namespace, and setting them.

import { address, ask, get } from "./api.js";
import { confirm, failed } from "./dialog.js";
import { downloads } from "./download.js";
import { button, line, make, select, table } from "./elements.js";

const SHOWS = [["set", "those that are set"], ["", "all"]];

const loaded = (query) => get("/console/policies", query);
export const ofTopic = {
  stands: true,  // until something is set
  load: async (topic) => loaded({ topic }),
  draw: (found, query, changed) => view(found, query, changed),
};
export const ofNamespace = {
  stands: true,
  load: async (namespace) => loaded({ namespace }),
  draw: (found, namespace, query, changed) => view(found, query, changed),
};

// null: nothing is set. An object is a line for each of its parts.
function written(value) {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return line(value.join(", "));
  if (typeof value !== "object") return line(value);
  return make("span", { class: "parts" }, ...Object.entries(value).flatMap(([name, one]) =>
    [make("span", {}, line(name)), make("span", {}, one === null ? "\u2013" : line(
      typeof one === "object" ? JSON.stringify(one) : one))]));
}
const isSet = (each) => Object.values(each.values).some((value) => value !== null);

function view(found, query, changed) {
  const { topic, namespace } = found;
  const levels = topic ? ["topic", "namespace"] : ["namespace"];
  const rows = found.policies.filter((each) => query.only !== "set" || isSet(each));
  const only = select(SHOWS, query.only ?? "", { "data-id": "only", onchange: (event) => {
    location.hash = address(topic, { view: "policies", only: event.target.value });
  } });
  const shown = topic ? [
    make("p", {}, make("a", { href: address(), "data-id": "back" }, "All topics"), " / ",
      make("a", { href: address(topic), "data-id": "topic" }, line(topic))),
    make("h2", {}, "Policies")] : [make("h2", {}, `Policies of namespace ${line(namespace)}`)];
  shown.push(make("p", { class: "soft" }, topic
    ? "What a topic sets wins over what its namespace sets, and that over the options of the broker."
    : "They hold for all topics of the namespace that set nothing else, and win over the options of the broker."),
  make("div", { class: "row tools" }, make("label", {}, "Show ", only),
    ...downloads(`policies-${topic || namespace}`, () => found.policies.map((each) =>
      ({ policy: each.name, ...each.values, unset: each.unset })), failed)));
  const heads = [["Policy", "name"], ...levels.map((each) => [each === "topic" ? "Topic" : "Namespace", ""]),
    ["Where none is set", "wide"]];
  shown.push(rows.length ? table("Policies", heads, rows.map((each) => [
    make("span", {}, each.name.replaceAll("_", " ")),
    ...levels.map((level) => cell(each, level, found, changed)),
    make("span", { class: "soft" }, "unset" in each ? written(each.unset) ?? "\u2013" : "known to the owner"),
  ])) : make("p", {}, "None is set."));
  return shown;
}

function cell(each, level, found, changed) {
  if (!(level in each.values)) return make("span", { class: "soft" }, "\u2013");
  const value = written(each.values[level]);
  const text = each.name.replaceAll("_", " ");
  const change = button(value === null ? "Set\u2026" : "Change\u2026",
    () => set(each, level, found, changed),
    { class: "small", "data-of": `${level} ${each.name}`, "aria-label": `Set ${text} of the ${level}` });
  return make("span", { class: "set" }, value === null ? null : make("b", {}, value), change);
}

function set(each, level, found, changed) {
  const target = found[level];
  const now = each.values[level] ?? each.unset ?? null;
  const content = make("textarea", { rows: 3, spellcheck: "false" });
  content.value = now === null ? "" : JSON.stringify(now, null, typeof now === "object" ? 1 : 0);
  const text = each.name.replaceAll("_", " ");
  confirm({ title: `Set ${text}?`, verb: "Set", danger: false,
    text: `Of ${level} ${line(target)}, in JSON${each.unit ? ` (${each.unit})` : ""}. An empty field takes it away: ` +
      "then holds what the level above says.",
    fields: [["value", "Value", content]],
    action: async (given) => {
      let value = null;
      if (given.value.trim()) {
        try {
          value = JSON.parse(given.value);
        } catch {
          throw new Error("write the value in JSON: a number, true, false, a text in quotes, or {\u2026}");
        }
      }
      await ask("POST", "/console/policy", { level, target, name: each.name, value });
      changed(value === null ? `Removed ${text}.` : `Set ${text}.`);
    } });
}
