// A cell's widget: a frame with the explorer's page, and the messages between it and the kernel.
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.title = model.get("title");
    frame.setAttribute("sandbox", "allow-scripts allow-downloads");
    Object.assign(frame.style, { width: "100%", height: "40rem", border: "0", display: "block" });
    const heard = (event) => {
      const said = event.source === frame.contentWindow && event.data && event.data.deeplimits;
      if (!said) return;
      if (said.height) frame.style.height = `${Math.min(said.height, 20000)}px`;
      else model.send(said);
    };
    const answered = (message) => frame.contentWindow && frame.contentWindow.postMessage({ deeplimits: message }, "*");
    window.addEventListener("message", heard);
    model.on("msg:custom", answered);
    frame.srcdoc = model.get("page");
    el.append(frame);
    return () => {
      window.removeEventListener("message", heard);
      model.off("msg:custom", answered);
    };
  },
};
