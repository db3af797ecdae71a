// The report: reads the numbers of the page and draws them.

const data = JSON.parse(byId("data").textContent);
const state = { part: data.parts[0], index: 0, movers: [] };

/** Where beta is 1, which is not where a mixture stands. */
function bayesIndex(part) {
  if (!data.bayes) return -1;
  return part.betas.findIndex((beta, i) => beta === 1 && !(part.mixed && i === part.at));
}

const andUnderBayes = data.bayes ? " and under Bayes" : "";
/** The risk at a place of the slider, which at that of the choice may be that of a mixture. */
const riskAt = (part, index) => (index === part.at ? part.choice_risk : part.risk[index]);

// --- risk curve ---------------------------------------------------------------------------------

/** Heights that keep the steep start of a curve from flattening the rest. */
function interesting(part) {
  const values = part.risk.filter(known);
  const error = part.standard_error ?? 0;
  const risk = part.choice_risk ?? values[0] ?? 0;
  const low = Math.min(...values, risk - error);
  let high = Math.max(quantile(values, 0.5), risk + error);
  if (bayesIndex(part) >= 0 && known(part.bayes_risk)) high = Math.max(high, part.bayes_risk);
  const highest = Math.max(...values);
  const top = highest < low + 2 * (high - low) ? highest : low + 1.4 * (high - low);
  const height = top - low || Math.abs(low) || 1;
  return [low - 0.08 * height, Math.max(top, high) + 0.05 * height];
}

/** Round betas with room for their labels; the ends and 1 come first. */
function betaTicks(lower, upper, grain, place) {
  const candidates = data.bayes ? [lower, upper, 1] : [lower, upper];
  const [most, least] = [upper, lower + grain].map((beta) => Math.floor(Math.log10(beta)));
  for (const multiple of [1, 5, 2]) {
    for (let power = most; power >= least - 1; power--) {
      candidates.push(Number((multiple * 10 ** power).toPrecision(1)));
    }
  }
  candidates.push(...ticks([lower, upper], 6));
  const room = (beta) => Math.max(17, 4 * format(beta).length + 4);
  const chosen = [];
  for (const beta of candidates) {
    const apart = (other) => Math.abs(place(other) - place(beta)) >= room(beta) + room(other);
    const free = chosen.every(apart);
    if (beta >= lower && beta <= upper && free) chosen.push(beta);
  }
  return chosen;
}

function drawLanes(chart, part, place, left, right, top) {
  part.choices.forEach((choice, i) => {
    const y = top + 18 * i + 9;
    line(chart, left, y, right, y, "grid");
    const name = { class: choice.own ? "choice-fill" : "name", "text-anchor": "end" };
    label(chart, left - 10, y + 4, left - 12, choice.strategy, name);
    if (!known(choice.beta)) return;
    const mixed = choice.weights.length > 0;
    const dots = mixed ? choice.weights : [[choice.beta, 1]];
    const kind = choice.own ? "choice-fill" : "other-fill";
    for (const [beta, weight] of dots) {
      const r = Math.max(1.5, (choice.own ? 5 : 4) * Math.sqrt(weight));
      svg("circle", chart, { cx: place(beta), cy: y, r, class: kind });
    }
    const [first, last] = [dots[0], dots[dots.length - 1]].map(([beta]) => place(beta));
    const beside = last > right - 52 ? { x: first - 9, "text-anchor": "end" } : { x: last + 9 };
    const colour = choice.own ? "choice-fill halo" : "halo";
    const words = mixed ? "mixed" : format(choice.beta);
    svg("text", chart, { ...beside, y: y + 4, class: colour }, words);
  });
}

function drawRisk(part) {
  const bottom = 288;
  const lanesTop = bottom + 8;
  const end = lanesTop + 18 * part.choices.length + 4;
  const chosen = part.mixed ? `a mixture, ${part.mixed}` : `beta ${format(part.betas[part.at])}`;
  const describe = `Estimated risk over beta. Choice: ${chosen}`;
  const { chart, width } = begin("risk-chart", end + 40, describe);
  const longest = Math.max(7, ...part.choices.map((choice) => choice.strategy.length));
  const left = clamp(7 * longest + 12, 52, 0.3 * width);
  const right = width - 16;
  const [lower, upper] = [part.betas[0], part.betas[part.betas.length - 1]];
  const { grain } = part;
  const measure = (beta) => Math.log1p(clamp(beta - lower, 0, upper - lower) / (lower + grain));
  const place = scale([0, measure(upper)], [left, right]);
  const at = (beta) => (known(beta) ? place(measure(beta)) : null);
  const range = interesting(part);
  const height = scale(range, [bottom, 26]);

  svg("text", chart, { x: 0, y: 12 }, `estimated ${data.risk_name} risk`);
  verticalAxis(chart, height, ticks(range, 7), left, right, 4);
  horizontalAxis(chart, at, betaTicks(lower, upper, grain, at), 26, end);
  const title = { x: (left + right) / 2, y: end + 35, "text-anchor": "middle" };
  const logarithmic = lower + grain < 0.3 * upper;
  const from = lower > grain ? "" : ` above ${format(grain, 1)}`;
  svg("text", chart, title, logarithmic ? `β, on a logarithmic scale${from}` : "β");

  if (part.beta_range) {
    const [from, to] = part.beta_range.map(at);
    const size = { width: Math.max(to - from, 1), height: bottom - 26 };
    svg("rect", chart, { x: from, y: 26, ...size, class: "range-fill", id: "beta-range" });
  }
  const bayes = bayesIndex(part);
  if (bayes >= 0) line(chart, at(1), 26, at(1), end, "bayes dashed");
  const follower = line(chart, 0, 26, 0, end, "now-thin");
  drawLanes(chart, part, at, left, right, lanesTop);
  const inner = frame(chart, left - 1, 20, right + 2, bottom);
  svg("path", inner, { d: path(part.betas.map(at), part.risk.map(height)), class: "curve" });
  if (bayes >= 0 && known(part.bayes_risk)) {
    const y = height(part.bayes_risk) - 5;
    svg("rect", chart, { x: at(1) - 5, y, width: 10, height: 10, class: "bayes-fill" });
  }
  drawChoice(chart, part, at, height);
  const marker = svg("circle", chart, { r: 8, class: "now-dot", id: "marker", "fill-opacity": 0 });
  state.movers.push((index) => {
    const x = at(part.betas[index]);
    follower.setAttribute("x1", x);
    follower.setAttribute("x2", x);
    marker.setAttribute("cx", x);
    marker.setAttribute("cy", clamp(height(riskAt(part, index) ?? range[1]), 20, bottom));
  });
}

function drawChoice(chart, part, place, height) {
  const risk = part.choice_risk;
  if (!known(risk)) return;
  const [x, error] = [place(part.betas[part.at]), part.standard_error];
  if (known(error)) {
    const [low, high] = [height(risk - error), height(risk + error)];
    const bar = `M${x} ${low}V${high}M${x - 5} ${low}h10M${x - 5} ${high}h10`;
    svg("path", chart, { d: bar, class: "choice-line", id: "error-bar" });
  }
  svg("circle", chart, { cx: x, cy: height(risk), r: 5, class: "choice-fill", id: "choice-dot" });
}

// --- posterior of the coefficients --------------------------------------------------------------

/** Intervals to draw rows in: one for all, one for each, and whether the rows need the latter. */
function spans(rows) {
  const common = [Math.min(0, ...rows.map((r) => r[0])), Math.max(0, ...rows.map((r) => r[1]))];
  const own = rows.map(([low, high]) => {
    const width = high - low || Math.abs(low) || 1;
    if (low > 0 && low < 0.6 * width) return [-0.1 * width, high];
    if (high < 0 && high > -0.6 * width) return [low, 0.1 * width];
    return low === high ? [low - width, high + width] : [low, high];
  });
  if (common[0] === common[1]) common.splice(0, 2, -1, 1);
  const narrowest = Math.min(...rows.map(([low, high]) => high - low));
  return { common, own, differ: common[1] - common[0] > 20 * narrowest };
}

/** Intervals that hold the densities of the choice and of Bayes, one for each coefficient. */
function densitySpans(part) {
  const { names } = part.marginals;
  const at = [part.at, bayesIndex(part)].filter((i) => i >= 0);
  return spans(names.map((_, j) => {
    const drawn = at.map((i) => densityPoints(part.marginals, i, j)).filter((d) => d.wide);
    const ends = drawn.flatMap((d) => d.xs.filter((_, k) => d.heights[k] > 0.0015));
    return ends.length === 0 ? [-1, 1] : [Math.min(...ends), Math.max(...ends)];
  }));
}

/** Points of a density; it is wide unless it has no width, or no end of it. */
function densityPoints(marginals, index, row) {
  const [mean, offsets] = [marginals.mean[index][row], marginals.offset[index][row]];
  const [heights, last] = [marginals.height[index][row], offsets.length - 1];
  const flat = !known(offsets[0]) || !known(offsets[last]);
  const wide = known(mean) && !flat && offsets[last] > offsets[0] && heights.every(known);
  return { mean, xs: offsets.map((offset) => mean + offset), heights, flat, wide };
}

/** Height at x on the line through the points, and nothing beyond them. */
function between(xs, heights, x) {
  const above = xs.findIndex((each) => each >= x);
  if (above < 0) return 0;
  if (xs[above] === x) return heights[above];
  if (above === 0) return 0;
  const share = (x - xs[above - 1]) / (xs[above] - xs[above - 1]);
  return heights[above - 1] + share * (heights[above] - heights[above - 1]);
}

/** Where to evaluate a density: over the whole range, and at its points. */
function densityGrid(points, [low, high]) {
  const xs = [...points];
  for (let k = 0; k <= 60; k++) xs.push(low + (k / 60) * (high - low));
  return xs.filter((x) => x >= low && x <= high).sort((a, b) => a - b);
}

/** Outline of a density without its flat tails, and the area beneath it. */
function densityPaths(marginals, index, row, range, place, base, tall) {
  const { mean, xs: points, heights, flat, wide } = densityPoints(marginals, index, row);
  if (!known(mean)) return { outline: "", area: "" };
  if (!wide && !flat) return { outline: `M${place(mean)} ${base}V${base - tall}`, area: "" };
  // Without an end the posterior is flat, as an improper prior is.
  const tallness = (x) => (wide ? between(points, heights, x) : 1);
  const xs = densityGrid(wide ? points : [], range).filter((x) => tallness(x) > 0.0015);
  if (xs.length === 0) return { outline: "", area: "" };
  const outline = path(xs.map(place), xs.map((x) => base - tall * tallness(x)));
  const [from, to] = [place(xs[0]), place(xs[xs.length - 1])].map((x) => x.toFixed(1));
  return { outline, area: `M${from} ${base}L${outline.slice(1)}L${to} ${base}Z` };
}

function drawRidges(part) {
  const { marginals } = part;
  const own = byId("own").checked;
  const { common, own: each } = densitySpans(part);
  const [rowHeight, tall] = own ? [50, 34] : [42, 38];
  const bottom = 8 + rowHeight * marginals.names.length;
  const describe = `Posterior densities of coefficients at the slider's beta${andUnderBayes}`;
  const { chart, width } = begin("ridge-chart", bottom + (own ? 8 : 24), describe);
  const longest = Math.max(0, ...marginals.names.map((name) => shown(name).length));
  const left = clamp(7 * longest + 14, 48, 0.28 * width);
  const right = width - 14;
  const bayes = bayesIndex(part);
  if (!own) {
    const place = scale(common, [left, right]);
    horizontalAxis(chart, place, ticks(common, width / 90), 4, bottom);
    line(chart, place(0), 4, place(0), bottom, "zero");
  }
  marginals.names.forEach((name, row) => {
    const range = own ? each[row] : common;
    const place = scale(range, [left, right]);
    const base = 8 + rowHeight * (row + 1) - (own ? 14 : 2);
    const shape = (i) => densityPaths(marginals, i, row, range, place, base, tall);
    const attributes = { class: "name", "text-anchor": "end" };
    label(chart, left - 10, base - 5, left - 12, shown(name), attributes);
    if (own) drawOwnAxis(chart, range, place, left, right, base, tall);
    line(chart, left, base, right, base, own ? "axis" : "grid");
    const fill = svg("path", chart, { class: "now-fill" });
    if (bayes >= 0) svg("path", chart, { d: shape(bayes).outline, class: "bayes dashed" });
    const outline = svg("path", chart, { class: "now ridge" });
    state.movers.push((index) => {
      const now = shape(index);
      outline.setAttribute("d", now.outline);
      fill.setAttribute("d", now.area);
    });
  });
}

function drawOwnAxis(chart, range, place, left, right, base, tall) {
  const small = { y: base + 12, class: "small" };
  const contains = range[0] < 0 && range[1] > 0;
  svg("text", chart, { ...small, x: left }, format(range[0]));
  svg("text", chart, { ...small, x: right, "text-anchor": "end" }, format(range[1]));
  if (!contains) return;
  line(chart, place(0), base - tall, place(0), base, "zero");
  if (place(0) - left > 44 && right - place(0) > 44) {
    svg("text", chart, { ...small, x: place(0), "text-anchor": "middle" }, "0");
  }
}

// --- forecasts along one input ------------------------------------------------------------------

function bandRange(part, probabilities) {
  if (probabilities) return [-0.04, 1.04];
  const { band } = part;
  const at = [part.at, bayesIndex(part)].filter((i) => i >= 0);
  const drawn = at.flatMap((i) => [...band.low[i], ...band.high[i]]);
  const all = [...drawn, ...band.points.map((p) => p[1])].filter(known);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const room = 0.04 * (high - low || 1);
  return [low - room, high + room];
}

function describeBand(band) {
  const drawn = band.points.length;
  const some = drawn < band.rows ? ` ${drawn} of ${band.rows} points are drawn.` : "";
  byId("band-caption").textContent = data.band + some;
}

function drawBand(part) {
  const { band } = part;
  byId("band-section").hidden = !band;
  byId("ridge-section").classList.toggle("wide", Boolean(band));
  if (!band) return;
  const probabilities = data.held_out.kind === "probabilities";
  describeBand(band);
  const bottom = 372;
  const describe = `Forecast over the input at the slider's beta${andUnderBayes}, with the data`;
  const { chart, width } = begin("band-chart", bottom + 40, describe);
  const [left, right] = [52, width - 14];
  const inputs = [...band.grid, ...band.points.map((p) => p[0])].filter(known);
  const domain = [Math.min(...inputs), Math.max(...inputs)];
  const range = bandRange(part, probabilities);
  const place = scale(domain, [left, right]);
  const height = scale(range, [bottom, 26]);
  const response = shown(band.response_name);
  label(chart, 0, 12, width, probabilities ? `probability: ${response}` : response, {});
  verticalAxis(chart, height, ticks(probabilities ? [0, 1] : range, 5), left, right);
  horizontalAxis(chart, place, ticks(domain, width / 90), 26, bottom);
  const title = { "text-anchor": "middle" };
  label(chart, (left + right) / 2, bottom + 35, right - left, shown(band.input_name), title);

  const inner = frame(chart, left, 24, right, bottom);
  const xs = band.grid.map(place);
  const along = (values) => path(xs, values.map(height));
  const area = svg("path", inner, { class: "now-fill", id: "band-area" });
  drawPoints(inner, band, place, height, probabilities);
  const bayes = bayesIndex(part);
  if (bayes >= 0) {
    const ends = along(band.low[bayes]) + along(band.high[bayes]);
    svg("path", inner, { d: ends, class: "bayes dashed", id: "band-bayes" });
  }
  const mean = svg("path", inner, { class: "now", id: "band-mean" });
  state.movers.push((index) => {
    const back = path([...xs].reverse(), band.high[index].map(height).reverse());
    area.setAttribute("d", `${along(band.low[index])}${back.replace("M", "L")}`);
    mean.setAttribute("d", along(band.mean[index]));
  });
}

function drawPoints(parent, band, place, height, probabilities) {
  const kept = band.points.filter(([x, y]) => known(x) && known(y));
  // Multiples of the golden ratio spread evenly, and the same way each time.
  const apart = (i) => (probabilities ? 0.07 * (((i * 0.618034) % 1) - 0.5) : 0);
  const dot = ([x, y], i) => `M${place(x).toFixed(1)} ${height(y + apart(i)).toFixed(1)}h0`;
  svg("path", parent, { d: kept.map(dot).join(""), class: "points" });
}

// --- table of coefficients ----------------------------------------------------------------------

function forest(cell, coefficient, [low, high]) {
  const picture = svg("svg", cell, { "aria-hidden": "true" });
  const percent = (value) => `${clamp(scale([low, high], [2, 98])(value), 0, 100).toFixed(2)}%`;
  if (low <= 0 && high >= 0) line(picture, percent(0), -1, percent(0), 36, "zero");
  if (data.bayes) whisker(picture, coefficient.bayes, percent, 12, "bayes", "bayes-fill");
  whisker(picture, coefficient.calibrated, percent, 22, "choice-line", "choice-fill");
}

function whisker(picture, { mean, low, high }, place, y, kind, fill) {
  if (known(low) && known(high)) line(picture, place(low), y, place(high), y, kind);
  if (known(mean)) svg("circle", picture, { cx: place(mean), cy: y, r: 3.5, class: fill });
}

function coefficientRow(body, coefficient, span) {
  const row = html("tr", body);
  const name = shown(coefficient.name);
  html("span", html("th", row, null, { scope: "row" }), name, { class: "clamped", title: name });
  for (const who of data.bayes ? ["bayes", "calibrated"] : ["calibrated"]) {
    const cell = html("td", row, null, { class: who === "calibrated" ? who : "plain" });
    const { mean, low, high } = coefficient[who];
    cell.append(`${format(mean)} `);
    html("small", cell, `[${format(low)}, ${format(high)}]`);
  }
  forest(html("td", row), coefficient, span);
}

function coefficientTable(parent, coefficients, span) {
  const table = html("table", parent, null, { class: "coefficients" });
  const head = html("tr", html("thead", table));
  const bayes = data.bayes ? ["Bayes"] : [];
  for (const name of ["Coefficient", ...bayes, capital(data.choice_name), ""]) {
    const column = html("th", head, name, { scope: "col" });
    if (name === "") html("span", column, "Picture", { class: "spoken" });
  }
  const body = html("tbody", table);
  coefficients.forEach((coefficient, i) => coefficientRow(body, coefficient, span[i]));
}

function drawCoefficients({ coefficients, n_coefficients: all }) {
  const ends = coefficients.map(({ bayes, calibrated }) => {
    const all = [bayes, calibrated].filter(Boolean).flatMap((i) => [i.mean, i.low, i.high]).filter(known);
    return all.length === 0 ? [0, 0] : [Math.min(...all), Math.max(...all)];
  });
  const { common, own, differ } = spans(ends);
  const span = coefficients.map((_, i) => (differ ? own[i] : common));
  const how = differ ? "Each picture has its own scale" : "All pictures have the same scale";
  const which = coefficients.length < all
    ? ` of the ${coefficients.length} of ${all} that are the most standard deviations from zero ` +
      "(--json prints all)"
    : "";
  byId("coefficients-caption").textContent =
    `Posterior mean and 95 % interval${which}. ${data.reading} ${how}; a vertical line is zero. ` +
    data.widths;
  const place = byId("coefficients");
  place.replaceChildren();
  const most = coefficients.length <= 18 ? coefficients.length : 15;
  coefficientTable(place, coefficients.slice(0, most), span);
  if (most === coefficients.length) return;
  const rest = html("details", place);
  html("summary", rest, `${coefficients.length - most} more coefficients`);
  coefficientTable(rest, coefficients.slice(most), span.slice(most));
}

// --- rows held out ------------------------------------------------------------------------------

function drawReliability() {
  const { kind } = data.held_out;
  const describe = "Forecast against observed frequencies on held-out rows, with the diagonal";
  const widest = Math.min(byId("reliability-chart").parentElement.clientWidth, 440);
  const bottom = widest - 20;
  const { chart, width } = begin("reliability-chart", bottom + 40, describe, 440);
  const [left, right, top] = [40, width - 14, 26];
  const place = scale([0, 1], [left, right]);
  const height = scale([0, 1], [bottom, top]);
  const [across, up] = kind === "intervals"
    ? ["promised: level of the interval", "happened: share of responses inside"]
    : ["promised: probability of the class", "happened: share of the class"];
  svg("text", chart, { x: 0, y: 12 }, up);
  const title = { x: (left + right) / 2, y: bottom + 35, "text-anchor": "middle" };
  svg("text", chart, title, across);
  verticalAxis(chart, height, ticks([0, 1], 5), left, right);
  horizontalAxis(chart, place, ticks([0, 1], 5), top, bottom);
  line(chart, place(0), height(0), place(1), height(1), "zero");
  drawKept(chart, data.held_out.bayes, (x) => place(x) - 2, height, "bayes", "bayes-fill");
  const calibrated = data.held_out.calibrated;
  drawKept(chart, calibrated, (x) => place(x) + 2, height, "choice-line", "choice-fill");
}

function drawKept(chart, reliability, place, height, kind, fill) {
  const { promised, happened, error } = reliability;
  const kept = promised.map((_, i) => i).filter((i) => known(promised[i]) && known(happened[i]));
  const [xs, ys] = [kept.map((i) => place(promised[i])), kept.map((i) => height(happened[i]))];
  svg("path", chart, { d: path(xs, ys), class: kind, "stroke-opacity": 0.6 });
  kept.forEach((i, k) => {
    const reach = error[i] ?? 0;
    const [low, high] = [-reach, reach].map((e) => height(clamp(happened[i] + e, 0, 1)));
    line(chart, xs[k], low, xs[k], high, kind);
    const dot = kind === "bayes"
      ? svg("rect", chart, { x: xs[k] - 3.5, y: ys[k] - 3.5, width: 7, height: 7, class: fill })
      : svg("circle", chart, { cx: xs[k], cy: ys[k], r: 4, class: fill });
    svg("title", dot, {}, `promised ${format(promised[i])}, happened ${format(happened[i])}`);
  });
}

// --- the page as a whole ------------------------------------------------------------------------

function drawTiles(part) {
  byId("tile-beta").textContent = part.mixed ? "mixed" : format(part.betas[part.at]);
  if (part.mixed) html("small", byId("tile-beta"), ` ${part.mixed}`);
  else if (part.beta_range) {
    const [low, high] = part.beta_range.map((beta) => format(beta));
    html("small", byId("tile-beta"), ` ${low} to ${high}`);
  }
  for (const key of document.querySelectorAll(".range-key")) key.hidden = !part.beta_range;
  byId("range-meaning").textContent = part.range_meaning;
  byId("mixed-caption").hidden = part.choices.every((choice) => choice.weights.length === 0);
  const error = part.standard_error;
  byId("tile-risk").textContent = rounded(part.choice_risk, error);
  byId("error-key").hidden = !known(error);
  const tiles = [["tile-risk", error]];
  if (data.bayes) {
    byId("tile-bayes").textContent = rounded(part.bayes_risk, error);
    byId("tile-gain").textContent = rounded(part.gain, part.gain_error);
    byId("tile-verdict").textContent = part.verdict;
    byId("verdict").hidden = !part.verdict;
    tiles.push(["tile-gain", part.gain_error]);
  }
  for (const [tile, sigma] of tiles) {
    if (known(sigma)) html("small", byId(tile), ` ± ${rounded(sigma, sigma)}`);
  }
}

function move(index) {
  const { part } = state;
  state.index = index;
  const where = index === part.at ? "choice" : index === bayesIndex(part) ? "Bayes" : "";
  const mixed = part.mixed && index === part.at;
  const beta = mixed ? "mixed" : `= ${format(part.betas[index])}`;
  const risk = rounded(riskAt(part, index), part.standard_error);
  byId("slider").value = index;
  byId("slider").setAttribute("aria-valuetext", `beta ${beta}, risk ${risk} ${where}`.trim());
  byId("readout-beta").textContent = `β ${beta}`;
  byId("readout-risk").textContent = `risk ${risk}${where ? ` (${where})` : ""}`;
  document.body.dataset.at = where;
  for (const mover of state.movers) mover(index);
}

function draw() {
  state.movers = [];
  drawRisk(state.part);
  drawBand(state.part);
  drawRidges(state.part);
  if (data.held_out.calibrated) drawReliability();
  move(state.index);
}

function showPart(part) {
  state.part = part;
  state.index = part.at;
  const bayes = bayesIndex(part) >= 0;
  byId("slider").max = part.betas.length - 1;
  if (data.bayes) byId("to-bayes").hidden = !bayes;
  for (const key of document.querySelectorAll("#moving .bayes-key")) key.hidden = !bayes;
  byId("own").checked = densitySpans(part).differ;
  byId("own-label").hidden = part.marginals.names.length < 2;
  byId("ridge-section").hidden = part.marginals.names.length === 0;
  const [drawn, total] = [part.marginals.names.length, part.marginals.total];
  byId("ridge-caption").textContent = drawn < total
    ? `Drawn are ${drawn} of ${total}, the most standard deviations from zero; for more see the ` +
      "table of coefficients."
    : "";
  drawTiles(part);
  drawCoefficients(part);
  draw();
}

function listen() {
  byId("slider").addEventListener("input", (event) => move(Number(event.target.value)));
  byId("to-choice").addEventListener("click", () => move(state.part.at));
  if (data.bayes) byId("to-bayes").addEventListener("click", () => move(bayesIndex(state.part)));
  byId("own").addEventListener("change", draw);
  byId("part").addEventListener("change", (event) => showPart(data.parts[event.target.value]));
  window.addEventListener("beforeprint", () => {
    for (const rest of document.querySelectorAll("details")) rest.open = true;
  });
  let width = document.body.clientWidth;
  window.addEventListener("resize", () => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    draw();
  });
}

byId("part-label").hidden = data.parts.length < 2;
data.parts.forEach((part, i) => html("option", byId("part"), shown(part.name), { value: i }));
listen();
showPart(data.parts[0]);
