// Everything around the map: legend, search, tip, pointer, keyboard, theme.
"use strict";

(() => {
  const element = (id) => document.getElementById(id);
  const data = JSON.parse(element("data").textContent);
  const canvas = element("map"), tip = element("tip"), live = element("live"), search = element("search"), found = element("found");
  const map = new PlanMap(canvas, data);
  const number = (value) => value.toLocaleString("en");
  const make = (name, text = "", className = "") => {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const domainOf = new Int32Array(data.ids.length);
  for (const [domain, start, end] of data.boxes) domainOf.fill(domain, start, end);

  // Theme

  const darkAtHome = matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (dark) => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    map.request();
  };
  setTheme(darkAtHome.matches);
  darkAtHome.addEventListener("change", () => setTheme(darkAtHome.matches));
  element("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));

  // Legend: pressed components are shown, the others fade; none pressed shows all

  const swatch = (colour, round) => {
    const made = make("span", "", round ? "swatch round" : "swatch");
    made.style.background = colour;
    return made;
  };
  data.roles.forEach((role, component) => {
    const button = make("button");
    button.type = "button";
    button.dataset.component = role.name;
    button.setAttribute("aria-pressed", "false");
    button.title = `Show only ${role.name} (${role.kind}, ${number(role.nodes)} node${role.nodes === 1 ? "" : "s"})`;
    const where = role.hasGpus ? `on ${number(role.gpus)} GPU${role.gpus === 1 ? "" : "s"}` : "without GPU";
    button.append(swatch(role.colour, !role.hasGpus), make("strong", role.name), make("small", `${number(role.workers)} ${where}`));
    button.addEventListener("click", () => {
      if (!map.only.delete(component)) map.only.add(component);
      button.setAttribute("aria-pressed", String(map.only.has(component)));
      const shown = [...map.only].map((index) => data.roles[index].name);
      live.textContent = shown.length ? `Showing ${shown.join(", ")}` : "Showing every component";
      map.request();
    });
    element("legend").append(button);
  });
  const key = (label, style) => {
    const entry = make("span", "", "key"), mark = make("span", "", "swatch");
    Object.assign(mark.style, style);
    entry.append(mark, make("span", label));
    element("legend").append(entry);
  };
  if (data.pools.length > 1) {
    data.pools.forEach((pool, index) => key(pool, { border: `2px ${["solid", "dashed", "dotted", "dashed"][index % 4]} var(--ink)` }));
  }
  const small = data.overview ? "-small" : "";
  const crossed = "linear-gradient(45deg, transparent 45%, var(--mark) 45% 55%, transparent 55%), linear-gradient(-45deg, transparent 45%, var(--mark) 45% 55%, transparent 55%)";
  const striped = "repeating-linear-gradient(-45deg, transparent 0 3px, var(--mark) 3px 4px)";
  for (const [state, label, name, pattern] of [[".", "idle", "idle", ""], ["x", "unavailable", "unavailable", crossed], ["o", "held by other plans", "occupied", striped]]) {
    if (data.states.includes(state)) {
      key(label, { background: `${pattern ? `${pattern}, ` : ""}var(--${name}${small})`, borderColor: "var(--idle-edge)" });
    }
  }

  // Goals

  const allProved = data.goals.every(([, , known]) => known === "proved");
  if (data.goals.length) {
    const head = make("div");
    head.append(make("dt", allProved ? "Goals, first to last, all proved optimal:" : "Goals, first to last:"));
    element("goals").append(head);
  }
  for (const [name, value, known] of data.goals) {
    const entry = make("div"), shown = make("dd", value);
    if (!allProved) shown.append(" ", make("small", `(${known})`));
    entry.append(make("dt", name), shown);
    element("goals").append(entry);
  }

  // What there is to say about a node

  const rangesText = (flat) => {
    const parts = [];
    for (let at = 0; at < flat.length; at += 2) parts.push(flat[at] === flat[at + 1] ? `${flat[at]}` : `${flat[at]}-${flat[at + 1]}`);
    return parts.length > 6 ? `${parts.slice(0, 6).join(", ")}, ...` : parts.join(", ");
  };
  const gpuRanges = (content, component) => {
    const gpus = new Set();
    for (const [which, start, end] of content.tiles) if (which === component) for (let gpu = start; gpu <= end; gpu++) gpus.add(gpu);
    const flat = [];
    for (const gpu of [...gpus].sort((a, b) => a - b)) {
      if (flat.length && flat[flat.length - 1] === gpu - 1) flat[flat.length - 1] = gpu;
      else flat.push(gpu, gpu);
    }
    return rangesText(flat);
  };
  const stateName = { ".": "idle", x: "unavailable", o: "held by another plan" };
  const describe = (node, gpu) => {
    const content = map.content(node), [name, , , above] = data.domains[domainOf[node]];
    const place = [name ? `NVLink domain ${name}` : "", above].filter(Boolean).join(", ");
    const rows = content.parts.map((component, part) => {
      const gpus = gpuRanges(content, component), flat = data.workers[node][part];
      const several = flat.length > 2 || flat[0] !== flat[1];
      return { role: data.roles[component], gpus: gpus ? `GPU ${gpus}` : "no GPU", workers: `worker${several ? "s" : ""} ${rangesText(flat)}` };
    });
    const here = [];
    if (gpu >= 0) {
      for (const [component, start, end, , , at, count] of content.tiles) {
        if (gpu < start || gpu > end) continue;
        const first = map.workerAt(node, component, at), last = map.workerAt(node, component, at + count - 1);
        here.push(`${data.roles[component].name} ${count === 1 ? first : `${first}-${last}`}`);
      }
      if (!here.length) here.push(stateName[content.states[gpu]]);
    }
    const idle = content.held.runs.filter(([state]) => state === ".").flatMap(([, start, end]) => [start, end]);
    return { id: data.ids[node], place, note: content.note, rows, here: here.length ? `GPU ${gpu}: ${here.join(", ")}` : "", idle: idle.length ? `idle: GPU ${rangesText(idle)}` : "" };
  };

  const showTip = (node, gpu, x, y) => {
    const what = describe(node, gpu);
    tip.replaceChildren(make("h2", what.id));
    for (const text of [what.place, what.note]) if (text) tip.append(make("p", text));
    if (what.here) tip.append(make("p", what.here, "here"));
    if (what.rows.length) {
      const table = make("table");
      for (const row of what.rows) {
        const line = table.insertRow(), name = line.insertCell();
        name.append(swatch(row.role.colour, !row.role.hasGpus), row.role.name);
        line.insertCell().textContent = row.gpus;
        line.insertCell().textContent = row.workers;
      }
      tip.append(table);
    }
    if (what.idle) tip.append(make("p", what.idle));
    tip.hidden = false;
    const left = x + 16 + tip.offsetWidth > map.pixelWidth ? x - 16 - tip.offsetWidth : x + 16;
    const top = y + 16 + tip.offsetHeight > map.pixelHeight ? y - 16 - tip.offsetHeight : y + 16;
    tip.style.left = `${Math.max(4, Math.min(left, map.pixelWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(top, map.pixelHeight - tip.offsetHeight - 4))}px`;
    return what;
  };
  const hideTip = () => { tip.hidden = true; };

  const select = (node, zoom) => {
    map.selected = node;
    if (node < 0) return hideTip();
    map.show(node, zoom);
    const place = map.rectangle(node);
    const what = showTip(node, -1, place.x, place.y + place.height);
    const parts = what.rows.map((row) => `${row.role.name} ${row.gpus}, ${row.workers}`);
    live.textContent = [what.id, what.place, what.note, ...parts, what.idle].filter(Boolean).join(". ");
    return undefined;
  };

  // Pointer: drag, pinch, hover, click

  const pointers = new Map();
  let dragged = 0;
  const local = (event) => {
    const frame = canvas.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, local(event));
    dragged = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = local(event), before = pointers.get(event.pointerId);
    if (!before) {
      const hit = map.at(now.x, now.y), node = hit ? hit.node : -1;
      if (node !== map.hovered) { map.hovered = node; map.request(); }
      if (hit) showTip(hit.node, hit.gpu, now.x, now.y);
      else hideTip();
      return;
    }
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const spread = (a) => Math.max(1, Math.hypot(a.x - other.x, a.y - other.y));
      map.zoomAt((now.x + other.x) / 2, (now.y + other.y) / 2, spread(now) / spread(before));
    } else {
      map.move(now.x - before.x, now.y - before.y);
    }
    dragged += Math.hypot(now.x - before.x, now.y - before.y);
    if (dragged > 4) { canvas.classList.add("moving"); hideTip(); }
    pointers.set(event.pointerId, now);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => {
      const now = local(event);
      pointers.delete(event.pointerId);
      canvas.classList.remove("moving");
      if (name === "pointerup" && dragged <= 4) {
        const hit = map.at(now.x, now.y);
        select(hit ? hit.node : -1);
        if (hit) showTip(hit.node, hit.gpu, now.x, now.y);
        map.request();
      }
    });
  }
  canvas.addEventListener("pointerleave", () => { map.hovered = -1; hideTip(); map.request(); });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { x, y } = local(event), lines = event.deltaMode === 1 ? 16 : 1;
    hideTip();
    map.zoomAt(x, y, Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) * 0.0022));
  }, { passive: false });
  const zoomMiddle = (factor) => { hideTip(); map.zoomAt(map.pixelWidth / 2, map.pixelHeight / 2, factor); };
  element("zoom-in").addEventListener("click", () => zoomMiddle(1.5));
  element("zoom-out").addEventListener("click", () => zoomMiddle(1 / 1.5));
  element("fit").addEventListener("click", () => { hideTip(); map.fit(); });

  // Keyboard

  const neighbour = (node, dx, dy) => {
    const x = map.nodeX(node), y = map.nodeY(node);
    let best = node, least = Infinity;
    for (let other = 0; other < data.ids.length; other++) {
      const ax = map.nodeX(other) - x, ay = map.nodeY(other) - y;
      const along = ax * dx + ay * dy, across = Math.abs(ax * dy + ay * dx);
      if (along <= 0.01) continue;
      const cost = along + 4 * across;
      if (cost < least) { least = cost; best = other; }
    }
    return best;
  };
  const readable = () => Math.max(map.view.zoom, 44);
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const at = map.selected, last = data.ids.length - 1;
    if (arrows[event.key] && last >= 0) select(at < 0 ? 0 : neighbour(at, ...arrows[event.key]));
    else if (event.key === "Home" && last >= 0) select(0);
    else if (event.key === "End" && last >= 0) select(last);
    else if (event.key === "Enter" && at >= 0) select(at, readable());
    else if (event.key === "Escape") { select(-1); map.request(); }
    else if (event.key === "+" || event.key === "=") zoomMiddle(1.5);
    else if (event.key === "-") zoomMiddle(1 / 1.5);
    else if (event.key === "0") { hideTip(); map.fit(); }
    else return;
    event.preventDefault();
  });

  // Search: matches are ringed; Enter goes to the next one

  let matches = [], next = 0;
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    matches = [];
    if (wanted) {
      data.ids.forEach((id, node) => {
        const domain = data.domains[domainOf[node]][0];
        if (id.toLowerCase().includes(wanted) || (domain !== null && domain.toLowerCase() === wanted)) matches.push(node);
      });
      matches.sort((a, b) => (data.ids[b].toLowerCase() === wanted) - (data.ids[a].toLowerCase() === wanted) || a - b);
    }
    next = 0;
    map.matches = new Set(matches);
    found.textContent = !wanted ? "" : matches.length === 1 ? "1 node" : `${number(matches.length)} nodes`;
    map.request();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { search.value = ""; search.dispatchEvent(new Event("input")); select(-1); }
    if (event.key !== "Enter" || !matches.length) return;
    select(matches[next], readable());
    found.textContent = `${number(next + 1)} of ${number(matches.length)}`;
    next = (next + 1) % matches.length;
  });

  // Size

  let fitted = false;
  new ResizeObserver(() => {
    const whole = !fitted || Math.abs(map.view.zoom - map.fitZoom) < 1e-6;
    map.resize();
    if (whole) { map.fit(); fitted = true; }
    map.draw();
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }).observe(canvas);

  // For tests and bookmarklets: where a node is on the page, and the map itself.
  window.placewright = {
    map,
    centre: (id, gpu = 0) => {
      const place = map.rectangle(data.ids.indexOf(id)), frame = canvas.getBoundingClientRect();
      return { x: frame.left + place.x + (gpu + 0.5) * map.view.zoom, y: frame.top + place.y + place.height / 2 };
    },
  };
})();
