// In a notebook the page stands in a frame, and asks the notebook's kernel through the cell's widget (`widget.js`).
"use strict";
(function (dl) {
  const waiting = new Map();
  let count = 0;

  const send = (message) => window.parent.postMessage({ deeplimits: message }, "*");
  window.addEventListener("message", (event) => {
    const said = event.source === window.parent && event.data && event.data.deeplimits;
    if (said && waiting.has(said.id)) waiting.get(said.id)(said);
  });

  function asked(what, words, each, signal) {
    const id = ++count;
    return new Promise((resolve, reject) => {
      waiting.set(id, (said) => {
        if (said.found) each(said.found);
        if (said.end) { waiting.delete(id); resolve(); }
      });
      if (signal) signal.addEventListener("abort", () => {
        waiting.delete(id);
        send({ id, stop: true });
        reject(new DOMException("stopped", "AbortError"));
      });
      send({ id, what, words: [...words] });
    });
  }

  dl.transport = {
    async ask(what, words) { let answer = {}; await asked(what, words, (found) => { answer = found; }); return answer; },
    stream: asked,
  };

  // The frame is as high as the page.
  new ResizeObserver(() => send({ height: Math.ceil(document.documentElement.getBoundingClientRect().height) })).observe(document.documentElement);
})(window.deeplimits);
