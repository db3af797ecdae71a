// Numbers as text, and shapes as SVG: nothing here knows of reports.

const byId = (id) => document.getElementById(id);
const namespace = document.querySelector("svg").namespaceURI;

const known = (value) => value !== null && value !== undefined;
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** A number of so many significant digits; large ones keep all digits before the point. */
function format(value, digits = 3) {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  const exponential = size !== 0 && (size >= 1e6 || size < 1e-4);
  if (exponential) return Number(value.toPrecision(digits)).toExponential();
  return size >= 10 ** digits ? value.toFixed(0) : String(Number(value.toPrecision(digits)));
}

/** A number to the second digit of its standard error, or to the fourth of its own. */
function rounded(value, error) {
  if (!known(value) || !known(error) || error <= 1e-6 * Math.abs(value)) return format(value, 4);
  if (error < 1e-7) return format(value, 2);
  return value.toFixed(clamp(1 - Math.floor(Math.log10(error)), 0, 8));
}

/** The words with a capital letter. */
const capital = (words) => words.slice(0, 1).toUpperCase() + words.slice(1);
const shown = (name) => (name.trim() === "" ? "(no name)" : name);

/** Linear map from an interval of numbers to one of pixels; what is absent stays so. */
function scale([low, high], [from, to]) {
  const width = high - low || 1;
  return (value) => (known(value) ? from + ((value - low) / width) * (to - from) : null);
}

/** Round numbers inside an interval, about so many. */
function ticks([low, high], count) {
  const rough = (high - low || 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((multiple) => multiple * power >= rough);
  const all = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    all.push(Number((k * step).toPrecision(10)));
  }
  return all;
}

function quantile(values, level) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = level * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

function html(tag, parent, text, attributes = {}) {
  const element = parent.appendChild(document.createElement(tag));
  if (known(text)) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function svg(tag, parent, attributes = {}, text = null) {
  const element = parent.appendChild(document.createElementNS(namespace, tag));
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (known(text)) element.textContent = text;
  return element;
}

function line(parent, x1, y1, x2, y2, kind) {
  return svg("line", parent, { x1, y1, x2, y2, class: kind });
}

/** Text cut in its middle to a width in pixels, as names often differ at their ends. */
function label(parent, x, y, width, text, attributes) {
  const element = svg("text", parent, { x, y, ...attributes }, text);
  const letters = Array.from(text);
  if (element.getComputedTextLength() <= width) return element;
  const keep = (count) => {
    const head = letters.slice(0, Math.ceil(count / 2));
    const tail = letters.slice(letters.length - Math.floor(count / 2));
    element.textContent = [...head, "…", ...tail].join("");
  };
  let [fits, cut] = [0, letters.length];
  while (fits < cut) {
    const middle = Math.ceil((fits + cut) / 2);
    keep(middle);
    if (element.getComputedTextLength() <= width) fits = middle;
    else cut = middle - 1;
  }
  keep(fits);
  svg("title", element, {}, text);
  return element;
}

/** An empty picture as wide as its place, so that letters keep their size. */
function begin(id, height, describe, widest = Infinity) {
  const chart = byId(id);
  chart.replaceChildren();
  const width = Math.min(Math.max(chart.parentElement.clientWidth, 240), widest);
  chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  chart.setAttribute("aria-label", describe);
  return { chart, width };
}

/** A nested drawing area that cuts off what leaves it; its origin stays that of the chart. */
function frame(chart, left, top, right, bottom) {
  const [width, height] = [Math.max(right - left, 1), Math.max(bottom - top, 1)];
  const viewBox = `${left} ${top} ${width} ${height}`;
  return svg("svg", chart, { x: left, y: top, width, height, viewBox });
}

/** Path through points, broken where one is absent. */
function path(xs, ys) {
  let pen = "M";
  let text = "";
  xs.forEach((x, i) => {
    if (!known(x) || !known(ys[i])) pen = "M";
    else {
      text += `${pen}${x.toFixed(1)} ${clamp(ys[i], -1e4, 1e4).toFixed(1)}`;
      pen = "L";
    }
  });
  return text;
}

function horizontalAxis(chart, place, values, top, bottom) {
  for (const value of values) {
    line(chart, place(value), top, place(value), bottom, "grid");
    const attributes = { x: place(value), y: bottom + 16, "text-anchor": "middle" };
    svg("text", chart, attributes, format(value));
  }
}

function verticalAxis(chart, place, values, left, right, digits = 3) {
  for (const value of values) {
    line(chart, left, place(value), right, place(value), "grid");
    const attributes = { x: left - 7, y: place(value) + 4, "text-anchor": "end" };
    svg("text", chart, attributes, format(value, digits));
  }
}
