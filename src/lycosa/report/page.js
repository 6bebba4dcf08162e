const tools = document.querySelector(".tools"), found = [...document.querySelectorAll("details[data-severity]")];
tools.hidden = false;
const field = tools.querySelector("input"), levels = [...tools.querySelectorAll("[data-level]")];
const apply = () => {
  const words = field.value.trim().toLowerCase();
  for (const each of found) {
    const wanted = levels.some(l => l.dataset.level === each.dataset.severity && l.getAttribute("aria-pressed") === "true");
    let hits = 0;
    for (const row of each.querySelectorAll("[data-row]")) {
      row.hidden = words !== "" && !row.textContent.toLowerCase().includes(words);
      hits += !row.hidden;
    }
    for (const group of each.querySelectorAll(".group")) {
      const named = group.querySelector("p").textContent.toLowerCase().includes(words);
      const rows = [...group.querySelectorAll("[data-row]")];
      if (words && named) { rows.forEach(row => { row.hidden = false; }); hits += rows.length; }
      group.hidden = words !== "" && !named && rows.every(row => row.hidden);
    }
    each.hidden = !wanted || (words !== "" && hits === 0);
    if (words && hits) each.open = true;
  }
};
field.addEventListener("input", apply);
for (const level of levels) level.addEventListener("click", () => {
  level.setAttribute("aria-pressed", level.getAttribute("aria-pressed") !== "true");
  apply();
});
const open = state => found.forEach(each => { each.open = state; });
tools.querySelector("[data-open]").addEventListener("click", event => {
  const all = found.every(each => each.open);
  open(!all);
  event.target.textContent = all ? "Open all" : "Close all";
});
addEventListener("beforeprint", () => open(true));
const show = () => { const named = location.hash && document.getElementById(location.hash.slice(1)); if (named && "open" in named) named.open = true; };
addEventListener("hashchange", show);
show();
