"use strict";
// What a page does beyond links and forms: answers that come later, updates, copying, the slider. All of it is
// the server's HTML, fetched and put in place: this file makes no text from data.

document.documentElement.classList.add("js");

const KEPT = "kueuecore-paused";

async function fetched(url) {
  const answer = await fetch(url, { headers: { accept: "text/html" } });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// Updating in place: what has focus, scroll, input and open details stays the same element.

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.dataset.key ?? node.id ?? "" : "";
}

function update(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) return;
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  updateChildren(old, fresh);
}

function updateChildren(old, fresh) {
  const wanted = new Set([...fresh.childNodes].map(keyOf).filter(Boolean));
  const known = new Map();
  for (const child of [...old.childNodes]) {
    const key = keyOf(child);
    if (key && !wanted.has(key)) child.remove();
    else if (key) known.set(key, child);
  }
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const key = keyOf(child);
    const found = key ? known.get(key) : at;
    if (found && found.nodeName === child.nodeName && keyOf(found) === key) {
      if (found === at) at = at.nextSibling;
      else old.insertBefore(found, at);
      update(found, child);
    } else {
      old.insertBefore(child, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function updateById(id, page) {
  const old = document.getElementById(id);
  const fresh = page.getElementById(id);
  if (!old || !fresh) return;
  const focused = document.activeElement;
  update(old, fresh);
  // To move an element takes its focus away.
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

// Answers that take their time.

function working(place, what) {
  place.setAttribute("aria-busy", "true");
  const note = document.createElement("p");
  note.className = "working";
  note.setAttribute("role", "status");
  note.textContent = what;
  place.replaceChildren(note);
}

async function answerPart(section, url) {
  const place = section.querySelector(".answer");
  const title = section.querySelector("h2").textContent;
  working(place, "Working on it");
  section.dataset.asked = url;
  try {
    const answer = (await fetched(url)).getElementById("answer");
    if (!answer) throw new Error("no answer");
    place.replaceChildren(...answer.childNodes);
    section.dataset.answered = answer.dataset.answered;
  } catch {
    const note = document.createElement("p");
    note.className = "warning";
    note.textContent = "There is no answer: the server may have stopped. Start kueuecore ui again, or ask again.";
    place.replaceChildren(note);
  }
  const again = document.createElement("button");
  again.type = "button";
  again.textContent = "Ask again";
  again.setAttribute("aria-label", "Ask again: " + title);
  again.addEventListener("click", () => answerPart(section, url));
  place.append(again);
  place.removeAttribute("aria-busy");
  section.querySelector(".stale")?.remove();
  noteStale();
}

async function answerForm(form, region) {
  const url = form.getAttribute("action") + "?" + new URLSearchParams(new FormData(form));
  const button = form.querySelector("[type=submit]");
  const note = document.createElement("p");
  note.className = "working";
  note.setAttribute("role", "status");
  note.textContent = "Working on it";
  button.after(note);
  button.setAttribute("aria-disabled", "true");
  region.setAttribute("aria-busy", "true");
  try {
    const fresh = (await fetched(url)).getElementById(region.id);
    if (!fresh) throw new Error("no answer");
    region.replaceChildren(...fresh.childNodes);
    (region.querySelector("[aria-invalid=true]") ?? region.querySelector("[data-focus], .slider input"))?.focus();
  } catch {
    note.className = "warning";
    note.textContent = "There is no answer: the server may have stopped. Start kueuecore ui again, then try again.";
    button.removeAttribute("aria-disabled");
  }
  region.removeAttribute("aria-busy");
}

document.addEventListener("submit", event => {
  const form = event.target;
  const asked = form.dataset.answer;
  if (form.classList.contains("slider")) {
    event.preventDefault();
    return;
  }
  if (!asked) return;
  const section = form.closest("section[data-part]");
  const region = document.getElementById(asked);
  if (!section && !region?.contains(form)) return;
  event.preventDefault();
  if (form.querySelector("[aria-disabled=true]")) return;
  if (section) answerPart(section, form.getAttribute("action") + "?" + new URLSearchParams(new FormData(form)));
  else answerForm(form, region);
});

// Copying a command.

document.addEventListener("click", async event => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = button.closest(".command").querySelector("code").textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.closest(".command").querySelector("code"));
    button.textContent = "Selected: copy it with the keyboard";
  }
  setTimeout(() => { button.textContent = "Copy the command"; }, 2000);
});

// The slider of a run.

let asking = false;
let moved = false;

async function showStep() {
  moved = true;
  if (asking) return;
  asking = true;
  // While one step is fetched, the slider may pass many.
  while (moved) {
    moved = false;
    const form = document.querySelector(".slider");
    const page = form && await fetched("/timeline?" + new URLSearchParams(new FormData(form))).catch(() => null);
    const fresh = page?.getElementById("at");
    if (!fresh) continue;
    updateById("step", page);
    form.elements.at.setAttribute("aria-valuetext", fresh.getAttribute("aria-valuetext"));
  }
  asking = false;
}

document.addEventListener("input", event => { if (event.target.id === "at") showStep(); });

function show(button, isPlaying) {
  button.setAttribute("aria-pressed", String(isPlaying));
  button.textContent = isPlaying ? "Stop" : "Play";
}

async function play(button) {
  const at = document.getElementById("at");
  const isPlaying = () => at.isConnected && button.getAttribute("aria-pressed") === "true";
  if (isPlaying()) return show(button, false);
  show(button, true);
  if (at.value === at.max) at.value = 0;
  while (isPlaying() && at.value !== at.max) {
    at.value = Number(at.value) + 1;
    await showStep();
    await new Promise(over => setTimeout(over, 400));
  }
  show(button, false);
}

document.addEventListener("click", event => {
  if (event.target.id === "play") play(event.target);
  const step = { "step-before": -1, "step-after": 1 }[event.target.id];
  if (step) {
    event.preventDefault();
    const at = document.getElementById("at");
    at.value = Number(at.value) + step;
    showStep();
  }
});

// Updates when the state changes.

let newest = document.body.dataset.version;
let refreshing = false;

function isPaused() {
  return sessionStorage.getItem(KEPT) === "yes";
}

function noteStale() {
  if (!newest) return;
  for (const section of document.querySelectorAll("section[data-answered]")) {
    if (section.dataset.answered === newest || section.querySelector(".stale")) continue;
    const note = document.createElement("p");
    note.className = "stale warning";
    note.textContent = "The state has changed since this was answered.";
    section.querySelector(".answer").before(note);
  }
}

async function refresh() {
  if (refreshing || isPaused() || newest === document.body.dataset.version) return;
  refreshing = true;
  try {
    const page = await fetched(location.href);
    const ids = [...document.querySelectorAll("[data-live]")].map(it => it.id);
    for (const id of ids) updateById(id, page);
    document.body.dataset.version = page.body.dataset.version ?? newest;
    noteStale();
  } catch {
    // The next event tries again.
  }
  // A busy cluster changes all the time: nobody reads faster.
  setTimeout(() => { refreshing = false; refresh(); }, 1000);
}

function follow() {
  if (!newest) return;
  let stream = null;
  // Each stream keeps a connection, of which a browser has six for all tabs: a hidden page needs none.
  const listen = () => {
    stream?.close();
    stream = null;
    if (document.hidden) return;
    stream = new EventSource("/events");
    stream.addEventListener("message", event => { newest = event.data; refresh(); });
  };
  document.addEventListener("visibilitychange", listen);
  addEventListener("pagehide", () => stream?.close());
  addEventListener("pageshow", event => { if (event.persisted) listen(); });
  listen();
  const button = document.getElementById("pause");
  const show = () => {
    button.setAttribute("aria-pressed", String(isPaused()));
    button.textContent = isPaused() ? "Updates are paused" : "Pause updates";
  };
  button.addEventListener("click", () => {
    sessionStorage.setItem(KEPT, isPaused() ? "no" : "yes");
    show();
    refresh();
  });
  show();
}

// A browser has few connections to a server, and slow answers keep them: one after the other, the quick ones first.
async function answerAll() {
  const sections = [...document.querySelectorAll("section[data-part]")];
  for (const section of sections) working(section.querySelector(".answer"), "Working on it");
  sections.sort((one, other) => Number("slow" in one.dataset) - Number("slow" in other.dataset));
  for (const section of sections) {
    // Somebody may have asked before its turn.
    if (!section.dataset.asked) await answerPart(section, section.dataset.part);
  }
}

follow();
answerAll();
