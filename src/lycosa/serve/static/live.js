// Keeps the pages live: numbers by server-sent events, charts from the timeline, buttons that steer. Everything that
// comes from the server is set as text, never as markup.
"use strict";

const number = new Intl.NumberFormat("en");
const forms = {
  count: (value) => number.format(value),
  rate: (value) => (value >= 100 ? number.format(Math.round(value)) : value.toFixed(value >= 1 ? 1 : 2)),
  size: (value) => { const units = ["B", "kB", "MB", "GB", "TB"]; let at = 0; while (value >= 999.5 && at < 4) { value /= 1000; at += 1; } return (at === 0 || value >= 99.95 ? Math.round(value) : value.toFixed(1)) + " " + units[at]; },
  size_s: (value) => forms.size(value) + "/s",
  span: (value) => { if (value > 0 && value < 1) return Math.round(1000 * value) + " ms"; if (value < 9.95) return value.toFixed(1) + " s"; const s = Math.round(value), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24); return d ? `${d}d ${h % 24}h` : h ? `${h}h ${String(m % 60).padStart(2, "0")}m` : m ? `${m}m ${String(s % 60).padStart(2, "0")}s` : `${s} s`; },
};
const shown = (value, form) => (forms[form] || forms.count)(value);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// A time in the viewer's zone, without the date where it is today.
function own(at) {
  const isToday = at.toDateString() === new Date().toDateString();
  return at.toLocaleString(undefined, isToday ? { timeStyle: "medium" } : { dateStyle: "short", timeStyle: "medium" });
}

// Sentences of the server name times in UTC.
const ownTimes = (words) => words.replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/g, (at) => own(new Date(at.replace(" ", "T"))));

function ownTime(root = document) {
  for (const each of all("time", root)) {
    const at = new Date(each.dateTime);
    if (!Number.isNaN(at.valueOf())) { each.title = at.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" }); each.textContent = own(at); }
  }
}

for (const each of all("option[data-at]")) each.textContent = each.textContent.split(" · ")[0] + " · " + new Date(each.dataset.at).toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });

for (const each of all(".says li:not(:has(*)), .says:not(:has(*))")) each.textContent = ownTimes(each.textContent);

function toast(words, undo) {
  const box = document.getElementById("toast");
  box.textContent = words.replace(/^[a-z]/, (first) => first.toUpperCase());
  if (undo) { const button = document.createElement("button"); button.textContent = "Undo"; button.onclick = undo; box.append(button); }
  box.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { box.hidden = true; }, undo ? 12000 : 6000);
}

async function post(path, body, undoable) {
  let said;
  try {
    const answer = await fetch("/api/v1" + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    said = await answer.json();
    if (!answer.ok) { const detail = said.detail; toast(typeof detail === "string" ? detail : "This value cannot be."); return null; }
  } catch { toast("The server does not answer: is lycosa serve still running?"); return null; }
  toast(said.says, undoable && said.undo && Object.keys(said.undo).length ? () => post("/steer", { action: "set", settings: said.undo }) : null);
  return said;
}

let wasBeginning = document.querySelector(".state [data-fact=state]")?.textContent === "beginning";

function show(facts, { isWhole = true } = {}) {
  if (isWhole && wasBeginning && facts.state !== "beginning") { location.reload(); return; }
  for (const each of all("[data-fact]")) { const value = facts[each.dataset.fact]; if (value !== undefined) each.textContent = typeof value === "number" ? shown(value, each.dataset.form) : ownTimes(value); }
  for (const each of all("[data-state]")) each.className = "dot " + facts.state;
  for (const each of all("[data-when]")) each.hidden = !each.dataset.when.split(" ").includes(facts.state);
  if (!isWhole) return;
  for (const each of all("[data-left]")) each.textContent = typeof facts.left_s === "number" ? `, ${shown(facts.left_s, "span")} left` : "";
  for (const each of all("[data-limit]")) { each.hidden = typeof facts.limit_share !== "number"; each.querySelector("meter").value = facts.limit_share || 0; }
  for (const table of all("[data-bars]")) fillBars(table, facts[table.dataset.bars] || {});
  for (const list of all("[data-list]")) fillList(list, facts[list.dataset.list] || []);
}

// What stands in place of the state when there is none: nothing can be steered meanwhile.
function trouble(state, says) { show({ state, sentence: says }, { isWhole: false }); for (const each of all("[data-state]")) each.className = "dot problem"; }

function leading(path, name, value) { const made = document.createElement("a"); made.href = `${path}?${name}=${encodeURIComponent(value)}`; made.textContent = value; return made; }

const inWords = (name) => name.replaceAll("-", " ");

const described = {
  slowest: (each) => [leading("/hosts", "q", each.host), `${shown(each.mean_s, "span")} an answer, ${shown(each.queued)} queued`],
  retries: (each) => [leading("/url", "url", each.url), `failed: ${inWords(each.failed)}, again ${each.in_s ? "in " + shown(each.in_s, "span") : "when its turn comes"}`],
};

function fillList(list, found) {
  if (list.contains(document.activeElement)) return;  // whoever is on a link with the keyboard stays there
  list.replaceChildren(...found.map((each) => {
    const item = document.createElement("li"), words = document.createElement("small"), [link, said] = described[list.dataset.list](each);
    words.textContent = said; item.append(link, " ", words); return item;
  }));
  if (!found.length) { const item = document.createElement("li"); item.className = "quiet"; item.textContent = "none"; list.append(item); }
}

function fillLog(events) {
  for (const body of all("[data-log] tbody")) {
    if (body.contains(document.activeElement)) continue;
    body.replaceChildren();
    for (const event of events) {
      const row = body.insertRow(), time = document.createElement("time"), head = document.createElement("th");
      time.dateTime = new Date(event.time * 1000).toISOString(); row.insertCell().append(time);
      head.scope = "row"; head.textContent = event.event; row.append(head);
      const cell = row.insertCell();
      for (const [key, value] of Object.entries(event)) {
        const said = Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : String(value);
        if (key === "time" || key === "event" || ["", "{}", "null"].includes(said)) continue;
        const pair = document.createElement("span"), name = document.createElement("b");
        pair.className = "pair"; name.textContent = key; pair.append(name, " ", key === "url" ? leading("/url", "url", value) : said); cell.append(pair, " ");
      }
    }
    ownTime(body);
  }
}

function fillBars(table, counts) {
  const rows = Object.entries(counts).sort((a, b) => b[1] - a[1]).slice(0, 8);
  const most = rows.length ? rows[0][1] : 1;
  const body = document.createElement("tbody");
  for (const [label, many] of rows) {
    const row = body.insertRow();
    const head = document.createElement("th"); head.scope = "row"; head.textContent = table.dataset.bars === "types" ? label : inWords(label); row.append(head);
    const cell = row.insertCell(); cell.className = "number"; cell.textContent = number.format(many);
    const bar = document.createElement("meter"); bar.min = 0; bar.max = most; bar.value = many; const last = row.insertCell(); last.className = "bar"; last.append(bar);
  }
  if (!rows.length) { const cell = body.insertRow().insertCell(); cell.className = "quiet"; cell.textContent = "none"; }
  table.tBodies[0].replaceWith(body);
}

const SVG = "http://www.w3.org/2000/svg";
function svg(name, attributes, words) { const made = document.createElementNS(SVG, name); for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value); if (words !== undefined) made.textContent = words; return made; }

function drawChart(figure, points) {
  const key = figure.dataset.chart, form = figure.dataset.form, width = Math.max(200, figure.clientWidth - 24), height = 92, left = 4, bottom = 14, top = 14;
  const known = points.filter((point) => typeof point[key] === "number");
  figure.querySelector("svg")?.remove();
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  figure.append(picture);
  if (known.length < 2) { picture.append(svg("text", { x: left, y: height / 2 }, "too few samples yet")); return; }
  const start = known[0].at_unix, end = known[known.length - 1].at_unix, most = Math.max(...known.map((point) => point[key]), 1e-9);
  // The time between two runs is left out, or it would be most of the chart.
  const spans = points.map((point, at) => (at && !point.begins ? point.at_unix - points[at - 1].at_unix : 0));
  const whole = spans.reduce((sum, span) => sum + span, 0), breaks = points.slice(1).filter((point) => point.begins), gap = breaks.length < 20 ? whole / 50 : 0;
  let clock = 0;
  const places = new Map(points.map((point, at) => [point, (clock += spans[at] + (at && point.begins ? gap : 0))]));
  const first = places.get(known[0]), x = (point, before = 0) => left + ((width - 2 * left) * (places.get(point) - before - first)) / Math.max(clock - first, 1e-9), y = (point) => top + (height - top - bottom) * (1 - point[key] / most);
  let path = "", pen = false;
  for (const point of points) { if (typeof point[key] !== "number") { pen = false; continue; } path += `${pen ? "L" : "M"}${x(point).toFixed(1)} ${y(point).toFixed(1)}${pen ? "" : "h0"}`; pen = true; }
  picture.append(svg("line", { class: "axis", x1: left, x2: width - left, y1: height - bottom, y2: height - bottom }));
  for (const point of breaks) picture.append(svg("line", { class: "break", x1: x(point, gap / 2), x2: x(point, gap / 2), y1: top, y2: height - bottom }));
  for (const note of all("[data-breaks]")) note.hidden = !breaks.length;
  picture.append(svg("path", { class: "line", d: path }));
  const last = known[known.length - 1][key], end_word = document.querySelector(".dot.running, .dot.paused") ? "now" : "last";
  picture.append(svg("text", { x: left, y: 10 }, `most ${shown(most, form)}`), svg("text", { x: width - left, y: 10, "text-anchor": "end" }, `${end_word} ${shown(last, form)}`));
  const form_of_time = end - start > 86400 ? { dateStyle: "short", timeStyle: "short" } : { timeStyle: end - start < 600 ? "medium" : "short" };
  const time = (at) => new Date(at * 1000).toLocaleString(undefined, form_of_time);
  picture.append(svg("text", { x: left, y: height - 3 }, time(start)), svg("text", { x: width - left, y: height - 3, "text-anchor": "end" }, time(end)));
  picture.setAttribute("aria-label", `${figure.querySelector("figcaption").textContent}: ${end_word} ${shown(last, form)}, at most ${shown(most, form)}`);
}

function drawCharts(points, root = document) { for (const figure of all("[data-chart]", root)) drawChart(figure, points); }

function drawScatter(figure) {
  const points = JSON.parse(figure.dataset.scatter).map(([x, y]) => [Math.log10(x), Math.log10(y)]);
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]), width = 320, height = 200, pad = 44;
  const scale = (value, values, from, to) => { const low = Math.min(...values), high = Math.max(...values); return from + ((to - from) * (value - low)) / Math.max(high - low, 1e-9); };
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": figure.querySelector("figcaption").textContent, class: "tall" });
  picture.append(svg("path", { class: "line", d: points.map(([x, y], at) => `${at ? "L" : "M"}${scale(x, xs, pad, width - 6).toFixed(1)} ${scale(y, ys, height - pad, 8).toFixed(1)}`).join("") }));
  const times = (power) => `${Number((10 ** power).toPrecision(2)).toLocaleString("en")} ×`;
  const share = (power) => `${Number((100 * 10 ** power).toPrecision(2))} %`;
  picture.append(svg("line", { class: "axis", x1: pad, x2: width - 6, y1: height - pad + 4, y2: height - pad + 4 }), svg("line", { class: "axis", x1: pad - 4, x2: pad - 4, y1: 4, y2: height - pad + 4 }));
  picture.append(svg("text", { x: pad - 7, y: 12, "text-anchor": "end" }, share(Math.max(...ys))), svg("text", { x: pad - 7, y: height - pad, "text-anchor": "end" }, share(Math.min(...ys))));
  picture.append(svg("text", { x: pad, y: height - 6 }, `rank ${times(Math.min(...xs))}`), svg("text", { x: width - 6, y: height - 6, "text-anchor": "end" }, times(Math.max(...xs))));
  figure.append(picture);
}

ownTime();
for (const figure of all("[data-scatter]")) drawScatter(figure);
for (const charts of all("[data-moments]")) drawCharts(JSON.parse(charts.dataset.moments), charts);
for (const button of all("[data-steer]")) button.onclick = () => { if (!button.dataset.confirm || confirm(button.dataset.confirm)) post("/steer", { action: button.dataset.steer }); };
for (const button of all("[data-recrawl]")) button.onclick = () => { if (confirm(button.dataset.confirm)) post("/recrawl", { everything: button.dataset.recrawl === "all" }); };
for (const button of all("[data-host]")) button.onclick = () => { if (!button.dataset.confirm || confirm(button.dataset.confirm)) post("/hosts/steer", { host: button.dataset.host, action: button.dataset.act }, true); };
for (const form of all("[data-host-limit]")) form.onsubmit = (event) => { event.preventDefault(); post("/hosts/steer", { host: form.dataset.hostLimit, action: "limit", pages: Number(form.elements.pages.value) }, true); };
for (const form of all("[data-seeds]")) form.onsubmit = async (event) => { event.preventDefault(); const field = form.elements.urls; if (confirm(form.dataset.confirm) && await post("/seeds", { urls: field.value.split(/\s+/).filter(Boolean) })) field.value = ""; };
for (const form of all("[data-set]")) form.onsubmit = (event) => {
  event.preventDefault();
  const text = form.elements.value.value.trim(), kind = form.dataset.kind;
  const value = kind === "list" ? text.split(/\s+/).filter(Boolean) : kind === "flag" ? text === "true" : text === "" ? null : text;
  post("/steer", { action: "set", settings: { [form.dataset.set]: value } }, true);
};
document.addEventListener("keydown", (event) => { if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); document.getElementById("go").focus(); } });

if (document.querySelector("[data-live]")) {
  const events = new EventSource("/api/v1/events");
  let latest = new Date();
  events.addEventListener("status", (event) => { latest = new Date(); show(JSON.parse(event.data)); });
  events.addEventListener("timeline", (event) => drawCharts(JSON.parse(event.data)));
  events.addEventListener("log", (event) => fillLog(JSON.parse(event.data)));
  events.addEventListener("problem", (event) => trouble("problem", JSON.parse(event.data).says));
  events.onerror = () => trouble("not connected", `The server does not answer; the numbers are those of ${own(latest)}. It ends with the crawl that it was started for, or where lycosa serve runs: lycosa serve shows the collection again.`);
}
