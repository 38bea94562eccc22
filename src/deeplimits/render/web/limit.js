// The page of one limit: in the atlas from data computed beforehand, in the explorer from the process that serves it.
"use strict";
(function (dl) {
  const body = document.body, name = body.dataset.limit, live = body.dataset.live === "1";
  const data = dl.limits[name];
  if (!data) return;
  const show = data.showcase, get = (id) => document.getElementById(id);
  const about = Object.fromEntries(data.parameters_about.map((one) => [one.name, one]));
  const rows = Object.fromEntries((show.sliders || []).map((row) => [row.name, row]));
  const base = Object.assign({}, show.values);
  const state = { values: Object.assign({}, base), over: show.over, first: show.first, panels: show.panels || [], charts: show.charts || [],
    sweep: null, ghosts: [], runs: [], message: "", fault: "" };
  dl.page = state;

  const make = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children);
    return made;
  };
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const isScanned = (key) => rows[key] && (live || rows[key].frames);
  const changed = () => Object.keys(base).filter((key) => !same(base[key], state.values[key]));
  const symbolOf = (key) => (about[key] && about[key].symbol) || key;
  const setting = (values) => {
    const apart = Object.keys(base).filter((key) => !same(base[key], values[key]));
    return apart.map((key) => `${symbolOf(key)} = ${written(values[key])}`).join(", ");
  };
  const written = (value) => Array.isArray(value) ? `[${value.length} points]` : typeof value === "number" ? dl.said(value, 5) : String(value);

  // ---- theory between what was computed beforehand ----

  const theoryMarks = (picture) => picture.marks.filter((mark) => mark.role !== "simulation");

  function expanded(panel, frame) {
    const own = theoryMarks(panel.picture), found = frame[panel.name];
    if (found === undefined) return own;
    if (found.marks) return found.marks;
    return own.map((mark, index) => Object.assign({}, mark, found[index]));
  }

  function between(a, b, share, log) {
    if (Array.isArray(a)) return a.map((one, index) => between(one, b[index], share, log));
    if (!dl.finite(a) || !dl.finite(b)) return share < 0.5 ? a : b;
    if (log && a > 0 && b > 0) return Math.exp((1 - share) * Math.log(a) + share * Math.log(b));
    return (1 - share) * a + share * b;
  }

  const alike = (a, b) => a.length === b.length && a.every((mark, index) => mark.mark === b[index].mark
    && ["x", "y"].every((key) => (mark[key] || []).length === (b[index][key] || []).length));

  function interpolated(row, value) {
    const values = row.values, last = values.length - 1;
    let k = 0;
    while (k < last - 1 && values[k + 1] <= value) k++;
    const map = row.log ? Math.log : (x) => x;
    let share = (map(value) - map(values[k])) / (map(values[k + 1]) - map(values[k]));
    share = Math.min(Math.max(share, 0), 1);
    if (share < 1e-9) share = 0;
    if (share > 1 - 1e-9) share = 1;
    const [a, b] = [row.frames[k], row.frames[k + 1]], near = share < 0.5 ? a : b;
    if (typeof near === "string") return near;
    const pair = typeof a === "string" || typeof b === "string" || share === 0 || share === 1 ? null : [a, b];
    return show.panels.map((panel) => {
      let marks = expanded(panel, share === 1 ? b : share === 0 ? a : near);
      if (pair) {
        const [before, after] = pair.map((frame) => expanded(panel, frame));
        if (alike(before, after)) {
          marks = before.map((mark, index) => {
            const other = after[index], made = Object.assign({}, mark);
            for (const key of ["x", "y", "low", "high", "place", "height", "value"]) {
              const log = key === "x" ? panel.picture.x.log : panel.picture.y.log;
              if (mark[key] !== undefined && other[key] !== undefined) made[key] = between(mark[key], other[key], share, log);
            }
            return made;
          });
        }
      }
      return Object.assign({}, panel, { picture: Object.assign({}, panel.picture, { marks }) });
    });
  }

  function stated() {
    const moved = changed();
    if (!moved.length) {
      state.message = "";
      state.panels = show.panels;
    } else {
      const found = interpolated(rows[moved[0]], state.values[moved[0]]);
      state.message = typeof found === "string" ? found : "";
      state.panels = typeof found === "string" ? [] : found;
    }
    const note = get("between"), from = rows[moved[0] || state.over];
    if (note) note.textContent = from && dl.finite(from.error) && from.values ? betweenSaid(from) : "";
    const row = rows[state.over];
    state.sweep = row && row.frames ? { over: state.over, values: row.values, numbers: numbersAlong(row) } : null;
    draw();
  }

  function betweenSaid(row) {
    const computed = `${dl.plain(symbolOf(row.name))} was computed at ${row.values.length} values`;
    if (row.whole || row.stepped) return `${computed}, and moves from one to the next.`;
    return `${computed}; between them it is interpolated, to within ${dl.said(Math.max(100 * row.error, 0.01), 2)} % of a panel's range.`;
  }

  function numbersAlong(row) {
    const found = {};
    for (const panel of show.panels) {
      if (!panel.number) continue;
      found[panel.name] = row.frames.map((frame) => typeof frame === "string" ? null : (expanded(panel, frame)[0] || {}).value ?? null);
    }
    return found;
  }

  // ---- pictures of the present state ----

  const valueOf = (panel) => { const mark = theoryMarks(panel.picture).find((one) => one.mark === "number"); return mark ? mark.value : null; };

  // Simulations of the present parameters and of those whose line was kept, whatever the parameter that is the axis.
  const isOf = (run, values, axis) => Object.keys(base).every((key) => key === axis || same(run.asked[key], values[key]));
  const runsAt = (axis) => state.runs.filter((run) => [state, ...state.ghosts].some((one) => isOf(run, one.values, axis)));

  function pictureOf(panel) {
    if (!panel.number) {
      const ghosts = state.ghosts.flatMap((ghost) => (ghost.panels[panel.name] || []).map((mark) => Object.assign({}, mark,
        { ghost: ghost.number, label: mark.label ? ghost.label : "" })));
      const runs = runsAt("").flatMap((run) => (run.marks[panel.name] || []));
      const atBase = !changed().length;
      const measured = atBase ? (panel.picture.marks.filter((mark) => mark.role === "simulation")) : [];
      const own = theoryMarks(panel.picture);
      const under = measured.concat(runs).filter((mark) => mark.mark === "histogram"), over = measured.concat(runs).filter((mark) => mark.mark !== "histogram");
      return Object.assign({}, panel.picture, { marks: [...under, ...ghosts, ...own, ...over] });
    }
    const sweep = state.sweep, here = valueOf(panel), row = rows[state.over];
    // Without a line along a parameter the number stands over the size, beside what was simulated.
    if (!sweep || !row || !sweep.numbers[panel.name]) return (!changed().length && (data.trends || {})[panel.name]) || panel.picture;
    const heights = sweep.numbers[panel.name], x = state.values[state.over];
    const marks = [{ mark: "line", x: sweep.values, y: heights, label: "theory" }];
    for (const ghost of state.ghosts) {
      if (ghost.over === state.over && ghost.sweep && ghost.sweep[panel.name]) {
        marks.unshift({ mark: "line", x: ghost.along, y: ghost.sweep[panel.name], label: ghost.label, ghost: ghost.number });
      }
    }
    const others = changed().filter((key) => key !== state.over);
    const spots = [];
    if (!others.length) {
      if (state.over === show.over) for (const spot of show.spots || []) if (spot.numbers[panel.name]) spots.push([spot.x, spot.numbers[panel.name]]);
      if (panel.measured) spots.push([base[state.over], panel.measured]);
    }
    for (const run of runsAt(state.over)) if (run.measured[panel.name]) spots.push([run.values[state.over], run.measured[panel.name]]);
    if (dl.finite(here)) marks.push({ mark: "points", role: "here", x: [x], y: [here], label: `here: ${dl.said(here, 5)}` });
    if (spots.length) {
      spots.sort((a, b) => a[0] - b[0]);
      const sizes = [...new Set(spots.map((spot) => spot[1].size))].join(", ");
      const what = spots.some((spot) => spot[1].nearest) ? "nearest of the simulations" : "simulation";
      const own = panel.own ? ", beside the theory of its own draw" : "";
      marks.push({ mark: "points", role: "simulation", label: `${what}, n = ${sizes}${own}`, x: spots.map((s) => s[0]), y: spots.map((s) => s[1].y),
        low: spots.map((s) => s[1].low), high: spots.map((s) => s[1].high) });
    }
    const all = heights.concat(spots.map((s) => s[1].y)).filter(dl.finite);
    // A chance that reaches one half is seen on a plain axis.
    const wide = panel.kind !== "Probability" || Math.max(...all) < 0.5;
    const log = wide && all.length && Math.min(...all) > 0 && Math.max(...all) > 50 * Math.min(...all);
    const one = about[state.over];
    return { x: { label: one.symbol ? one.doc.replace(new RegExp(",? ?" + one.symbol.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$"), "") : one.doc, symbol: one.symbol, log: row.log },
      y: { label: panel.label, symbol: panel.symbol, log }, marks };
  }

  const title = (one) => one.name.replace(/_/g, " ");

  function draw() {
    get("message").textContent = state.message || state.fault;
    const everything = state.charts.concat(state.panels);
    const holder = get("stage");
    if (!everything.length) {
      holder.replaceChildren(make("p", { class: "note" }, live ? (state.message || state.fault ? "Nothing is stated here." : "The theory is being computed.") : "The theorem says nothing at these parameters."));
      get("others").replaceChildren();
      return;
    }
    const first = everything.find((one) => one.name === state.first) || everything[0];
    const picture = first.kind ? pictureOf(first) : first.picture;
    get("shown").textContent = title(first);
    get("said").replaceChildren();
    if (first.kind) dl.html(saidOf(first), get("said"));
    dl.draw(holder, picture, { label: `${title(first)}: ${dl.plain(picture.y.label || "")} over ${dl.plain(picture.x.label || "")}; theory${picture.marks.some((m) => m.role === "simulation") ? " and simulation" : ""}` });
    state.drawn = { name: first.name, picture };
    const points = get("points");
    if (points) points.hidden = !picture.marks.some((mark) => mark.role === "simulation");
    const others = get("others");
    const cards = everything.filter((one) => one !== first).map((one) => {
      const figure = make("div", { class: "plot" });
      const card = make("div", { class: "card" }, make("h3", {}, make("button", { type: "button", onclick: () => { state.first = one.name; state.chosen = true; keep(); draw(); get("shown").focus(); } }, title(one)), ""), figure);
      if (one.kind) card.append(dl.html(saidOf(one), make("div", { class: "value" })));
      return [card, figure, one];
    });
    others.replaceChildren(...cards.map((card) => card[0]));
    for (const [, figure, one] of cards) {
      const shown = one.kind ? pictureOf(one) : one.picture;
      dl.draw(figure, shown, { height: 190, label: `${title(one)}, theory` });
      const legend = figure.querySelector(".legend");
      if (legend) legend.remove();
    }
    const table = get("numbers");
    if (table && table.open) fillNumbers();
  }

  function saidOf(panel) {
    const value = panel.number ? valueOf(panel) : null;
    if (dl.finite(value)) return `${panel.symbol || panel.label} = ${dl.said(value, 5)}`;
    return panel.said && !changed().length ? `${panel.kind}: ${panel.said}` : panel.kind;
  }

  function fillNumbers() {
    const table = get("numbers").querySelector("table");
    const lines = table_of(state.drawn.picture);
    table.replaceChildren(make("thead", {}, make("tr", {}, ...lines[0].map((cell) => make("th", { scope: "col" }, cell)))),
      make("tbody", {}, ...lines.slice(1, 400).map((line) => make("tr", {}, ...line.map((cell) => make("td", {}, cell))))));
  }

  function table_of(picture) {
    const found = [["mark", "label", dl.plain(picture.x.symbol || picture.x.label || "x"), dl.plain(picture.y.symbol || picture.y.label || "y"), "low", "high"]];
    const text = (value) => dl.finite(value) ? String(value) : "";
    for (const mark of picture.marks) {
      const label = dl.plain(mark.label || mark.role || "theory");
      if (mark.edges) mark.heights.forEach((height, k) => found.push([mark.mark, label, text((mark.edges[k] + mark.edges[k + 1]) / 2), text(height), "", ""]));
      else if (mark.mark === "field") mark.values.forEach((row, k) => row.forEach((value, c) => found.push([mark.mark, label, text(mark.x[c]), text(mark.y[k]), text(value), ""])));
      else if (Array.isArray(mark.x)) mark.x.forEach((x, k) => found.push([mark.mark, label, text(x), text((mark.y || [])[k]), text((mark.low || [])[k]), text((mark.high || [])[k])]));
      else found.push([mark.mark, label, mark.upright ? text(mark.place) : "", text(mark.value ?? (mark.upright ? null : mark.place)), "", ""]);
    }
    return found;
  }

  // ---- controls ----

  // A slider stands at a share of its range, or at the number of a computed value.
  const isStepped = (row) => !live && (row.stepped || row.whole);
  function fraction(row, value) {
    if (isStepped(row)) return row.values.indexOf(value);
    const map = row.log ? Math.log : (x) => x;
    return Math.min(Math.max((map(value) - map(row.low)) / (map(row.high) - map(row.low)), 0), 1);
  }
  function placed(row, share) {
    if (isStepped(row)) return row.values[share];
    if (share <= 0) return row.low;
    if (share >= 1) return row.high;
    const value = row.log ? Math.exp(Math.log(row.low) + share * (Math.log(row.high) - Math.log(row.low))) : row.low + share * (row.high - row.low);
    return Number(value.toPrecision(5));
  }

  const inputs = {};
  function controls() {
    const holder = get("controls"), fixed = [];
    for (const one of data.parameters_about) {
      const key = one.name;
      if (!isScanned(key) && !(live && one.kind !== "real")) { fixed.push(one); continue; }
      const id = "p-" + key;
      const label = make("label", { for: id });
      if (one.symbol) { const symbol = make("span", { class: "symbol" }); dl.html(one.symbol, symbol); label.append(symbol, " "); }
      label.append(make("span", { class: "doc" }, one.doc));
      const row = make("div", { class: "row" }, label);
      if (one.kind === "real") {
        const ends = isStepped(rows[key]) ? { max: rows[key].values.length - 1, step: 1 } : { max: 1, step: 0.005 };
        const slider = make("input", { type: "range", id, min: 0, ...ends, "aria-describedby": id + "-box" });
        const box = make("input", { type: "number", id: id + "-box", step: "any", min: live ? one.low : rows[key].low, max: (live ? one.high : rows[key].high) ?? undefined, "aria-label": `${dl.plain(one.symbol || key)}: ${one.doc}, as a number` });
        slider.addEventListener("input", () => move(key, placed(rows[key], Number(slider.value))));
        box.addEventListener("change", () => { if (box.value !== "") move(key, Number(box.value)); });
        row.append(make("div", { class: "pair" }, slider, box));
        inputs[key] = { slider, box };
      } else if (one.kind === "choice") {
        const select = make("select", { id }, ...one.options.map((option) => make("option", { value: option }, option)));
        select.addEventListener("change", () => move(key, select.value));
        row.append(select);
        inputs[key] = { select };
      } else if (one.kind === "integer") {
        const box = make("input", { type: "number", id, step: 1, min: one.low, max: one.high ?? undefined });
        box.addEventListener("change", () => { if (box.value !== "") move(key, Number(box.value)); });
        row.append(box);
        inputs[key] = { box };
      } else {
        const text = make("input", { type: "text", id, "aria-describedby": id + "-hint" });
        text.addEventListener("change", () => move(key, text.value));
        row.append(text, make("p", { class: "note", id: id + "-hint" }, "a list 0.5,1,2 or a range 0.1:10:20 (0.1:10:20log for equal ratios)"));
        inputs[key] = { text };
      }
      holder.append(row);
    }
    const scanned = Object.keys(rows).filter(isScanned);
    if ((live || state.panels.some((panel) => panel.number)) && scanned.length > 1) {
      const select = make("select", { id: "over" }, ...scanned.map((key) => make("option", { value: key }, `${dl.plain(symbolOf(key))}: ${about[key].doc}`)));
      select.addEventListener("change", () => {
        state.over = select.value;
        if (!live) for (const key of changed()) if (key !== state.over) state.values[key] = base[key];
        renew();
      });
      holder.append(make("div", { class: "row" }, make("label", { for: "over" }, "numbers are drawn over"), select));
      inputs.over = select;
    }
    if (fixed.length && !live) {
      holder.append(make("ul", { class: "fixed" }, ...fixed.map((one) => { const item = make("li"); dl.html(`${one.symbol || one.name} = ${written(base[one.name])}`, item); item.title = one.doc; return item; })));
    }
    const buttons = make("div", { class: "buttons" },
      make("button", { type: "button", onclick: reset }, "Reset"),
      make("button", { type: "button", onclick: overlay }, "Keep this line"),
      make("button", { type: "button", onclick: () => { state.ghosts = []; draw(); } }, "Clear kept lines"));
    holder.append(buttons);
    if (!live && scanned.length) {
      holder.append(make("p", { class: "note" }, "Each slider moves along theory computed beforehand; moving one returns the others."), make("p", { class: "note", id: "between" }));
    }
    if (!live && !scanned.length) holder.append(make("p", { class: "note" }, "This theory takes too long to be computed beforehand along its parameters; `deeplimits explore` computes it where it is asked for."));
  }

  function refresh() {
    for (const [key, one] of Object.entries(inputs)) {
      if (key === "over") { one.value = state.over; continue; }
      const value = state.values[key];
      if (one.slider) {
        one.slider.value = fraction(rows[key], value);
        one.slider.setAttribute("aria-valuetext", `${dl.plain(symbolOf(key))} = ${dl.said(value, 5)}`);
        if (document.activeElement !== one.box) one.box.value = value;
      } else if (one.select) one.select.value = value;
      else if (one.box) { if (document.activeElement !== one.box) one.box.value = value; }
      else if (document.activeElement !== one.text) one.text.value = Array.isArray(value) ? value.map((x) => Number(x.toPrecision(6))).join(",") : value;
    }
    reproduce();
  }

  function refused(key, value) {
    const one = about[key];
    if (!one) return `${name} has no parameter ${key}; it has ${Object.keys(about).join(", ")}`;
    if (live) return "";
    if (!isScanned(key)) return same(value, base[key]) ? "" : `${key} is fixed on this page; \`deeplimits explore\` changes it`;
    if (!Number.isFinite(value) || value < rows[key].low || value > rows[key].high) {
      return `${key} = ${value} is not shown on this page; it must be a number between ${dl.said(rows[key].low)} and ${dl.said(rows[key].high)}`;
    }
    return "";
  }

  function move(key, value) {
    const sentence = refused(key, value);
    if (sentence) { get("message").textContent = sentence; return; }
    state.fault = "";
    if (!live) {
      for (const other of Object.keys(base)) if (other !== key) state.values[other] = base[other];
      state.over = state.panels.some((panel) => panel.number) || show.panels.some((panel) => panel.number) ? key : state.over;
    }
    state.values[key] = live ? value : nearest(key, value);
    renew();
  }

  // Where interpolation would mislead, only what was computed is shown.
  function nearest(key, value) {
    const row = rows[key], map = row && row.log ? Math.log : (x) => x;
    if (!row || !isStepped(row)) return value;
    return row.values.reduce((best, one) => (Math.abs(map(one) - map(value)) < Math.abs(map(best) - map(value)) ? one : best));
  }

  function reset() { state.fault = ""; state.values = Object.assign({}, base); state.over = show.over; state.runs = []; renew(); }

  function overlay() {
    const number = (state.ghosts.length % 4) + 1, panels = {};
    for (const panel of state.panels) if (!panel.number) panels[panel.name] = theoryMarks(panel.picture).filter((mark) => mark.mark === "line");
    state.ghosts = state.ghosts.filter((ghost) => ghost.number !== number);
    state.ghosts.push({ number, panels, values: Object.assign({}, state.values), label: setting(state.values) || "as shown first", over: state.over, along: state.sweep && state.sweep.values, sweep: state.sweep && state.sweep.numbers });
    draw();
  }

  function renew() { refresh(); keep(); if (live) dl.ask(state); else stated(); }

  // ---- the address ----

  function keep() {
    const words = new URLSearchParams();
    for (const key of changed()) words.set(key, Array.isArray(state.values[key]) ? state.values[key].join(",") : state.values[key]);
    if (state.over !== show.over) words.set("-over", state.over);
    if (state.first !== show.first) words.set("-show", state.first);
    try { history.replaceState(null, "", words.toString() ? "#" + words : location.pathname + location.search); } catch (error) { /* some browsers allow no address to change on disk */ }
  }

  function read() {
    const words = new URLSearchParams(location.hash.slice(1));
    let sentence = "";
    for (const [key, text] of words) {
      if (key === "-over") { if (rows[text]) state.over = text; else sentence = `numbers cannot be drawn over ${text}`; continue; }
      if (key === "-show") { state.first = text; state.chosen = true; continue; }
      const one = about[key];
      const value = one && (one.kind === "real" || one.kind === "integer") ? Number(text) : text;
      const bad = refused(key, value) || (typeof value === "number" && Number.isNaN(value) ? `${key} = ${text} is not allowed; it must be ${one.allowed}` : "");
      if (bad) sentence = bad;
      else state.values[key] = live ? value : nearest(key, value);
    }
    return sentence;
  }

  // ---- what can be taken away ----

  function reproduce() {
    const given = changed();
    const python = (value) => typeof value === "string" && !/^[-\d.,:elog+]+$/.test(value) ? JSON.stringify(value)
      : Array.isArray(value) ? "(" + value.join(", ") + ")" : typeof value === "string" ? JSON.stringify(value) : String(value);
    const shownAt = Object.assign({}, Object.fromEntries(Object.keys(base).filter((key) => !same(base[key], about[key].default)).map((key) => [key, base[key]])),
      Object.fromEntries(given.map((key) => [key, state.values[key]])));
    const inside = Object.entries(shownAt).map(([key, value]) => `${key}=${python(value)}`).join(", ");
    const call = `${data.made || `dl.catalogue["${name}"]`}(${inside})`;
    const code = get("python");
    if (code) code.textContent = `import deeplimits as dl\n\nlimit = ${call}\nprint(dl.predict(limit))\ndl.compare(limit).plot("figure.png")\n`;
    const reserved = ["json", "samples", "seed", "size", "sizes", "plot", "only", "html", "debug", "help"];
    const flags = Object.entries(shownAt).map(([key, value]) => ` --${reserved.includes(key) ? "param." : ""}${key.replace(/_/g, "-")} ${Array.isArray(value) ? value.join(",") : /\s/.test(value) ? `"${value}"` : value}`).join("");
    const command = get("command");
    if (command) command.textContent = `deeplimits compare ${name}${flags}`;
  }

  function save(content, ending, type) {
    const link = make("a", { href: URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type })), download: `${name}-${state.drawn.name}.${ending}` });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 5000);
  }

  function svgText() {
    const svg = get("stage").querySelector("svg").cloneNode(true);
    const look = getComputedStyle(document.documentElement);
    let rules = "";
    for (const sheet of document.styleSheets) {
      try { for (const rule of sheet.cssRules) if (rule.selectorText && rule.selectorText.startsWith(".figure")) rules += rule.cssText + "\n"; } catch (error) { rules += ""; }
    }
    if (!rules) rules = dl.looks || "";
    rules = rules.replace(/var\((--[a-z0-9]+)\)/g, (_, variable) => look.getPropertyValue(variable).trim());
    svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    svg.setAttribute("font-family", "system-ui, sans-serif");
    const style = dl.element("style", {});
    style.textContent = rules;
    const paper = dl.element("rect", { width: "100%", height: "100%", fill: look.getPropertyValue("--paper").trim() });
    svg.prepend(style, paper);
    return new XMLSerializer().serializeToString(svg);
  }

  const downloads = {
    SVG: () => save(svgText(), "svg", "image/svg+xml"),
    PNG: () => {
      const image = new Image(), box = get("stage").querySelector("svg").viewBox.baseVal;
      image.onload = () => {
        const canvas = make("canvas", { width: 2 * box.width, height: 2 * box.height });
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(blob, "png"));
      };
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svgText());
    },
    CSV: () => save(table_of(state.drawn.picture).map((line) => line.map((cell) => /[",\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell).join(",")).join("\n") + "\n", "csv", "text/csv"),
    JSON: () => save(JSON.stringify({ name, parameters: state.values, shown: state.drawn.name, picture: state.drawn.picture }, null, 1) + "\n", "json", "application/json"),
    Python: () => save(get("python").textContent, "py", "text/x-python"),
  };

  function start() {
    const holder = get("downloads");
    for (const [word, act] of Object.entries(downloads)) holder.append(make("button", { type: "button", onclick: act, "aria-label": `Download ${word}` }, word));
    for (const button of document.querySelectorAll("button[data-copy]")) {
      button.addEventListener("click", () => {
        const text = get(button.dataset.copy).textContent;
        const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
        const old = () => { const area = make("textarea", {}); area.value = text; document.body.append(area); area.select(); document.execCommand("copy"); area.remove(); done(); };
        if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(done, old); else old();
      });
    }
    const trends = get("trends");
    if (trends) {
      for (const [key, picture] of Object.entries(data.trends || {})) {
        const figure = make("div", { class: "plot" });
        trends.append(make("div", { class: "card" }, make("h3", {}, key.replace(/_/g, " ")), figure));
        picture.drawnIn = figure;
      }
    }
    const numbers = get("numbers");
    numbers.addEventListener("toggle", () => { if (numbers.open) fillNumbers(); });
    controls();
    if (live) dl.connect({ state, show, rows, base, about, name, draw, get, make, same, changed, keep, refresh });
    state.fault = read();
    if (!live) { stated(); refresh(); } else { refresh(); dl.ask(state); }
    const all = () => { draw(); for (const [key, picture] of Object.entries(data.trends || {})) dl.draw(picture.drawnIn, picture, { height: 210, label: `${key}: theory and simulation at several sizes` }); };
    all();
    let waiting = 0, width = window.innerWidth;
    window.addEventListener("resize", () => { if (window.innerWidth === width) return; width = window.innerWidth; clearTimeout(waiting); waiting = setTimeout(all, 120); });
    window.addEventListener("hashchange", () => { state.values = Object.assign({}, base); state.fault = read(); refresh(); if (live) dl.ask(state); else stated(); });
    body.dataset.ready = "1";
  }
  start();
})(window.deeplimits);
