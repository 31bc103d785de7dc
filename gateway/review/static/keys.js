// Keys that every page knows, the queue's rows, and what happens when a session ends: nothing stays on the screen.
const IDLE_MS = 15 * 60 * 1000;
const signedIn = "signedIn" in document.body.dataset;
const typing = (target) => target.closest("input:not([type=range]):not([type=radio]):not([type=checkbox]), select, textarea, dialog") !== null;

function leave() {
  document.body.replaceChildren();
  location.replace("/login");
}

// htmx notes the address of the page, history or no history
addEventListener("load", () => sessionStorage.clear());

if (signedIn) {
  let touched = Date.now();
  for (const kind of ["keydown", "pointerdown", "wheel"]) {
    addEventListener(kind, () => { touched = Date.now(); }, { passive: true, capture: true });
  }
  setInterval(() => { if (Date.now() - touched > IDLE_MS) leave(); }, 5000);
  document.addEventListener("htmx:responseError", (event) => { if (event.detail.xhr.status === 401) leave(); });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

const keys = document.getElementById("keys");
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing(event.target)) event.target.blur();
  if (typing(event.target)) return;
  if (event.key === "?") keys.showModal();
  else if (event.key === "q" && signedIn) location.assign("/queue");
  else return;
  event.preventDefault();
});

// -- the queue: the chosen row is the one whose link has the focus
const links = () => [...document.querySelectorAll(".queue tbody a")];
const STEPS = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

if (document.getElementById("rows") !== null) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "/") {
      event.preventDefault();
      document.getElementById("reason").focus();
    } else if (event.key in STEPS) {
      event.preventDefault();
      const found = links();
      const now = found.indexOf(document.activeElement);
      const next = now < 0 ? (STEPS[event.key] < 0 && STEPS[event.key] > -Infinity ? found.length - 1 : 0) : now + STEPS[event.key];
      found[Math.max(0, Math.min(found.length - 1, next))]?.focus();
    }
  });
  // the table is replaced every 30 s: whoever was chosen stays chosen
  let chosen = "";
  document.addEventListener("htmx:beforeSwap", () => { chosen = document.activeElement?.closest("tr")?.dataset.row ?? ""; });
  document.addEventListener("htmx:afterSwap", () => {
    if (chosen) document.querySelector(`tr[data-row="${CSS.escape(chosen)}"] a`)?.focus();
  });
}
