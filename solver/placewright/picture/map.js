// Draws the map on a canvas. Geometry is in cells (one GPU is 1 x 1) and comes from arrangement.py; `view` says how many
// pixels a cell has and where the map's corner is. still_map.py draws the same for still pictures: change both.
"use strict";

const LABEL = 0.42, PAD = 0.06, TILES_FROM = 7, TEXT_FROM = 7;
const FONT = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const DASHES = [[], [5, 3], [1.5, 2.5], [7, 3, 1.5, 3]];

class PlanMap {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.data = data;
    this.view = { zoom: 1, x: 0, y: 0 };
    this.only = new Set();      // components to show; empty: all
    this.matches = new Set();   // nodes found by the search
    this.selected = -1;
    this.hovered = -1;
    this.contents = data.contents.map((content) => ({ ...content, runs: mergedRuns(content), held: heldCells(content) }));
    this.boxes = data.boxes.map(([domain, start, end, x, y, rows]) => {
      let right = x, bottom = y + 1;
      for (let node = start; node < end; node++) {
        right = Math.max(right, this.nodeX(node) + this.extent(node));
        bottom = Math.max(bottom, this.nodeY(node) + 1);
      }
      return { domain, start, end, x, y, rows, right, bottom };
    });
    this.pending = false;
  }

  nodeX(node) { return this.data.places[2 * node]; }
  nodeY(node) { return this.data.places[2 * node + 1]; }
  content(node) { return this.contents[this.data.content[node]]; }
  width(node) { return Math.max(1, this.content(node).gpus); }

  // Cells that a node takes together with its markers.
  extent(node) {
    const markers = this.data.overview ? 0 : this.content(node).bare.length;
    return this.width(node) + (markers ? markers * this.data.marker + 0.4 : 0);
  }

  // The worker at a place among a component's workers on a node.
  workerAt(node, component, place) {
    const ranges = this.data.workers[node][this.content(node).parts.indexOf(component)];
    for (let at = 0; at < ranges.length; at += 2) {
      const count = ranges[at + 1] - ranges[at] + 1;
      if (place < count) return ranges[at] + place;
      place -= count;
    }
    return -1;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.ratio = ratio;
    this.pixelWidth = this.canvas.clientWidth;
    this.pixelHeight = this.canvas.clientHeight;
    this.canvas.width = Math.max(1, Math.round(this.pixelWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.pixelHeight * ratio));
  }

  get fitZoom() {
    const [width, height] = this.data.size, margin = 20;
    return Math.max(0.05, Math.min((this.pixelWidth - 2 * margin) / width, (this.pixelHeight - 2 * margin) / height, 64));
  }

  fit() {
    const zoom = this.fitZoom, [width, height] = this.data.size;
    this.view = { zoom, x: (this.pixelWidth - width * zoom) / 2, y: Math.max(20, (this.pixelHeight - height * zoom) / 2) };
    this.request();
  }

  zoomAt(x, y, factor) {
    const zoom = Math.min(120, Math.max(this.fitZoom / 2, this.view.zoom * factor));
    const by = zoom / this.view.zoom;
    this.view = { zoom, x: x - (x - this.view.x) * by, y: y - (y - this.view.y) * by };
    this.request();
  }

  move(dx, dy) {
    this.view.x += dx;
    this.view.y += dy;
    this.request();
  }

  // Bring a node into view; with a zoom, into the middle at that zoom.
  show(node, zoom) {
    if (zoom) {
      this.view.zoom = zoom;
      this.view.x = this.pixelWidth / 2 - (this.nodeX(node) + this.width(node) / 2) * zoom;
      this.view.y = this.pixelHeight / 2 - (this.nodeY(node) + 0.5) * zoom;
    }
    const place = this.rectangle(node), edge = 40;
    if (place.x < edge) this.view.x += edge - place.x;
    else if (place.x + place.width > this.pixelWidth - edge) this.view.x -= place.x + place.width - this.pixelWidth + edge;
    if (place.y < edge) this.view.y += edge - place.y;
    else if (place.y + place.height > this.pixelHeight - edge) this.view.y -= place.y + place.height - this.pixelHeight + edge;
    this.request();
  }

  // A node's strip in pixels of the canvas.
  rectangle(node) {
    const { zoom, x, y } = this.view;
    return { x: x + this.nodeX(node) * zoom, y: y + this.nodeY(node) * zoom, width: this.width(node) * zoom, height: zoom };
  }

  // The node and GPU at a point of the canvas, or null.
  at(px, py) {
    const x = (px - this.view.x) / this.view.zoom, y = (py - this.view.y) / this.view.zoom, near = 0.25;
    for (const box of this.boxes) {
      if (x < box.x - near || x > box.right + near || y < box.y - near || y > box.bottom + near) continue;
      for (let node = box.start; node < box.end; node++) {
        const left = this.nodeX(node), top = this.nodeY(node);
        if (y < top - near || y > top + 1 + near || x < left - near || x > left + this.extent(node)) continue;
        const gpu = Math.floor(x - left);
        return { node, gpu: gpu >= 0 && gpu < this.content(node).gpus ? gpu : -1 };
      }
    }
    return null;
  }

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  draw() {
    const c = this.context, { zoom } = this.view;
    const style = getComputedStyle(document.documentElement);
    this.ink = Object.fromEntries(
      ["page", "ink", "faint", "panel", "edge", "idle", "idle-small", "idle-edge", "unavailable", "unavailable-small", "occupied",
        "occupied-small", "mark", "tile-edge", "focus"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.pixelWidth, this.pixelHeight);
    const left = -this.view.x / zoom, top = -this.view.y / zoom;
    const right = left + this.pixelWidth / zoom, bottom = top + this.pixelHeight / zoom;
    const lowest = new Map();
    for (const box of this.boxes) {
      if (box.right + 1 < left || box.x - this.data.gutter > right || box.bottom + 1 < top || box.y - 1.2 > bottom) continue;
      if (this.data.overview) this.rowLabel(box, lowest);
      else this.panel(box);
      for (let node = box.start; node < box.end; node++) {
        const x = this.nodeX(node), y = this.nodeY(node);
        if (x > right || x + this.extent(node) < left - this.data.gutter || y > bottom || y + 1 < top) continue;
        this.node(node, x, y);
      }
    }
    this.outlines(left, top, right, bottom);
    for (const node of this.matches) this.ring(node, this.ink.focus, 2);
    if (this.hovered >= 0 && this.hovered !== this.selected) this.ring(this.hovered, this.ink.ink, 1.5);
    if (this.selected >= 0) this.ring(this.selected, this.ink.focus, 3);
  }

  px(x) { return this.view.x + x * this.view.zoom; }
  py(y) { return this.view.y + y * this.view.zoom; }

  rect(x, y, width, height, fill, radius = 0, edge = "") {
    const c = this.context, z = this.view.zoom;
    c.fillStyle = fill;
    if (z < TILES_FROM) {  // whole pixels: crisp and without seams
      const snap = (value) => Math.round(value * this.ratio) / this.ratio;
      const x0 = snap(this.px(x)), y0 = snap(this.py(y));
      c.fillRect(x0, y0, Math.max(1 / this.ratio, snap(this.px(x + width)) - x0), Math.max(1 / this.ratio, snap(this.py(y + height)) - y0));
      return;
    }
    c.beginPath();
    if (radius) c.roundRect(this.px(x), this.py(y), width * z, height * z, radius * z);
    else c.rect(this.px(x), this.py(y), width * z, height * z);
    c.fill();
    if (edge) {
      c.strokeStyle = edge;
      c.lineWidth = 1;
      c.stroke();
    }
  }

  text(x, y, text, size, colour, align = "left", weight = "") {
    const c = this.context;
    c.font = `${weight} ${size}px ${FONT}`;
    c.textAlign = align;
    c.textBaseline = "middle";
    c.fillStyle = colour;
    c.fillText(text, x, y);
    return c.measureText(text).width;
  }

  panel(box) {
    const { data, ink } = this, z = this.view.zoom;
    const columns = Math.ceil((box.end - box.start) / box.rows), x = box.x - data.gutter, y = box.y - 0.95;
    this.rect(x - 0.1, y, columns * data.column + 0.3, box.rows * data.row + 0.95, ink.panel, 0.18, ink.edge);
    const size = Math.min(15, z * LABEL);
    if (size < TEXT_FROM) return;
    const [, name, detail] = data.domains[box.domain];
    let at = this.px(x + 0.25);
    if (name) at += this.text(at, this.py(y + 0.45), name, size, ink.ink, "left", "600") + 0.35 * z;
    this.context.font = `${size * 0.88}px ${FONT}`;
    const room = this.px(x + columns * data.column) - at;
    const fitting = [detail, detail.split(",")[0]].find((text) => this.context.measureText(text).width < room);
    if (fitting) this.text(at, this.py(y + 0.45), fitting, size * 0.88, ink.faint);
  }

  rowLabel(box, lowest) {
    const [name] = this.data.domains[box.domain], y = this.py(box.y + 0.5);
    if (y - (lowest.get(box.x) ?? -1e9) < 13) return;
    lowest.set(box.x, y);
    const label = shortened(name ?? this.data.ids[box.start], 14), size = Math.min(13, Math.max(10, this.view.zoom * 0.5));
    const room = (this.data.gutter - 1) * this.view.zoom, fitted = Math.min(size, size * room / this.widestLabel(size));
    if (fitted >= 6) this.text(this.px(box.x) - 6 - 0.2 * this.view.zoom, y, label, fitted, this.ink.faint, "right");
  }

  // Width of the longest row label at a font size; one size for all labels looks calm.
  widestLabel(size) {
    if (!this.widest) {
      this.context.font = `100px ${FONT}`;
      const names = this.boxes.map((box) => shortened(this.data.domains[box.domain][0] ?? this.data.ids[box.start], 14));
      this.widest = Math.max(...[...new Set(names)].map((name) => this.context.measureText(name).width), 1) / 100;
    }
    return this.widest * size;
  }

  dim(component) { return this.only.size && !this.only.has(component) ? 0.1 : 1; }

  node(node, x, y) {
    const { data, ink } = this, c = this.context, z = this.view.zoom, content = this.content(node), fine = z >= TILES_FROM;
    // Gaps of about a pixel would show as stripes: far away, what is alike becomes one area.
    const high = data.overview && !fine && z < 4 ? data.row : 1, more = high > 1 ? 0.5 : 0;
    const size = Math.min(14, z * LABEL), shade = this.only.size ? 0.45 : 1;
    if (!data.overview && size >= TEXT_FROM) {
      const label = data.labels[node] ?? data.ids[node];
      this.text(this.px(x - 0.28), this.py(y + 0.5), label, size, content.excluded ? ink.faint : ink.ink, "right");
    } else if (data.overview && z >= 34) {
      this.text(this.px(x), this.py(y - 0.25), data.labels[node] ?? data.ids[node], Math.min(12, z * 0.26), ink.faint);
    }
    c.globalAlpha = shade;
    if (!content.gpus) {
      this.rect(x + 0.1, y + 0.16, 0.8, 0.68, fine ? ink.panel : ink["idle-edge"], 0.12, ink["idle-edge"]);
      if (data.overview) {
        const wide = 0.5 / Math.max(1, content.bare.length);
        content.bare.forEach(([component], place) => {
          c.globalAlpha = this.dim(component);
          this.rect(x + 0.25 + place * wide, y + 0.3, wide, 0.4, data.roles[component].colour);
          c.globalAlpha = shade;
        });
      } else if (z * 0.32 >= TEXT_FROM) this.text(this.px(x + 0.5), this.py(y + 0.5), "CPU", Math.min(11, z * 0.28), ink.faint, "center");
    }
    if (fine) this.bareCells(content, x, y);
    else for (const [state, start, end] of content.held.runs) {
      this.rect(x + start, y, end - start + 1 + (end === content.gpus - 1 ? more : 0), high, this.stateFill(state, "-small"));
    }
    if (fine) for (const tile of content.tiles) this.tile(node, tile, x, y);
    else {
      for (const [component, start, end, lane, lanes] of content.runs) {
        c.globalAlpha = this.dim(component);
        const wide = end - start + 1 + (end === content.gpus - 1 ? more : 0);
        this.rect(x + start, y + high * lane / lanes, wide, high / lanes, data.roles[component].colour);
      }
    }
    if (z >= 9) this.markers(content, x, y);
    c.globalAlpha = 1;
  }

  stateFill(state, size = "") {
    return this.ink[{ ".": "idle", x: "unavailable", o: "occupied" }[state] + size];
  }

  bareCells(content, x, y) {
    const c = this.context, z = this.view.zoom, side = 1 - 2 * PAD;
    for (let gpu = 0; gpu < content.gpus; gpu++) {
      if (content.held.cells.has(gpu)) continue;
      const state = content.states[gpu];
      this.rect(x + gpu + PAD, y + PAD, side, side, this.stateFill(state), 0.1, this.ink["idle-edge"]);
      const lines = { ".": [], x: [[0.3, 0.3, 0.7, 0.7], [0.3, 0.7, 0.7, 0.3]], o: [[0.15, 0.5, 0.5, 0.15], [0.15, 0.85, 0.85, 0.15], [0.5, 0.85, 0.85, 0.5]] }[state];
      c.strokeStyle = this.ink.mark;
      c.lineWidth = Math.max(1, z * (state === "x" ? 0.06 : 0.04));
      for (const [x0, y0, x1, y1] of lines) {
        c.beginPath();
        c.moveTo(this.px(x + gpu + x0), this.py(y + y0));
        c.lineTo(this.px(x + gpu + x1), this.py(y + y1));
        c.stroke();
      }
    }
  }

  tile(node, [component, start, end, lane, lanes, place, count], x, y) {
    const c = this.context, z = this.view.zoom, role = this.data.roles[component];
    const high = (1 - 2 * PAD) / lanes, top = y + PAD + lane * high, left = x + start + PAD, wide = end - start + 1 - 2 * PAD;
    c.globalAlpha = this.dim(component);
    this.rect(left, top, wide, high, role.colour, lanes === 1 ? 0.1 : 0, this.ink["tile-edge"]);
    if (end > start && z >= 14) {
      c.strokeStyle = "rgba(255, 255, 255, 0.7)";
      c.lineWidth = 1;
      for (let gpu = start + 1; gpu <= end; gpu++) {
        c.beginPath();
        c.moveTo(this.px(x + gpu), this.py(top + high * (lanes === 1 ? 0.78 : 0.86)));
        c.lineTo(this.px(x + gpu), this.py(top + high));
        c.stroke();
      }
    }
    const size = Math.min(13, z * Math.min(0.36, high * 0.74));
    if (size < TEXT_FROM) return;
    const first = this.workerAt(node, component, place), last = this.workerAt(node, component, place + count - 1);
    for (const text of count === 1 ? [`${first}`] : [`${first}-${last}`, `×${count}`]) {
      c.font = `${size}px ${FONT}`;
      const fitted = Math.min(size, size * (wide - 0.16) * z / c.measureText(text).width);
      if (fitted < TEXT_FROM) continue;
      this.text(this.px(left + wide / 2), this.py(top + high / 2), text, fitted, role.text, "center");
      return;
    }
  }

  // Workers without GPU: a dot a component; beside the strip, or above it in an overview.
  markers(content, x, y) {
    const { data, ink } = this, c = this.context, z = this.view.zoom;
    content.bare.forEach(([component, count], number) => {
      const centre = data.overview ? [x + this.stripOf(content) - 0.2 - number * 0.4, y - 0.25]
        : [x + this.stripOf(content) + 0.45 + number * data.marker, y + 0.5];
      const radius = data.overview ? 0.14 : 0.17;
      c.globalAlpha = this.dim(component);
      c.fillStyle = data.roles[component].colour;
      c.strokeStyle = ink["tile-edge"];
      c.lineWidth = 1;
      c.beginPath();
      c.arc(this.px(centre[0]), this.py(centre[1]), Math.max(1.5, radius * z), 0, 7);
      c.fill();
      c.stroke();
      const size = Math.min(12, z * LABEL * 0.88);
      if (!data.overview && size >= TEXT_FROM) this.text(this.px(centre[0] + 0.27), this.py(centre[1]), `×${count}`, size, ink.faint);
    });
  }

  stripOf(content) { return Math.max(1, content.gpus); }

  outlines(left, top, right, bottom) {
    const c = this.context, z = this.view.zoom;
    c.strokeStyle = this.ink.ink;
    c.lineWidth = z < TILES_FROM ? 1 : 1.6;
    for (const [pool, x, y, width, height] of this.data.outlines) {
      if (x > right || x + width < left || y > bottom || y + height < top) continue;
      c.setLineDash(DASHES[pool % DASHES.length]);
      c.beginPath();
      c.roundRect(this.px(x), this.py(y), width * z, height * z, Math.min(8, 0.16 * z));
      c.stroke();
    }
    c.setLineDash([]);
  }

  ring(node, colour, line) {
    const place = this.rectangle(node), c = this.context, by = line;
    c.strokeStyle = colour;
    c.lineWidth = line;
    c.beginPath();
    c.roundRect(place.x - by, place.y - by, Math.max(4, place.width) + 2 * by, Math.max(4, place.height) + 2 * by, 4);
    c.stroke();
  }
}

function shortened(name, most) {
  return name.length <= most ? name : `${name.slice(0, most / 2 - 1)}…${name.slice(-most / 2)}`;
}

// Cells that hold workers, and the runs of those that hold none.
function heldCells(content) {
  const cells = new Set(), runs = [];
  for (const [, start, end] of content.tiles) for (let gpu = start; gpu <= end; gpu++) cells.add(gpu);
  for (let gpu = 0; gpu < content.gpus; gpu++) {
    if (cells.has(gpu)) continue;
    const last = runs[runs.length - 1];
    if (last && last[0] === content.states[gpu] && last[2] === gpu - 1) last[2] = gpu;
    else runs.push([content.states[gpu], gpu, gpu]);
  }
  return { cells, runs };
}

// Tiles of one component joined where they touch, for pictures in which a worker is too small to see.
function mergedRuns(content) {
  const runs = [];
  for (const [component, start, end, lane, lanes] of content.tiles) {
    const last = runs[runs.length - 1];
    if (last && last[0] === component && last[2] === start - 1 && last[3] === lane && last[4] === lanes) last[2] = end;
    else runs.push([component, start, end, lane, lanes]);
  }
  return runs;
}
