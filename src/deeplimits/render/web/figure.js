// Draws a picture, as `render/web/pictures.py` writes it, as SVG. Nothing is computed here but places on paper.
"use strict";
window.deeplimits = window.deeplimits || { limits: {} };

(function (dl) {
  const NS = "http://www.w3.org/2000/svg";
  let clips = 0;

  function element(name, attributes, parent) {
    const made = document.createElementNS(NS, name);
    for (const key in attributes) if (attributes[key] !== undefined) made.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(made);
    return made;
  }

  // "λ_{max}/2" as text with parts lowered and raised.
  function parts(text) {
    const found = [];
    const pattern = /([_^])\{((?:[^{}]|\{[^{}]*\})*)\}/g;
    let from = 0, match;
    while ((match = pattern.exec(text))) {
      if (match.index > from) found.push(["", text.slice(from, match.index)]);
      found.push([match[1], match[2].replace(/[{}]/g, "").replace(/[_^]/g, "")]);
      from = pattern.lastIndex;
    }
    if (from < text.length) found.push(["", text.slice(from)]);
    return found.map(([where, what]) => [where, what.replace(/[{}]/g, "")]);
  }

  function write(parent, text) {
    let height = 0;
    for (const [where, what] of parts(text)) {
      const wanted = where === "_" ? 3.5 : where === "^" ? -5 : 0;
      const span = element("tspan", { dy: wanted - height || undefined, "font-size": where ? "78%" : undefined }, parent);
      span.textContent = what;
      height = wanted;
    }
  }

  function html(text, parent) {
    for (const [where, what] of parts(text)) {
      if (!where) parent.append(what);
      else parent.appendChild(Object.assign(document.createElement(where === "_" ? "sub" : "sup"), { textContent: what }));
    }
    return parent;
  }

  // The same in one line: digits are lowered and raised as characters.
  const digits = (text, from) => [...text].every((c) => "0123456789".includes(c)) ? [...text].map((c) => from[Number(c)]).join("") : text;
  const plain = (text) => parts(text).map(([where, what]) => where ? digits(what, where === "_" ? "₀₁₂₃₄₅₆₇₈₉" : "⁰¹²³⁴⁵⁶⁷⁸⁹") : what).join("");
  const finite = (value) => value !== null && value !== undefined && Number.isFinite(value);

  function said(value, digits = 4) {
    if (!finite(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e5)) {
      const [front, power] = value.toExponential(Math.max(0, digits - 2)).split("e");
      const raised = String(Number(power)).replace(/[-0-9]/g, (c) => "⁻0123456789⁰¹²³⁴⁵⁶⁷⁸⁹"[c === "-" ? 0 : 11 + Number(c)]);
      const shown = front.includes(".") ? front.replace(/\.?0+$/, "") : front;
      return (shown === "1" ? "" : shown === "-1" ? "−" : shown.replace("-", "−") + "·") + "10" + raised;
    }
    return String(Number(value.toPrecision(digits))).replace("-", "−");
  }

  // ---- scales ----

  function reach(picture, name) {
    const axis = picture[name];
    let low = Infinity, high = -Infinity;
    const take = (value) => {
      if (finite(value) && (!axis.log || value > 0)) { low = Math.min(low, value); high = Math.max(high, value); }
    };
    for (const mark of picture.marks) {
      if (name === "x") {
        (mark.x || mark.edges || []).forEach(take);
        if (mark.upright || mark.mark === "stem") take(mark.place);
      } else {
        if (mark.mark === "field") (mark.y || []).forEach(take);
        else (mark.y || []).forEach(take);
        for (const row of [mark.low, mark.high, mark.heights]) if (Array.isArray(row)) row.forEach(take);
        if (mark.mark === "rule" && !mark.upright) take(mark.place);
        if (mark.mark === "stem") take(mark.height);
        if (mark.mark === "histogram") take(axis.log ? undefined : 0);
      }
    }
    if (low > high) { low = axis.log ? 0.1 : 0; high = 1; }
    const fixedLow = finite(axis.low), fixedHigh = finite(axis.high);
    if (fixedLow) low = axis.low;
    if (fixedHigh) high = axis.high;
    if (name === "x" && picture.marks.some((mark) => mark.mark === "field")) return [low, high];
    if (axis.log) {
      const margin = name === "x" ? Math.pow(high / low, 0.015) : Math.max(Math.pow(high / low, 0.06), 1.02);
      if (high / low < 1.05 && name === "y") { low /= 1.3; high *= 1.3; }
      return [fixedLow ? low : low / margin, fixedHigh ? high : high * margin];
    }
    const span = high - low || Math.abs(high) * 0.2 || 1;
    const margin = span * (name === "x" ? 0.015 : 0.07);
    const least = 1e-9 * Math.max(Math.abs(low), Math.abs(high));
    return [fixedLow ? low : low - Math.max(margin, least), fixedHigh ? high : high + Math.max(margin, least)];
  }

  function scale(axis, ends, from, to) {
    const map = axis.log ? Math.log10 : (value) => value;
    const [low, high] = ends.map(map);
    const span = high - low || 1;
    const place = (value) => from + ((map(value) - low) / span) * (to - from);
    place.back = (pixel) => {
      const inner = low + ((pixel - from) / (to - from)) * span;
      return axis.log ? Math.pow(10, inner) : inner;
    };
    place.fits = (value) => finite(value) && (!axis.log || value > 0);
    return place;
  }

  function ticks(axis, [low, high], count) {
    if (axis.ticks) return { major: axis.ticks.filter((one) => one >= low * (1 - 1e-9) && one <= high * (1 + 1e-9)), minor: [] };
    if (axis.log) {
      const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
      const decades = last - first + 1;
      if (decades >= 2) {
        const every = Math.max(1, Math.ceil(decades / count));
        const major = [], minor = [];
        for (let power = first - 1; power <= last + 1; power++) {
          const decade = Math.pow(10, power);
          if (decade >= low * 0.999 && decade <= high * 1.001) ((power - first) % every ? minor : major).push(decade);
          if (every === 1) for (let k = 2; k < 10; k++) if (k * decade >= low && k * decade <= high) minor.push(k * decade);
        }
        return { major, minor };
      }
      const found = [];
      for (let power = first - 1; power <= last + 1; power++) {
        for (const k of [1, 2, 3, 5]) {
          const value = k * Math.pow(10, power);
          if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
        }
      }
      if (found.length >= 2) return { major: found, minor: [] };
    }
    const rough = (high - low) / Math.max(count, 2);
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    let step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
    if (axis.whole) step = Math.max(1, Math.round(step));
    const major = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) major.push(Number((k * step).toPrecision(12)));
    return { major, minor: [] };
  }

  // Ticks in so many digits that two of them never read alike.
  function told(axis, major) {
    const step = axis.log || major.length < 2 ? 0 : Math.abs(major[1] - major[0]);
    const needed = step ? Math.ceil(Math.log10(Math.max(...major.map(Math.abs)) / step) - 1e-9) + 2 : 4;
    return major.map((value) => said(value, Math.min(Math.max(4, needed), 12)));
  }

  // ---- marks ----

  const VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137],
    [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37]];
  function colour(share) {
    const at = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1), low = Math.min(Math.floor(at), VIRIDIS.length - 2);
    return VIRIDIS[low].map((one, index) => Math.round(one + (at - low) * (VIRIDIS[low + 1][index] - one)));
  }

  function path(xs, ys, X, Y) {
    let text = "", pen = false;
    for (let index = 0; index < xs.length; index++) {
      if (!X.fits(xs[index]) || !Y.fits(ys[index])) { pen = false; continue; }
      const y = Math.max(-1e4, Math.min(1e4, Y(ys[index])));
      text += (pen ? "L" : "M") + X(xs[index]).toFixed(1) + " " + y.toFixed(1);
      pen = true;
    }
    return text;
  }

  function looks(mark) {
    const series = mark.series === undefined ? 0 : mark.series % 6;
    return "mark " + mark.mark + " " + (mark.role || "theory") + " series" + series + (mark.ghost ? " ghost ghost" + mark.ghost : "");
  }

  const draws = {
    line(mark, g, X, Y) {
      element("path", { d: path(mark.x, mark.y, X, Y), class: looks(mark) + (mark.over ? " boundary" : ""), fill: "none" }, g);
    },
    points(mark, g, X, Y, box, small) {
      const group = element("g", { class: looks(mark) }, g);
      const many = mark.x.length > 60;
      mark.x.forEach((x, index) => {
        const y = mark.y[index];
        if (!X.fits(x) || !Y.fits(y)) return;
        const px = X(x).toFixed(1), low = mark.low && mark.low[index], high = mark.high && mark.high[index];
        if (finite(low) && finite(high)) {
          const bottom = Y.fits(low) ? Y(low) : box.bottom;
          element("path", { d: `M${px} ${bottom.toFixed(1)}V${Y(high).toFixed(1)}`, class: "bar" }, group);
        }
        element("circle", { cx: px, cy: Y(y).toFixed(1), r: small ? 1.6 : many ? 1.8 : mark.role === "here" ? 5.5 : 3.6 }, group);
      });
    },
    band(mark, g, X, Y, box) {
      const top = mark.high ? mark.high.map((one) => (Y.fits(one) ? Y(one) : box.top)) : mark.x.map(() => box.top);
      const bottom = mark.low ? mark.low.map((one) => (Y.fits(one) ? Y(one) : box.bottom)) : mark.x.map(() => box.bottom);
      const there = mark.x.map((x, index) => `${X(x).toFixed(1)} ${top[index].toFixed(1)}`);
      const back = mark.x.map((x, index) => `${X(x).toFixed(1)} ${bottom[index].toFixed(1)}`).reverse();
      element("path", { d: "M" + there.concat(back).join("L") + "Z", class: looks(mark) }, g);
    },
    histogram(mark, g, X, Y, box) {
      let text = `M${X(mark.edges[0]).toFixed(1)} ${box.bottom}`;
      mark.heights.forEach((height, index) => {
        const y = Y.fits(height) ? Math.min(Y(height), box.bottom) : box.bottom;
        text += `V${y.toFixed(1)}H${X(mark.edges[index + 1]).toFixed(1)}`;
      });
      element("path", { d: text + `V${box.bottom}Z`, class: looks(mark) }, g);
    },
    rule(mark, g, X, Y, box) {
      const scaled = mark.upright ? X : Y;
      if (!scaled.fits(mark.place)) return;
      const at = scaled(mark.place).toFixed(1);
      const d = mark.upright ? `M${at} ${box.top}V${box.bottom}` : `M${box.left} ${at}H${box.right}`;
      element("path", { d, class: looks(mark) + (mark.upright ? " upright" : ""), fill: "none" }, g);
    },
    stem(mark, g, X, Y, box) {
      const x = X(mark.place).toFixed(1), y = Y(mark.height).toFixed(1);
      element("path", { d: `M${x} ${box.bottom}V${y}m-4 7l4 -7l4 7`, class: looks(mark), fill: "none" }, g);
    },
    field(mark, g, X, Y, box) {
      const canvas = document.createElement("canvas");
      canvas.width = mark.x.length; canvas.height = mark.y.length;
      const ends = span(mark);
      const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
      mark.values.forEach((row, line) => row.forEach((value, column) => {
        const at = 4 * ((canvas.height - 1 - line) * canvas.width + column);
        const [r, gr, b] = finite(value) ? colour((value - ends[0]) / (ends[1] - ends[0] || 1)) : [128, 128, 128];
        image.data.set([r, gr, b, finite(value) ? 255 : 60], at);
      }));
      context.putImageData(image, 0, 0);
      element("image", { href: canvas.toDataURL(), x: box.left, y: box.top, width: box.right - box.left,
        height: box.bottom - box.top, preserveAspectRatio: "none", class: "field" }, g);
    },
    number(mark, g, X, Y, box) {
      const text = element("text", { x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2, class: "big", "text-anchor": "middle" }, g);
      text.textContent = said(mark.value, 5);
    },
  };

  function span(mark) {
    const all = mark.values.flat().filter(finite);
    return [Math.min(...all), Math.max(...all)];
  }

  // ---- the whole figure ----

  dl.draw = function (holder, picture, options = {}) {
    const small = Boolean(options.small);
    const width = Math.max(options.width || holder.clientWidth || 320, 120);
    const height = options.height || (small ? Math.round(width * 0.5) : Math.round(Math.min(Math.max(width * 0.58, 230), 430)));
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "figure" + (small ? " small" : ""),
      role: "img", "aria-label": options.label || "" });
    const fieldMark = picture.marks.find((mark) => mark.mark === "field");
    const bare = picture.marks.every((mark) => mark.mark === "number");
    if (fieldMark) picture = Object.assign({}, picture, { marks: picture.marks.map((mark) => mark.mark === "line" ? Object.assign({}, mark, { over: true }) : mark) });
    const xEnds = reach(picture, "x"), yEnds = reach(picture, "y");
    const yTicks = bare || small ? { major: [], minor: [] } : ticks(picture.y, yEnds, Math.max(3, Math.floor(height / 60)));
    const words = told(picture.y, yTicks.major);
    const widest = Math.max(0, ...words.map((word) => word.length)) * 7.2;
    const box = small ? { left: 4, right: width - 4, top: 4, bottom: height - 4 }
      : { left: Math.max(46, 30 + widest), right: width - (fieldMark ? 74 : 14), top: 14, bottom: height - 46 };
    const X = scale(picture.x, xEnds, box.left, box.right), Y = scale(picture.y, yEnds, box.bottom, box.top);
    const clip = "clip" + ++clips;
    element("rect", { x: box.left, y: box.top - 3, width: box.right - box.left, height: box.bottom - box.top + 6 },
      element("clipPath", { id: clip }, element("defs", {}, svg)));
    if (!bare && !small) {
      const grid = element("g", { class: "grid", "aria-hidden": "true" }, svg);
      const xTicks = ticks(picture.x, xEnds, Math.max(3, Math.floor((box.right - box.left) / 85)));
      const below = told(picture.x, xTicks.major);
      xTicks.major.forEach((value, index) => {
        const x = X(value).toFixed(1);
        if (!fieldMark) element("path", { d: `M${x} ${box.top}V${box.bottom}` }, grid);
        element("text", { x, y: box.bottom + 17, "text-anchor": "middle" }, grid).textContent = below[index];
      });
      for (const value of xTicks.minor) element("path", { d: `M${X(value).toFixed(1)} ${box.bottom}v4`, class: "tick" }, grid);
      yTicks.major.forEach((value, index) => {
        const y = Y(value);
        if (!fieldMark) element("path", { d: `M${box.left} ${y.toFixed(1)}H${box.right}` }, grid);
        element("text", { x: box.left - 7, y: (y + 4).toFixed(1), "text-anchor": "end" }, grid).textContent = words[index];
      });
      for (const value of yTicks.minor) element("path", { d: `M${box.left} ${Y(value).toFixed(1)}h-4`, class: "tick" }, grid);
      const named = (axis) => [axis.label, axis.symbol].filter(Boolean).join(", ");
      write(element("text", { x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle", class: "axis" }, grid), fit(named(picture.x), box.right - box.left));
      const turned = element("text", { transform: `translate(13 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle", class: "axis" }, grid);
      write(turned, fit(named(picture.y), box.bottom - box.top, picture.y.symbol));
    }
    const marks = element("g", { "clip-path": `url(#${clip})` }, svg);
    const order = { band: 0, field: 0, histogram: 1 };
    picture.marks.slice().sort((a, b) => (order[a.mark] ?? 2) - (order[b.mark] ?? 2)).forEach((mark) => {
      if (fieldMark && mark.mark === "line") element("path", { d: path(mark.x, mark.y, X, Y), class: "under", fill: "none" }, marks);
      if (draws[mark.mark]) draws[mark.mark](mark, marks, X, Y, box, small);
    });
    if (!bare) element("path", { d: `M${box.left} ${box.top}V${box.bottom}H${box.right}`, class: "frame", fill: "none" }, svg);
    if (fieldMark && !small) scaleOfColours(svg, fieldMark, box);
    if (!small && !bare && !fieldMark) follow(svg, picture, X, Y, box, holder);
    holder.replaceChildren(svg);
    if (!small) legend(holder, picture);
    return svg;
  };

  // A label that is too long is cut at a word; its symbol stays.
  function fit(text, room, symbol) {
    const most = Math.floor(room / 6.4);
    if (plain(text).length <= most) return text;
    if (symbol && plain(symbol).length <= most && most < 24) return symbol;
    return plain(text).slice(0, most - 1).replace(/[\s,]+\S*$/, "") + "…";
  }

  function scaleOfColours(svg, mark, box) {
    const [low, high] = span(mark), g = element("g", { class: "grid" }, svg), x = box.right + 12;
    for (let k = 0; k < 40; k++) {
      const y = box.bottom - ((k + 1) / 40) * (box.bottom - box.top);
      element("rect", { x, y: y.toFixed(1), width: 10, height: ((box.bottom - box.top) / 40 + 0.6).toFixed(1), fill: `rgb(${colour((k + 0.5) / 40)})` }, g);
    }
    // A field that tells a few cases apart by whole numbers has no values between them.
    const steps = [...new Set(mark.values.flat().filter(finite))];
    const cases = steps.length > 1 && steps.length <= 5 && steps.every(Number.isInteger);
    for (const share of cases ? steps.map((value) => (value - low) / (high - low)) : [0, 0.5, 1]) {
      const text = element("text", { x: x + 14, y: (box.bottom - share * (box.bottom - box.top) + 4).toFixed(1) }, g);
      text.textContent = said(low + share * (high - low), 3);
    }
  }

  function legend(holder, picture) {
    const list = document.createElement("ul");
    list.className = "legend";
    const seen = new Set();
    for (const mark of picture.marks) {
      const key = mark.label + mark.mark + (mark.series || 0) + (mark.ghost || 0);
      if (!mark.label || seen.has(key) || mark.mark === "number") continue;
      seen.add(key);
      const item = document.createElement("li"), key2 = document.createElementNS(NS, "svg");
      key2.setAttribute("width", 24); key2.setAttribute("height", 12); key2.setAttribute("aria-hidden", "true");
      key2.setAttribute("class", "figure key");
      const over = mark.mark === "line" && picture.marks.some((one) => one.mark === "field");
      const style = looks(mark) + (over ? " boundary" : "");
      if (over) element("path", { d: "M2 6H22", class: "under", fill: "none" }, key2);
      if (mark.mark === "points") element("circle", { cx: 12, cy: 6, r: 3.6 }, element("g", { class: style }, key2));
      else if (mark.mark === "band" || mark.mark === "histogram") element("rect", { x: 3, y: 1, width: 18, height: 10, class: style }, key2);
      else if (mark.mark === "field") element("rect", { x: 3, y: 1, width: 18, height: 10, fill: `rgb(${colour(0.6)})` }, key2);
      else element("path", { d: "M2 6H22", class: style + (mark.upright ? " upright" : ""), fill: "none" }, key2);
      item.append(key2);
      html(mark.label, item);
      list.append(item);
    }
    if (list.children.length) holder.append(list);
  }

  // The numbers under the pointer.
  function follow(svg, picture, X, Y, box, holder) {
    const lines = picture.marks.filter((mark) => (mark.mark === "line" || mark.mark === "points") && mark.x.length > 1);
    if (!lines.length) return;
    const cross = element("g", { class: "cross", visibility: "hidden", "aria-hidden": "true" }, svg);
    const upright = element("path", { d: "" }, cross), text = element("text", { y: box.top + 10 }, cross);
    svg.addEventListener("pointermove", (event) => {
      const place = svg.getBoundingClientRect(), ratio = svg.viewBox.baseVal.width / place.width;
      const px = (event.clientX - place.left) * ratio;
      if (px < box.left || px > box.right) return cross.setAttribute("visibility", "hidden");
      let best = null;
      const line = lines.find((mark) => mark.mark === "line" && !mark.ghost && mark.role !== "simulation") || lines[0];
      line.x.forEach((x, index) => {
        if (!X.fits(x) || !Y.fits(line.y[index])) return;
        const gap = Math.abs(X(x) - px);
        if (!best || gap < best.gap) best = { gap, x, y: line.y[index] };
      });
      if (!best) return;
      upright.setAttribute("d", `M${X(best.x).toFixed(1)} ${box.top}V${box.bottom}`);
      const left = X(best.x) > (box.left + box.right) / 2;
      text.setAttribute("x", X(best.x) + (left ? -6 : 6));
      text.setAttribute("text-anchor", left ? "end" : "start");
      text.textContent = `${plain(picture.x.symbol || picture.x.label)} = ${said(best.x)}, ${plain(picture.y.symbol || "theory")} = ${said(best.y)}`;
      cross.setAttribute("visibility", "visible");
    });
    svg.addEventListener("pointerleave", () => cross.setAttribute("visibility", "hidden"));
  }

  Object.assign(dl, { said, html, plain, finite, element });
})(window.deeplimits);
