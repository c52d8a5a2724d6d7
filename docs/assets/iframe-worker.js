// A worker in a frame, for pages that are opened from a folder: browsers start no workers there, and
// the search needs one. Material's offline plugin takes this file in the place of one on the network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise((resolve) => this.frame.addEventListener("load", resolve));
      document.body.append(this.frame);
      window.addEventListener("message", (event) => {
        if (event.source !== this.frame.contentWindow) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      const page = this.frame.contentDocument;
      page.open();
      page.write(
        `<script>self.postMessage = (data) => parent.postMessage(data, "*");<\/script>` +
          `<script src="${url}"><\/script>`,
      );
      page.close();
    }

    postMessage(data) {
      const target = this.frame.contentWindow;
      this.ready.then(() => target.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
