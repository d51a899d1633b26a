// How the folder is: its device, what is wrong, what waits longest, and what takes most room.

import { address, get } from "./api.js";
import { failed } from "./dialog.js";
import { downloads } from "./download.js";
import { age, count, facts, line, make, share, size, table } from "./elements.js";

export const load = (_, __, now) => get("/console/health", { now: now || "" });

export function draw(found) {
  const { disk, oldest } = found;
  const used = disk === null ? null : disk.total - disk.free;
  const shown = [
    make("h2", {}, "Overview"),
    found.warnings.length
      ? make("ul", { class: "health bad" }, ...found.warnings.map((each) => make("li", {}, each)))
      : make("p", { class: "health good" }, found.hidden ? "Healthy: nothing is damaged."
        : "Healthy: nothing is damaged, and there is room on the device."),
    facts([
      ["Version", found.version],
      ...found.hidden ? [] : [["Owner", found.owner === null ? "nobody" : `process ${found.owner}`]],
      ["Namespaces", count(found.namespaces)],
      ["Topics", count(found.topics)],
      ["Backlog", count(found.backlog)],
      ["Stored", size(found.stored)],
    ]),
    make("h3", {}, "Device")];
  if (disk === null) shown.push(make("p", { class: "soft" },
    found.hidden ? "Your role is told nothing of the server." : "The folder is in memory."));
  else shown.push(
    make("meter", { min: 0, max: disk.total, value: used, high: disk.total * 0.95,
      "aria-label": "Used of the device" }),
    make("p", {}, `${size(used)} of ${size(disk.total)} are used, of which ${size(found.stored)} by these ` +
      `topics; ${size(disk.free)} (${share(disk.free / disk.total)}) are free.`));
  shown.push(make("h3", {}, "Oldest message that waits"), oldest === null
    ? make("p", { class: "soft" }, "Every subscription has acknowledged all its messages.")
    : make("p", {}, make("b", {}, age(oldest.age)), " old, for subscription ",
      make("b", {}, line(oldest.subscription)), " of ", topicLink(oldest.topic),
      `, whose backlog is ${count(oldest.backlog)}.`));
  if (found.flaws.length)
    shown.push(make("h3", {}, "Damaged topics"), table("Damaged topics", [["Topic", ""], ["What", "value"]],
      found.flaws.map((each) => [topicLink(each.topic), line(each.flaw)])));
  const most = Math.max(1, ...found.largest.map((each) => each.stored));
  shown.push(
    make("div", { class: "row spread" }, make("h3", {}, "Largest topics"),
      make("div", { class: "row" }, ...downloads("largest-topics", () => found.largest, failed))),
    found.largest.length
      ? table("Largest topics", [["Topic", ""], ["Stored", "n"], ["", "wide"], ["Backlog", "n"]],
        found.largest.map((each) => [topicLink(each.topic), size(each.stored),
          make("meter", { min: 0, max: most, value: each.stored, "aria-hidden": "true" }), count(each.backlog)]))
      : make("p", { class: "soft" }, "No topics."));
  return shown;
}

// Without the domain that most have.
const topicLink = (name) => make("a", { href: address(name), "data-id": `topic ${name}`, title: line(name) },
  line(name.replace(/^persistent:\/\//, "")));
