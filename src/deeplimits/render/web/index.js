// The overview: thumbnails, search, filters, and the table of all verdicts, sorted by any of its columns.
"use strict";
(function (dl) {
  const get = (id) => document.getElementById(id), thumbs = dl.thumbs || {};
  const cards = [...document.querySelectorAll(".limits li")], lines = [...document.querySelectorAll("#verdicts tbody tr")];
  const seen = "IntersectionObserver" in window ? new IntersectionObserver((found) => {
    for (const one of found) if (one.isIntersecting) { paint(one.target); seen.unobserve(one.target); }
  }, { rootMargin: "300px" }) : null;
  function paint(card) {
    const picture = thumbs[card.dataset.name];
    if (picture) dl.draw(card.querySelector(".thumb"), picture, { small: true, width: 250, height: 106, label: "" });
    const svg = card.querySelector("svg");
    if (svg) { svg.setAttribute("aria-hidden", "true"); svg.removeAttribute("role"); }
  }
  cards.forEach((card) => (seen ? seen.observe(card) : paint(card)));

  function choose() {
    const words = get("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const room = get("room").value, kind = get("kind").value, verdict = get("verdict").value;
    const fits = (one) => words.every((word) => one.dataset.words.includes(word)) && (!room || one.dataset.room === room)
      && (!kind || one.dataset.kinds.split(" ").includes(kind)) && (!verdict || one.dataset.outcome === verdict);
    let count = 0;
    for (const card of cards) { card.hidden = !fits(card); count += !card.hidden; }
    for (const line of lines) line.hidden = !fits(line);
    for (const section of document.querySelectorAll("section.room")) section.hidden = !section.querySelector("li:not([hidden])");
    get("count").textContent = `${count} of ${cards.length} limits`;
    const address = new URLSearchParams();
    if (words.length) address.set("q", get("search").value);
    for (const [key, value] of [["room", room], ["kind", kind], ["verdict", verdict]]) if (value) address.set(key, value);
    try { history.replaceState(null, "", address.toString() ? "#" + address : location.pathname + location.search); } catch (error) { return; }
  }
  for (const id of ["search", "room", "kind", "verdict"]) get(id).addEventListener("input", choose);

  function view(table) {
    get("cards").hidden = table; get("verdicts").hidden = !table;
    get("as-cards").setAttribute("aria-pressed", String(!table)); get("as-table").setAttribute("aria-pressed", String(table));
  }
  get("as-cards").addEventListener("click", () => view(false));
  get("as-table").addEventListener("click", () => view(true));

  for (const head of document.querySelectorAll("#verdicts th")) {
    const button = head.querySelector("button");
    if (!button) continue;
    button.addEventListener("click", () => {
      const column = head.cellIndex, up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of document.querySelectorAll("#verdicts th[aria-sort]")) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (line) => { const cell = line.cells[column]; return cell.dataset.value !== undefined ? Number(cell.dataset.value || NaN) : cell.textContent; };
      lines.sort((a, b) => {
        const [first, second] = [key(a), key(b)];
        if (typeof first === "string") return (up ? 1 : -1) * first.localeCompare(second);
        if (Number.isNaN(first) || Number.isNaN(second)) return Number.isNaN(first) - Number.isNaN(second);  // what has no number stands last
        return (up ? 1 : -1) * (first - second);
      });
      document.querySelector("#verdicts tbody").append(...lines);
    });
  }
  const given = new URLSearchParams(location.hash.slice(1));
  get("search").value = given.get("q") || "";
  for (const id of ["room", "kind", "verdict"]) if ([...get(id).options].some((one) => one.value === given.get(id))) get(id).value = given.get(id);
  if ([...given].length) choose();
  document.body.dataset.ready = "1";
})(window.deeplimits);
