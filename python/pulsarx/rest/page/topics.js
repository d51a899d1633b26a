// The list of topics: a page of it, as the server sorts and filters it.

import { address, get, admin, topicPath } from "./api.js";
import { confirm, failed } from "./dialog.js";
import { downloads } from "./download.js";
import { $, button, count, line, make, rate, select, size, table, whole } from "./elements.js";
import { plot } from "./plot.js";

const PAGE = 50;
const SAVED_AT_ONCE = 200;  // rows of a request
const TYPING_MS = 250;
const ONLY = [["", "All topics"], ["backlog", "With a backlog"],
  ["stuck", "With a backlog that nobody consumes"]];
// Name for the server, head, class, whether it is sorted upwards first.
const COLUMNS = [["name", "Topic", "", true], ["backlog", "Backlog", "n"], ["", "Last hour", "wide"],
  ["consumers", "Consumers", "n"], ["in", "In /s", "n"], ["out", "Out /s", "n"],
  ["stored", "Stored", "n wide"]];

let typing = 0;

// query: of the address.
export async function load(namespace, query, now) {
  return get("/console/topics", { namespace, filter: query.filter, only: query.only,
    sort: query.sort, reverse: query.reverse, offset: query.offset, limit: PAGE, now: now || "" });
}

export function draw(found, namespace, query, changed) {
  const go = (more) => { location.hash = address("", { ...query, offset: "", ...more }); };
  const filter = make("input", { type: "search", value: query.filter, autocomplete: "off",
    spellcheck: "false", "data-id": "filter", oninput: (event) => {
      clearTimeout(typing);
      typing = setTimeout(() => go({ filter: event.target.value }), TYPING_MS);
    } });
  const tools = make("div", { class: "row tools" },
    make("label", {}, "Filter ", filter),
    make("label", {}, "Show ", select(ONLY, query.only ?? "", { "data-id": "only",
      onchange: (event) => go({ only: event.target.value }) })),
    button("Create topic\u2026", () => create(namespace, changed)),
    ...downloads(`topics-${namespace}`, () => all(namespace, query), failed));
  const sums = found.sums;
  const told = make("p", { class: "soft" }, `${count(found.topics)} topics, backlog ` +
    `${count(sums.backlog)}, in ${rate(sums.rate_in)} /s, out ${rate(sums.rate_out)} /s, ` +
    `stored ${size(sums.stored)}`);
  if (!found.rows.length)
    return [tools, told, make("p", {}, found.topics ? "No topic is like that." : "No topics.")];
  return [tools, told,
    table("Topics", COLUMNS.map((each) => head(each, query, go)),
      found.rows.map((each) => row(each, found))),
    pager(found, query)];
}

// All that the filter lets through, and not the page alone.
async function all(namespace, query) {
  const rows = [];
  for (;;) {
    const found = await get("/console/topics", { namespace, filter: query.filter, only: query.only,
      sort: query.sort, reverse: query.reverse, offset: rows.length || "", limit: SAVED_AT_ONCE });
    rows.push(...found.rows.map(({ trend, ...each }) => each));
    if (!found.rows.length || rows.length >= found.found) return rows;
  }
}

function head([name, text, kind, up], query, go) {
  if (!name) return [text, kind];
  const sorted = (query.sort || "backlog") === name;
  const reverse = query.reverse === "true";
  const state = !sorted ? "none" : Boolean(up) !== reverse ? "ascending" : "descending";
  const mark = !sorted ? "" : state === "ascending" ? " \u25b4" : " \u25be";
  return [button(text + mark, () => go({ sort: name, reverse: sorted && !reverse ? "true" : "" }),
    { class: "head", "data-id": `sort ${name}` }), kind, { "aria-sort": state }];
}

function row(each, found) {
  const stuck = each.backlog > 0 && !each.consumers;
  const local = each.topic.split("/").slice(4).join("/");
  const marks = [
    each.topic.startsWith("persistent:") ? null : "non-persistent",
    each.partitions ? `${count(each.partitions)} partitions` : null,
    each.terminated ? "terminated" : null];
  return [
    make("span", {}, make("a", { href: address(each.topic), "data-id": `topic ${each.topic}`,
      title: line(each.topic) }, line(local)),
      ...marks.filter((one) => one).map((one) => make("span", { class: "mark" }, one)),
      each.flaw ? make("span", { class: "mark warn", title: line(each.flaw) }, "damaged") : null),
    count(each.backlog),
    plot(each.trend, found.since, found.time, "backlog in the last hour"),
    make("span", stuck ? { class: "warn" } : {}, stuck && each.consumers === 0
      ? "none" : count(each.consumers)),
    rate(each.rate_in), rate(each.rate_out), size(each.stored)];
}

function pager(found, query) {
  const offset = Number(query.offset ?? 0);
  const last = offset + found.rows.length;
  const to = (at, text, able) => (able
    ? make("a", { href: address("", { ...query, offset: at || "" }), "data-id": text }, text)
    : make("span", { class: "soft" }, text));
  return make("nav", { class: "row", "aria-label": "Pages" },
    to(Math.max(0, offset - PAGE), "Previous", offset > 0),
    make("span", {}, `${count(offset + 1)} to ${count(last)} of ${count(found.found)}`),
    to(last, "Next", last < found.found));
}

function create(namespace, changed) {
  const name = make("input", { autocomplete: "off", spellcheck: "false" });
  const partitions = make("input", { type: "number", min: 0, value: 0 });
  const domain = select([["persistent", "persistent"], ["non-persistent", "non-persistent"]],
    "persistent");
  confirm({ title: "Create a topic", verb: "Create topic", danger: false,
    text: `In namespace ${line(namespace)}. With 0 partitions it is one topic.`,
    fields: [["name", "Name", name], ["partitions", "Partitions", partitions],
      ["domain", "Domain", domain]],
    action: async (given) => {
      if (!given.name) throw new Error("a topic needs a name");
      const path = topicPath(`${given.domain}://${namespace}/${given.name}`);
      const number = whole(given.partitions, 0);
      await (number ? admin("PUT", `${path}/partitions`, number) : admin("PUT", path));
      changed(`Created ${given.name}.`);
    } });
}

export const isTyping = () => document.activeElement?.dataset?.id === "filter";
export const filterText = () => $("main").querySelector("[data-id=filter]")?.value;
