// Draws small lines over time, without axes, as they stand in lists. A point is [time, value].

const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 300;
const HEIGHT = 80;

export function shape(tag, attributes) {
  const found = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  return found;
}

export function plot(points, since, now, label) {
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none",
    role: "img", "aria-label": label });
  const most = Math.max(1e-9, ...points.map(([, value]) => value));
  const at = ([time, value]) => [
    Math.max(0, ((time - since) / Math.max(1, now - since)) * WIDTH),
    HEIGHT - 1 - (value / most) * (HEIGHT - 4)];
  const places = points.map(at);
  if (places.length) places.push([WIDTH, places.at(-1)[1]]);
  const text = places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  if (places.length) {
    const first = places[0][0].toFixed(1);
    svg.append(shape("polygon", { points: `${first},${HEIGHT} ${text} ${WIDTH},${HEIGHT}` }),
      shape("polyline", { points: text, "vector-effect": "non-scaling-stroke" }));
    if (points.length > 1 && points.at(-1)[1] > points[0][1]) svg.classList.add("growing");
  }
  return svg;
}
