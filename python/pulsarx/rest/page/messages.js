// Messages of a topic, page by page: the newest first, and what comes while one looks; or from a
// place on, in their order.

import { address, get } from "./api.js";
import { failed } from "./dialog.js";
import { downloads } from "./download.js";
import { button, count, line, make, plain, select, size, table, time } from "./elements.js";
import { publish } from "./publish.js";
import { reset } from "./topic.js";
import { decoded, decoders, schemaName } from "./value.js";

const PAGE = 50;
const FROM = [["newest", "the newest, backwards"], ["earliest", "the first"], ["id", "a message id"],
  ["time", "a time"]];
const LIVE_MS = 1000;
const LIVE_AT_ONCE = 200;  // messages of a request
const LIVE_MAX = 500;  // that are shown
const LINE_MAX = 120;  // characters of a value
const HEX_MAX = 512;  // bytes

// The view does not change by itself, but by what comes.
export const stands = true;

export async function load(topic, query) {
  const [schemas, subscriptions, found] = await Promise.all([
    decoders(topic),
    get("/console/topic", { topic }).then((each) => Object.entries(each.subscriptions)
      .filter(([, one]) => one.durable).map(([name]) => name)),
    get("/console/messages", { topic, from: query.from || "newest", text: query.text, count: PAGE,
      subscription: query.subscription })]);
  return { topic, schemas, subscriptions, ...found };
}

export function draw(found, query, changed) {
  const topic = found.topic;
  const go = (more) => { location.hash = address(topic, { ...query, pages: "", live: "", ...more }); };
  const backwards = !query.from || query.from.startsWith("before:");
  const [earlier, later] = backwards ? ["Newer", "Older"] : ["Previous", "Next"];
  const shown = [
    make("p", {}, make("a", { href: address(), "data-id": "back" }, "All topics"), " / ",
      make("a", { href: address(topic), "data-id": "topic" }, line(topic))),
    make("h2", {}, query.subscription
      ? `Messages that ${line(query.subscription)} has not acknowledged` : "Messages"),
    tools(found, query, go, changed)];
  const pages = query.pages ? query.pages.split(",") : [];
  const next = found.next === null ? null
    : `${backwards ? "before:" : ""}${found.next[0]}+${found.next[1]}`;
  const moves = make("nav", { class: "row", "aria-label": "Pages" },
    pages.length ? make("a", { "data-id": "previous", href: address(topic, { ...query,
      from: pages.at(-1) === "-" ? "" : pages.at(-1), pages: pages.slice(0, -1).join(",") }) }, earlier)
      : make("span", { class: "soft" }, earlier),
    make("span", {}, told(found, query)),
    next === null ? make("span", { class: "soft" }, later) : make("a", { "data-id": "next",
      href: address(topic, { ...query, live: "", from: next, pages: [...pages, query.from || "-"].join(",") }) },
    query.text && found.messages.length < PAGE ? "Search on" : later));
  const isLive = query.live === "true" && !query.from;
  if (found.messages.length || isLive) {
    const rows = table("Messages", [["Id", "id"], ["Published", "wide"], ["Key", "key"], ["Value", "value"]],
      found.messages.map((each) => row(found, each, query, changed)));
    shown.push(rows);
    if (isLive) follow(found, query, rows.querySelector("tbody"), changed);
  }
  shown.push(moves);
  return shown;
}

// What comes --------------------------------------------------------------------------------------

let following = 0;  // which view, if any, shows what comes

export function leave() {
  following++;
}

async function follow(found, query, body, changed) {
  const mine = ++following;
  let [ledger, ordinal] = found.behind;
  while (mine === following) {
    try {
      const page = await get("/console/messages", { topic: found.topic, from: `${ledger}+${ordinal}`,
        count: LIVE_AT_ONCE, text: query.text, subscription: query.subscription });
      if (mine !== following) return;
      [ledger, ordinal] = page.behind;
      for (const each of page.messages) {
        found.messages.unshift(each);
        const cells = row(found, each, query, changed);
        const made = cells instanceof Node ? cells
          : make("tr", {}, ...cells.map((cell, at) => make("td", { class: ["id", "wide", "key", "value"][at] }, cell)));
        made.classList.add("new");
        body.prepend(made);
      }
      found.messages.length = Math.min(found.messages.length, LIVE_MAX);
      while (body.rows.length > LIVE_MAX) body.lastChild.remove();
      if (page.next !== null && page.messages.length) continue;
    } catch (error) {
      failed(`Not up to date: ${error.message}`);
    }
    await new Promise((done) => { setTimeout(done, LIVE_MS); });
  }
}

// The page ----------------------------------------------------------------------------------------

function told(found, query) {
  const number = found.messages.length;
  if (query.text)
    return `${count(number)} found among ${count(found.examined)} messages` +
      (found.next === null ? ", which were all" : "");
  return number ? `${count(number)} messages` : "No messages.";
}

function tools(found, query, go, changed) {
  const known = !query.from || query.from.startsWith("before:") ? "newest"
    : /^@/.test(query.from) ? "time" : /^\d+:/.test(query.from) ? "id" : "earliest";
  const kind = select(FROM, known, { "data-id": "from", onchange: () => fit() });
  const id = make("input", { placeholder: "ledger:entry", autocomplete: "off", "data-id": "id",
    "aria-label": "Message id", value: known === "id" ? query.from : "" });
  const when = make("input", { type: "datetime-local", step: 1, "data-id": "when", "aria-label": "Time",
    value: known === "time" ? time(Number(query.from.slice(1))).replace(" ", "T").slice(0, 19) : "" });
  const text = make("input", { type: "search", value: query.text, "data-id": "text", autocomplete: "off" });
  const of = select([["", "all messages"], ...found.subscriptions.map((each) =>
    [each, `not acknowledged by ${line(each)}`])], query.subscription ?? "", { "data-id": "of" });
  const fit = () => { id.hidden = kind.value !== "id"; when.hidden = kind.value !== "time"; };
  const look = () => {
    const begin = kind.value === "id" ? id.value.trim()
      : kind.value === "time" ? `@${new Date(when.value).getTime() || 0}`
        : kind.value === "newest" ? "" : kind.value;
    go({ from: begin, text: text.value, subscription: of.value });
  };
  fit();
  const found_ = make("div", { class: "row tools" }, make("label", {}, "Of ", of),
    make("label", {}, "From ", kind), id, when, make("label", {}, "Search ", text),
    button("Show", look, { "data-id": "show" }),
    button("Live", () => go({ from: "", live: query.live === "true" ? "" : "true" }),
      { "data-id": "live", "aria-pressed": String(query.live === "true"),
        title: "Show messages as they come, the newest first" }),
    button("Publish\u2026", () => publish(found.topic, [...found.schemas.values()][0] ?? null, changed)),
    ...downloads(`messages-${found.topic}`, () => found.messages.map((each) => saved(found, each)), failed));
  found_.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.tagName === "INPUT") look();
  });
  return found_;
}

function row(found, each, query, changed) {
  if (each.damage)
    return make("tr", { class: "damage" }, make("td", { colspan: 4 },
      make("span", { class: "mark warn" }, "damaged"), " ", line(each.damage)));
  const id = each.message_id.replace(/(:-1)+$/, "");
  return [id, time(each.publish_timestamp), line(each.partition_key), value(found, each, id, query, changed)];
}

// A message as it is saved.
function saved(found, each) {
  if (each.damage) return { damage: each.damage };
  const bytes = each.data === null || each.encrypted ? null : bytesOf(each.data);
  const cut = bytes !== null && bytes.length < each.size;
  const known = bytes === null ? null : decoded(found.schemas, each, bytes);
  const text = bytes === null ? null : textOf(bytes, cut);
  return { message_id: each.message_id, published: new Date(each.publish_timestamp).toISOString(),
    event_time: each.event_timestamp ? new Date(each.event_timestamp).toISOString() : null,
    key: each.partition_key, producer: each.producer_name, properties: each.properties,
    schema: schemaName(found.schemas, each), size: each.size, cut,
    encoding: bytes === null ? null : known && "value" in known ? "decoded" : text === null ? "base64" : "text",
    value: known && "value" in known ? known.value : text ?? (bytes === null ? null : each.data) };
}

function value(found, each, id, query, changed) {
  const bytes = each.data === null ? null : bytesOf(each.data);
  const cut = bytes !== null && bytes.length < each.size;
  const known = each.encrypted || bytes === null ? null : decoded(found.schemas, each, bytes);
  const text = each.encrypted || bytes === null ? null
    : known && "value" in known ? JSON.stringify(known.value) : textOf(bytes, cut);
  const marks = [];
  if (each.encrypted)
    marks.push(make("span", { class: "mark warn" }, "encrypted"),
      ` ${size(each.size)} for ${each.encrypted.map(line).join(", ")}` +
      (each.messages > 1 ? `, ${count(each.messages)} messages` : ""));
  else if (bytes === null) marks.push(make("span", { class: "mark" }, "no value"));
  else if (text === null) marks.push(make("span", { class: "mark" }, "binary"), ` ${hex(bytes.slice(0, 16))}`);
  else marks.push(line(text).slice(0, LINE_MAX) + (text.length > LINE_MAX ? "\u2026" : ""));
  const body = make("div", { class: "body" });
  const details = make("details", {}, make("summary", {}, ...marks), body);
  details.addEventListener("toggle", () => {
    if (details.open && !body.childNodes.length) fill(body, found, each, bytes, cut, id, query, changed);
  });
  return details;
}

// As much as the server gives of one message, which is not all of a very large one.
async function whole(body, found, each, id, query, changed) {
  try {
    const page = await get("/console/messages",
      { topic: found.topic, from: `${each.place[0]}+${each.place[1]}`, count: 1 });
    const one = page.messages[0];
    if (one?.message_id !== each.message_id) throw new Error(one?.damage ?? "the message is gone");
    const bytes = bytesOf(one.data);
    const cut = bytes.length < one.size;
    body.replaceChildren();
    fill(body, found, one, bytes, cut, id, query, changed, true);
  } catch (error) {
    body.append(make("p", { class: "warn", role: "alert" }, `Not shown: ${line(error.message)}`));
  }
}

const bytesOf = (data) => Uint8Array.from(atob(data), (one) => one.charCodeAt(0));

function fill(body, found, each, bytes, cut, id, query, changed, alone = false) {
  const schema = schemaName(found.schemas, each);
  const pairs = [["Id", each.message_id], ["Published", time(each.publish_timestamp)],
    each.event_timestamp ? ["Event time", time(each.event_timestamp)] : null,
    ["Producer", line(each.producer_name)],
    each.partition_key ? ["Key", line(each.partition_key)] : null,
    each.ordering_key ? ["Ordering key", line(each.ordering_key)] : null,
    ["Size", size(each.size)],
    schema ? ["Schema", schema] : null,
    ...Object.entries(each.properties).map(([name, one]) => [`Property ${line(name)}`, plain(one)])];
  body.append(make("dl", { class: "pairs" }, ...pairs.filter((one) => one).flatMap(([name, one]) =>
    [make("dt", {}, name), make("dd", {}, one)])));
  if (!each.encrypted && bytes !== null) {
    const known = decoded(found.schemas, each, bytes);
    if (known && "flaw" in known)
      body.append(make("p", { class: "warn" }, `Not decoded by its schema: ${line(known.flaw)}.`));
    const isDecoded = known !== null && "value" in known;
    const text = textOf(bytes, cut);
    if (isDecoded) body.append(make("pre", { class: "decoded" }, plain(JSON.stringify(known.value, null, 2))));
    const raw = make("pre", {}, text === null || isDecoded ? hex(bytes.slice(0, HEX_MAX)) : pretty(text, cut));
    body.append(isDecoded ? make("details", {}, make("summary", {}, "Bytes"), raw) : raw);
    const shown = text === null || isDecoded ? Math.min(bytes.length, HEX_MAX) : bytes.length;
    if (shown < each.size)
      body.append(make("p", { class: "soft" },
        `These are the first ${count(shown)} of ${count(each.size)} bytes.`));
    if (cut && !alone)
      body.append(button("Show more", () => whole(body, found, each, id, query, changed)));
  }
  if (found.subscriptions.length) {
    const of = select(found.subscriptions.map((one) => [one, line(one)]),
      query.subscription || found.subscriptions[0]);
    body.append(make("div", { class: "row" }, make("label", {}, "Subscription ", of),
      button("Reset to this message\u2026", () => reset(found.topic, of.value, changed, id))));
  }
}

// null: it is no text. Of a value that was cut the last character may be, too.
function textOf(bytes, cut) {
  try {
    const found = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: cut });
    return /[\u0000-\u0008\u000e-\u001a]/.test(found) ? null : found;
  } catch {
    return null;
  }
}

function pretty(text, cut) {
  const first = text.trimStart()[0];
  if (!cut && (first === "{" || first === "[")) {
    try {
      return plain(JSON.stringify(JSON.parse(text), null, 2));
    } catch { /* it only looks like it */ }
  }
  return plain(text);
}

const hex = (bytes) => [...bytes].map((each) => each.toString(16).padStart(2, "0")).join(" ");
