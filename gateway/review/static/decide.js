// The form that decides, the box in it, and the header of an object. Works without frames too.
export function startDeciding() {
  const byId = (id) => document.getElementById(id);
  const form = byId("decide"), chooser = byId("object");
  const sides = ["top", "left", "bottom", "right"].map((side) => byId(`box-${side}`));
  const listeners = [];
  let pointed = "", looked = { at: 0, of: 0 };

  const box = {
    read() {
      const values = sides.map((side) => (side?.value ? Number(side.value) : NaN));
      const [top, left, bottom, right] = values;
      return values.every(Number.isInteger) && top < bottom && left < right ? values : null;
    },
    write(values) { sides.forEach((side, i) => { if (side) side.value = String(values[i]); }); },
    changed(listener) { listeners.push(listener); },
  };
  for (const side of sides) side?.addEventListener("input", () => listeners.forEach((listener) => listener()));

  function arrange() {
    const verb = form.elements.verb.value;
    for (const part of form.querySelectorAll("fieldset[data-for]")) part.classList.toggle("chosen", part.dataset.for === verb);
    for (const side of sides) side.required = verb === "redact";
    const left = looked.of - looked.at;
    byId("seen").hidden = verb !== "release" || left <= 0;
    byId("seen").textContent = `You have not looked at ${left} of ${looked.of} frames.`;
  }

  function choose(verb) {
    const radio = form?.querySelector(`input[name=verb][value=${verb}]`);
    if (!radio || radio.disabled) return false;
    radio.checked = true;
    arrange();
    return true;
  }

  function reason() {
    form?.scrollIntoView({ block: "nearest" });
    byId("reason")?.focus();
  }

  function header(name, path) {
    pointed = path;
    chooser.value = name;
    htmx.ajax("GET", `/study/${chooser.dataset.key}/header/${name}`, { target: "#header", swap: "outerHTML" });
  }

  // Shows the row that a finding points to; that of its top-level element where the row itself is not listed.
  function point() {
    const shown = byId("header");
    if (!pointed || !shown?.dataset.object) return;
    const at = [pointed, pointed.slice(0, 8)].map((path) => shown.querySelector(`tr[data-path="${CSS.escape(path)}"]`)).find(Boolean);
    at?.classList.add("pointed");
    (at ?? shown).scrollIntoView({ block: "center" });
    pointed = "";
  }

  if (form) {
    form.classList.add("scripted");
    form.addEventListener("change", arrange);
    form.addEventListener("submit", () => { form.querySelector("button:not([type=button])").disabled = true; });
    arrange();
  }
  byId("choose")?.addEventListener("submit", (event) => { event.preventDefault(); header(chooser.value, ""); byId("header").scrollIntoView({ block: "nearest" }); });
  document.addEventListener("htmx:afterSettle", point);

  const verbs = { a: "release", x: "reject", r: "rerun" };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in verbs)) return;
    if (event.target.closest("input:not([type=radio]):not([type=range]):not([type=checkbox]), select, textarea, dialog")) return;
    if (choose(verbs[event.key])) reason();
    event.preventDefault();
  });

  return { box, choose, reason, header, closed: form === null, seen(at, of) { looked = { at, of }; if (form) arrange(); }, object(name) { if (byId("box-name")) byId("box-name").value = name; if (chooser && !byId("header")?.dataset.object) chooser.value = name; } };
}
