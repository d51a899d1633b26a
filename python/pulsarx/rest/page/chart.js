// Draws a line over time with its axes, a grid, and the value under the pointer. A point is
// [time, value].

import { shape } from "./plot.js";

const WIDTH = 340;
const HEIGHT = 150;
const LEFT = 60;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 20;
const TICKS = 4;  // of values, at most one more
const TIMES_MAX = 4;
const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600]
  .map((seconds) => seconds * 1000);

// Where the pointer is, by the label of the chart: the page is drawn anew every few seconds, under
// a pointer that does not move.
const pointers = new Map();

// The largest step of 1, 2 or 5 times a power of ten by which so many lie below the most; of sizes,
// a power of two.
function step(most, binary) {
  const least = Math.max(most, 1) / TICKS;
  if (binary) return 2 ** Math.max(0, Math.ceil(Math.log2(least)));
  const power = 10 ** Math.floor(Math.log10(least));
  const found = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least);
  return Math.max(found, 1);
}

function timeSteps(since, now) {
  const least = (now - since) / TIMES_MAX;
  const every = STEPS_MS.find((each) => each >= least) ?? STEPS_MS.at(-1);
  const zone = new Date(since).getTimezoneOffset() * 60000;
  const found = [];
  for (let at = Math.ceil((since - zone) / every) * every + zone; at <= now; at += every) found.push(at);
  return [found, every];
}

const clock = (ms, seconds) => new Date(ms).toLocaleTimeString("en-GB", seconds ? {}
  : { hour: "2-digit", minute: "2-digit" });

// show: writes a value. binary: it is one of bytes.
export function chart(points, since, now, label, show, binary = false) {
  const most = Math.max(0, ...points.map(([, value]) => value));
  const every = step(most, binary);
  const top = Math.max(1, Math.ceil(most / every)) * every;
  const bottom = HEIGHT - BOTTOM;
  const x = (time) => LEFT + Math.min(1, Math.max(0, (time - since) / Math.max(1, now - since))) * (WIDTH - LEFT - RIGHT);
  const y = (value) => bottom - (value / top) * (bottom - TOP);
  const last = points.length ? points.at(-1)[1] : null;
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "chart",
    "aria-label": last === null ? `${label}: nothing is known yet` : `${label}: ${show(last)} now, most ${show(most)}` });
  for (let value = 0; value <= top; value += every) {
    svg.append(shape("line", { class: value ? "grid" : "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
      text(show(value), { class: "tick", x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }));
  }
  const [times, between] = timeSteps(since, now);
  for (const time of times) {
    const at = x(time);
    const anchor = at < LEFT + 14 ? "start" : at > WIDTH - RIGHT - 16 ? "end" : "middle";
    svg.append(shape("line", { class: "grid", x1: at, x2: at, y1: TOP, y2: bottom }),
      text(clock(time, between < 60000), { class: "tick", x: at, y: HEIGHT - 5, "text-anchor": anchor }));
  }
  svg.append(shape("line", { class: "axis", x1: LEFT, x2: LEFT, y1: TOP, y2: bottom }));
  const places = points.map(([time, value]) => [x(time), y(value)]);
  if (!places.length) return svg;
  places.push([WIDTH - RIGHT, places.at(-1)[1]]);
  const line = places.map((each) => each.map((one) => one.toFixed(1)).join(",")).join(" ");
  svg.append(shape("polygon", { points: `${places[0][0].toFixed(1)},${bottom} ${line} ${WIDTH - RIGHT},${bottom}` }),
    shape("polyline", { points: line, "vector-effect": "non-scaling-stroke" }));
  follow(svg, { points, label, show, since, now, x, y, bottom });
  return svg;
}

function text(content, attributes) {
  const found = shape("text", attributes);
  found.textContent = content;
  return found;
}

function follow(svg, drawn) {
  const mark = shape("g", { class: "pointer" });
  svg.append(mark);
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    const part = (at - LEFT) / (WIDTH - LEFT - RIGHT);
    if (part < 0 || part > 1) return leave();
    pointers.set(drawn.label, part);
    show(mark, drawn, part);
  };
  const leave = () => { pointers.delete(drawn.label); mark.replaceChildren(); };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointerleave", leave);
  if (pointers.has(drawn.label)) show(mark, drawn, pointers.get(drawn.label));
}

// The value that was known at the time, which is that of the point before.
function show(mark, { points, show: shown, since, now, x, y, bottom }, part) {
  const time = since + part * (now - since);
  const known = points.filter(([each]) => each <= time);
  const [, value] = known.length ? known.at(-1) : points[0];
  const at = x(time);
  const label = text("", { class: "value", y: TOP + 12 });
  const right = at > WIDTH / 2;
  label.setAttribute("x", right ? at - 8 : at + 8);
  label.setAttribute("text-anchor", right ? "end" : "start");
  label.textContent = `${clock(time, true)}  ${shown(value)}`;
  mark.replaceChildren(
    shape("line", { x1: at, x2: at, y1: TOP, y2: bottom }),
    shape("circle", { cx: at, cy: y(value), r: 3 }), label);
}
