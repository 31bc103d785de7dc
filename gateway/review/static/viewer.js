// The study page: frames before, after and what changed; findings; a box to redact; decisions by key.
import { difference, frameOf, shown, usualWindow } from "./picture.js";
import { startDeciding } from "./decide.js";

const viewer = document.getElementById("viewer");
const byId = (id) => document.getElementById(id);
const typing = (target) => target.closest("input:not([type=range]):not([type=radio]):not([type=checkbox]), select, textarea, dialog") !== null;
const deciding = startDeciding();
if (viewer !== null) start();
else readHeaders();

// A study without pictures: findings and the key h lead to headers.
function readHeaders() {
  const findings = [...document.querySelectorAll("[data-finding]")];
  let at = -1;
  const show = (button) => deciding.header(button.dataset.name, button.dataset.path);
  for (const button of findings) button.addEventListener("click", () => show(button));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "h") deciding.header(byId("object").value, "");
    else if (event.key === "f" && findings.length > 0) show(findings[at = (at + 1) % findings.length]);
    else return;
    event.preventDefault();
  });
}

function start() {
  const key = viewer.dataset.key;
  const things = JSON.parse(viewer.dataset.things), pointers = JSON.parse(viewer.dataset.pointers);
  const places = things.flatMap((thing) => Array.from({ length: thing.frames }, (_, frame) => ({ thing, frame })));
  const panes = ["before", "after", "difference"].map(byId);
  const state = { at: 0, window: null, zoom: 1, x: 0, y: 0, drawing: false, finding: -1, pictures: [], wanted: 0, hand: false };
  const slider = byId("position"), box = deciding.box, seen = new Set();
  slider.max = String(places.length - 1);

  const now = () => places[state.at];
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

  async function go(to) {
    state.at = clamp(to, 0, places.length - 1);
    const wanted = ++state.wanted, { thing, frame } = now();
    slider.value = String(state.at);
    const frames = thing.frames > 1 ? `, frame ${frame + 1} of ${thing.frames}` : "";
    byId("where").textContent = `${state.at + 1} of ${places.length}: series ${thing.series}, object ${thing.name}${frames}`;
    const asked = [frameOf(key, thing.name, frame, "before")];
    asked.push(thing.cleaned ? frameOf(key, thing.name, frame, "after") : Promise.reject(new Error("nothing was made of it yet")));
    const [before, after] = await Promise.allSettled(asked);
    if (wanted !== state.wanted) return; // somebody scrolled on
    const troubles = [];
    state.pictures = [before, after].map((one, side) => {
      if (one.status === "fulfilled") return one.value;
      troubles.push(`${["before", "after"][side]}: ${one.reason.message}`);
      return null;
    });
    if (state.window === null || !state.hand) {
      const first = state.pictures.find(Boolean);
      if (first) setWindow(usualWindow(first), false);
    }
    byId("viewer-says").textContent = troubles.join("; ");
    viewer.dataset.shown = `${thing.name}/${frame}`;
    seen.add(state.at);
    deciding.seen(seen.size, places.length);
    deciding.object(thing.name);
    draw();
  }

  function setWindow(window, byHand) {
    state.window = window;
    state.hand = byHand;
    byId("level").value = String(Math.round(window.level * 100) / 100);
    byId("width").value = String(Math.round(window.width * 100) / 100);
  }

  function draw() {
    const [before, after] = state.pictures;
    const changed = before && after ? difference(before, after, state.window) : null;
    paint(panes[0], before && shown(before, state.window), before);
    paint(panes[1], after && shown(after, state.window), after);
    paint(panes[2], changed && changed.pixels, before);
    if (before && after) {
      const share = changed === null ? "the two differ in size or colour" : changed.changed
        ? `${(changed.share * 100).toFixed(changed.share < 0.001 ? 4 : 2)} % of the pixels differ` : "no pixel differs";
      byId("viewer-says").textContent = share;
    }
  }

  function paint(canvas, pixels, picture) {
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(canvas.clientHeight * ratio);
    const pen = canvas.getContext("2d");
    if (!pixels || !picture) return;
    const sheet = new OffscreenCanvas(picture.width, picture.height);
    sheet.getContext("2d").putImageData(pixels, 0, 0);
    const { scale, left, top } = fit(canvas, picture);
    pen.imageSmoothingEnabled = scale < 1;
    pen.setTransform(scale, 0, 0, scale, left, top);
    pen.drawImage(sheet, 0, 0);
    pen.lineWidth = 2 * ratio / scale;
    for (const one of pointers) {
      if (one.box && one.name === now().thing.name && (one.frame === now().frame || one.where.includes("every frame"))) {
        outline(pen, one.box, "#ffd200");
      }
    }
    const drawn = box.read();
    if (drawn) outline(pen, drawn, "#41d8ff");
  }

  function outline(pen, [top, left, bottom, right], colour) {
    pen.strokeStyle = colour;
    pen.strokeRect(left, top, right - left, bottom - top);
  }

  function fit(canvas, picture) {
    const scale = Math.min(canvas.width / picture.width, canvas.height / picture.height) * state.zoom;
    const left = (canvas.width - picture.width * scale) / 2 + state.x * canvas.width;
    const top = (canvas.height - picture.height * scale) / 2 + state.y * canvas.height;
    return { scale, left, top };
  }

  function pixelAt(canvas, event) {
    const picture = state.pictures.find(Boolean);
    if (!picture) return null;
    const { scale, left, top } = fit(canvas, picture);
    const ratio = canvas.width / canvas.clientWidth;
    const column = (event.offsetX * ratio - left) / scale, row = (event.offsetY * ratio - top) / scale;
    return [clamp(row, 0, picture.height), clamp(column, 0, picture.width)];
  }

  function setDrawing(on) {
    state.drawing = on && !deciding.closed;
    viewer.querySelector("[data-do=draw]").setAttribute("aria-pressed", String(state.drawing));
    for (const pane of panes) pane.classList.toggle("drawing", state.drawing);
    const picture = state.pictures.find(Boolean);
    if (state.drawing && picture) {
      const { width, height } = picture;
      if (!box.read()) {
        const found = pointers[state.finding]?.box; // the finding that is on the screen, with a little around it
        const [top, left, bottom, right] = found ?? [height * 3 / 8, width * 3 / 8, height * 5 / 8, width * 5 / 8].map(Math.round);
        const edge = found ? 2 : 0;
        box.write([Math.max(0, top - edge), Math.max(0, left - edge), Math.min(height, bottom + edge), Math.min(width, right + edge)]);
      }
      deciding.choose("redact");
      panes[0].focus({ preventScroll: true });
    }
    draw();
  }

  function moveBox(event) {
    const picture = state.pictures.find(Boolean), drawn = box.read();
    if (!picture || !drawn) return;
    const step = Math.max(1, Math.round(Math.max(picture.width, picture.height) / 128));
    const [down, across] = { ArrowUp: [-step, 0], ArrowDown: [step, 0], ArrowLeft: [0, -step], ArrowRight: [0, step] }[event.key];
    let [top, left, bottom, right] = drawn;
    if (event.shiftKey) {
      bottom = clamp(bottom + down, top + 1, picture.height);
      right = clamp(right + across, left + 1, picture.width);
    } else {
      const rows = clamp(down, -top, picture.height - bottom), columns = clamp(across, -left, picture.width - right);
      [top, left, bottom, right] = [top + rows, left + columns, bottom + rows, right + columns];
    }
    box.write([top, left, bottom, right]);
    draw();
  }

  function zoom(factor) { state.zoom = clamp(state.zoom * factor, 1, 32); if (state.zoom === 1) state.x = state.y = 0; draw(); }
  function reset() { state.zoom = 1; state.x = state.y = 0; state.hand = false; const first = state.pictures.find(Boolean); if (first) setWindow(usualWindow(first), false); draw(); }
  function rewindow(level, width) { const { window } = state; if (window) { setWindow({ level: window.level + level * window.width, width: Math.max(1e-6, window.width * width) }, true); draw(); } }

  function show(index) {
    const one = pointers[index];
    if (!one) return;
    state.finding = index;
    const to = places.findIndex((place) => place.thing.name === one.name && place.frame === (one.frame ?? 0));
    if (one.frame !== null && to >= 0) { go(to); viewer.scrollIntoView({ block: "nearest" }); }
    else deciding.header(one.name, one.path);
  }

  const deeds = {
    previous: () => go(state.at - 1), next: () => go(state.at + 1), reset, in: () => zoom(1.5), out: () => zoom(1 / 1.5),
    draw: () => setDrawing(!state.drawing), finding: () => show((state.finding + 1) % pointers.length),
  };
  const byKey = {
    j: deeds.next, ArrowDown: deeds.next, k: deeds.previous, ArrowUp: deeds.previous, f: deeds.finding, b: () => setDrawing(true),
    PageDown: () => go(state.at + 10), PageUp: () => go(state.at - 10), Home: () => go(0), End: () => go(places.length - 1),
    "+": deeds.in, "=": deeds.in, "-": deeds.out, 0: reset, h: () => deciding.header(now().thing.name, ""),
    "[": () => rewindow(0, 0.9), "]": () => rewindow(0, 1 / 0.9), ",": () => rewindow(-0.05, 1), ".": () => rewindow(0.05, 1),
  };
  viewer.addEventListener("click", (event) => deeds[event.target.dataset.do]?.());
  document.querySelector(".findings")?.addEventListener("click", (event) => { if (event.target.dataset.finding) show(Number(event.target.dataset.finding)); });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (state.drawing && event.key.startsWith("Arrow")) moveBox(event);
    else if (state.drawing && event.key === "Enter" && event.target.matches("canvas")) { setDrawing(false); deciding.reason(); }
    else if (event.key === "Escape") setDrawing(false);
    else if (event.target.matches("input")) return; // radio buttons and the slider have arrows of their own
    else if (byKey[event.key]) byKey[event.key]();
    else return;
    event.preventDefault();
  });
  slider.addEventListener("input", () => go(Number(slider.value)));
  for (const id of ["level", "width"]) {
    byId(id).addEventListener("change", () => {
      const [level, width] = [Number(byId("level").value), Number(byId("width").value)];
      if (Number.isFinite(level) && width > 0) { setWindow({ level, width }, true); draw(); }
    });
  }
  box.changed(draw);
  addEventListener("resize", draw);

  for (const pane of panes) {
    let from = null;
    pane.addEventListener("contextmenu", (event) => event.preventDefault());
    pane.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.ctrlKey) zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
      else go(state.at + Math.sign(event.deltaY));
    }, { passive: false });
    pane.addEventListener("pointerdown", (event) => {
      pane.setPointerCapture(event.pointerId);
      from = { x: event.offsetX, y: event.offsetY, pixel: pixelAt(pane, event), window: state.window, pan: [state.x, state.y], moves: event.button !== 0 };
    });
    pane.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const across = (event.offsetX - from.x) / pane.clientWidth, down = (event.offsetY - from.y) / pane.clientHeight;
      if (from.moves) [state.x, state.y] = [from.pan[0] + across, from.pan[1] + down];
      else if (state.drawing && from.pixel) {
        const [row, column] = pixelAt(pane, event);
        const rows = [from.pixel[0], row].sort((a, b) => a - b), columns = [from.pixel[1], column].sort((a, b) => a - b);
        box.write([Math.floor(rows[0]), Math.floor(columns[0]), Math.ceil(rows[1]), Math.ceil(columns[1])]);
      } else if (from.window) {
        setWindow({ level: from.window.level - down * from.window.width, width: Math.max(1e-6, from.window.width * 4 ** across) }, true);
      }
      draw();
    });
    for (const end of ["pointerup", "pointercancel"]) pane.addEventListener(end, () => { from = null; });
  }
  go(0);
}
