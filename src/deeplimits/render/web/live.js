// What only the explorer's page does: asking for theory, adding finite systems, stopping. It asks the process that
// serves it; in a notebook `bridge.js` puts `dl.transport` there, which asks the notebook's kernel.
"use strict";
(function (dl) {
  let page = null, busy = false, wanted = false, timer = 0;

  function address(what, more = {}) {
    const words = new URLSearchParams();
    for (const key of page.changed()) {
      const value = page.state.values[key];
      words.set(key, Array.isArray(value) ? value.join(",") : value);
    }
    for (const [key, value] of Object.entries(more)) words.set(key, value);
    return [what, words];
  }

  async function answer(response) {
    let found;
    try { found = await response.json(); } catch (error) { found = { sentence: `the answer could not be read (${response.status})` }; }
    if (!response.ok && !found.sentence) found.sentence = `the explorer answered ${response.status}`;
    return found;
  }

  const http = {
    async ask(what, words) { return answer(await fetch(`../api/${page.name}/${what}?${words}`)); },
    // Each line of an answer that comes in pieces; one with a sentence ends it.
    async stream(what, words, each, signal) {
      const response = await fetch(`../api/${page.name}/${what}?${words}`, { method: "POST", signal });
      if (!response.ok) { each(await answer(response)); return; }
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        rest += value;
        const lines = rest.split("\n");
        rest = lines.pop();
        for (const line of lines) each(JSON.parse(line));
      }
    },
  };
  const transport = () => dl.transport || http;

  // The latest position of the sliders is answered; those that were passed over are not asked for.
  dl.ask = async function () {
    if (!page) return;
    wanted = true;
    if (busy) return;
    busy = true;
    const working = page.get("working");
    timer = setTimeout(() => { working.textContent = "computing …"; }, 150);
    try {
      while (wanted) {
        wanted = false;
        const found = await transport().ask(...address("theory"));
        if (found.sentence) {
          page.state.message = found.sentence;
          page.state.panels = []; page.state.charts = [];
          page.draw();
          continue;
        }
        Object.assign(page.state, { message: "", panels: found.panels, milliseconds: found.milliseconds });
        for (const [key, value] of Object.entries(found.values)) if (!wanted) page.state.values[key] = value;
        if (!page.state.first) page.state.first = page.show.first || found.first;
        if (!page.state.sweep || page.state.sweep.over !== page.state.over) page.state.sweep = null;
        page.draw(); page.refresh();
        document.body.dataset.answered = String(Number(document.body.dataset.answered || 0) + 1);
        if (!wanted && (found.charted || found.panels.some((panel) => panel.number))) {
          const along = await transport().ask(...address("sweep", { "-over": page.state.over }));
          if (!along.sentence && !wanted) {
            page.state.sweep = along.values.length ? along : null;
            page.state.charts = along.charts;
            if (!page.show.first && along.charts.length && !page.state.chosen) page.state.first = along.charts[0].name;
            page.draw();
          }
        }
      }
    } catch (error) {
      page.state.message = "The explorer does not answer; it may have been ended.";
      page.draw();
    } finally {
      busy = false;
      clearTimeout(timer);
      working.textContent = "";
      document.body.dataset.settled = String(Number(document.body.dataset.settled || 0) + 1);
    }
  };

  let stopping = null;
  async function simulate() {
    const { get, state } = page, progress = get("progress");
    const more = { "-size": get("size").value, "-samples": get("samples").value, "-seed": get("seed").value };
    const asked = Object.assign({}, state.values);
    const run = { asked, values: asked, marks: {}, measured: {}, series: state.runs.length % 6 };
    stopping = new AbortController();
    get("go").disabled = true; get("stop").disabled = false;
    progress.textContent = "starting a system …";
    let added = false;
    try {
      await transport().stream(...address("simulate", more), (found) => {
        if (found.sentence) { progress.textContent = found.sentence; return; }
        if (found.working) { if (!added) progress.textContent = `${found.working} …`; return; }
        for (const [key, marks] of Object.entries(found.marks)) {
          run.marks[key] = marks.map((mark) => Object.assign({}, mark, { series: run.series, label: mark.label ? `n = ${found.size}, seed ${found.seed}, ${found.done} systems` : "" }));
        }
        run.measured = found.measured;
        run.asked = found.asked;
        run.values = found.values;
        if (!added) { state.runs.push(run); added = true; }
        progress.textContent = `${found.done} of ${found.total} systems`;
        page.draw();
      }, stopping.signal);
    } catch (error) {
      progress.textContent = error.name === "AbortError" ? `stopped${added ? "; what was simulated stays" : ""}` : "the simulation was interrupted";
    } finally {
      get("go").disabled = false; get("stop").disabled = true;
      stopping = null;
    }
  }

  dl.connect = function (given) {
    page = given;
    page.state.first = page.show.first;
    page.get("go").addEventListener("click", simulate);
    page.get("stop").addEventListener("click", () => stopping && stopping.abort());
    page.get("clear").addEventListener("click", () => { page.state.runs = []; page.draw(); page.get("progress").textContent = ""; });
  };
})(window.deeplimits);
