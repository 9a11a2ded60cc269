// A tree of what the page should show, and `patch`, which changes the document into it: what stays
// the same is left alone, so that nothing flickers and the focus stays where it is. Texts are set as
// texts, never as markup.
const SVG = 'http://www.w3.org/2000/svg';
const listed = kids =>
  kids.flat(9).filter(kid => kid !== null && kid !== undefined && kid !== false);
const h = (tag, attrs, ...kids) => ({tag, attrs: attrs || {}, kids: listed(kids)});
// A figure that tests find by its name.
const fig = (name, text, cls) => h('span', {'data-n': name, class: cls}, text);

function setAttributes(node, attrs) {
  const had = node.had || {};
  for (const name in had) if (!(name in attrs)) node.removeAttribute(name);
  for (const name in attrs) {
    const value = attrs[name];
    if (name.startsWith('on')) node[name] = value;
    else if (name === 'open' || name === 'checked') {
      if (node[name] !== value) node[name] = value;
    } else if (had[name] !== value) {
      if (value === undefined || value === false) node.removeAttribute(name);
      else node.setAttribute(name, value);
    }
  }
  node.had = attrs;
}
function patch(parent, kids) {
  let at = parent.firstChild;
  for (const kid of listed(kids)) {
    const isText = typeof kid !== 'object';
    let node = at;
    if (isText) {
      if (!at || at.nodeType !== 3) {
        node = document.createTextNode('');
        at ? parent.replaceChild(node, at) : parent.appendChild(node);
      }
      if (node.data !== String(kid)) node.data = String(kid);
    } else {
      if (!at || at.localName !== kid.tag || at.key !== kid.attrs.key) {
        node = kid.tag === 'svg' || parent.namespaceURI === SVG
          ? document.createElementNS(SVG, kid.tag) : document.createElement(kid.tag);
        node.key = kid.attrs.key;
        at ? parent.replaceChild(node, at) : parent.appendChild(node);
      }
      const {key, ...attrs} = kid.attrs;
      setAttributes(node, attrs);
      patch(node, kid.kids);
    }
    at = node.nextSibling;
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

// The widths of plots, which are drawn to the pixel.
const widths = {};
const resized = new ResizeObserver(entries => {
  let changed = false;
  for (const entry of entries) {
    const width = Math.round(entry.contentRect.width);
    changed = changed || (width > 0 && widths[entry.target.dataset.plot] !== width);
    if (width > 0) widths[entry.target.dataset.plot] = width;
  }
  if (changed) render();
});
function watchPlots() {
  for (const node of document.querySelectorAll('.plot'))
    if (!node.watched) {
      node.watched = true;
      resized.observe(node);
    }
}

// Texts at these heights, moved apart where they would touch.
function apart(labels, low, high) {
  const sorted = [...labels].sort((a, b) => a.y - b.y);
  for (let i = 0; i < sorted.length; ++i)
    sorted[i].y = Math.max(sorted[i].y, i ? sorted[i - 1].y + 13 : low);
  for (let i = sorted.length; i-- > 0;)
    sorted[i].y = Math.min(sorted[i].y, i + 1 < sorted.length ? sorted[i + 1].y - 13 : high);
  return sorted;
}

// A chart of lines. `lines`: {points: [[x, y], ..], ink: 'a'|'b'|'c'|'q', area, ahead, label}, each
// labelled at its end; `rules`: {y, label}, levels to compare with; `xs`: [[x, label], ..].
function chart({name, says, height, left, right, x, y, lines, rules = [], xs, ys, yText}) {
  const width = widths[name] || 320, top = 14, bottom = 20;
  left = left === undefined ? 40 : left;
  const w = Math.max(40, width - left - right), high = height - top - bottom;
  const px = v => left + w * (x[1] > x[0] ? (v - x[0]) / (x[1] - x[0]) : 0);
  const py = v => top + high * (1 - (y[1] > y[0] ? (v - y[0]) / (y[1] - y[0]) : 0));
  const at = (a, b) => a.toFixed(1) + ' ' + b.toFixed(1);
  const out = [];
  for (const tick of ys)
    out.push(h('line', {class: 'grid-line', x1: left, x2: left + w, y1: py(tick).toFixed(1),
      y2: py(tick).toFixed(1)}),
    h('text', {class: 'end', x: left - 6, y: (py(tick) + 4).toFixed(1)}, yText(tick)));
  let lastX = -99;
  for (const [v, text] of xs) {
    const place = px(v), half = text.length * 3.1;
    if (place - half < lastX + 8 || place + half > width) continue;
    lastX = place + half;
    out.push(h('text', {class: 'mid', x: place.toFixed(1), y: height - 4}, text));
  }
  const labels = [];
  for (const rule of rules) {
    out.push(h('line', {class: 'rule', x1: left, x2: left + w, y1: py(rule.y).toFixed(1),
      y2: py(rule.y).toFixed(1)}));
    labels.push({y: py(rule.y) + 4, text: rule.label, cls: ''});
  }
  for (const line of lines) {
    if (line.points.length === 0) continue;
    const path = line.points.map(([a, b], i) => (i ? 'L' : 'M') + at(px(a), py(b))).join('');
    const [endX, endY] = line.points[line.points.length - 1];
    if (line.area)
      out.push(h('path', {class: 'area f' + line.ink, d: path + 'L' + at(px(endX), py(y[0])) + 'L' +
        at(px(line.points[0][0]), py(y[0])) + 'Z'}));
    out.push(h('path', {class: 'k' + line.ink + (line.ahead ? ' ahead' : ''), d: path}));
    if (line.dot)
      out.push(h('circle', {class: 'f' + line.ink, r: 3, cx: px(endX).toFixed(1),
        cy: py(endY).toFixed(1)}));
    if (line.label) labels.push({y: py(endY) + 4, text: line.label, cls: 'f' + line.ink});
  }
  for (const label of apart(labels, top, height - bottom + 2))
    out.push(h('text', {class: label.cls, x: left + w + 8, y: label.y.toFixed(1)}, label.text));
  return h('div', {class: 'plot', 'data-plot': name, key: name},
    h('svg', {height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': says}, out));
}

// A bar of parts side by side: [[value, class], ..] of `all`.
function bar(name, parts, all, says) {
  let from = 0;
  const rects = [h('rect', {class: 'none', x: 0, y: 0, width: 100, height: 12})];
  for (const [value, cls] of parts) {
    const part = all > 0 ? 100 * value / all : 0;
    rects.push(h('rect', {class: cls, x: from.toFixed(3), y: 0,
      width: Math.max(0, part - (from + part < 99.9 && part > 1 ? .25 : 0)).toFixed(3), height: 12}));
    from += part;
  }
  return h('svg', {height: 12, viewBox: '0 0 100 12', preserveAspectRatio: 'none', role: 'img',
    'aria-label': says}, rects);
}

// A wide thing that scrolls by itself, with the words above it.
const captioned = (caption, thing) => h('div', {}, h('p', {class: 'caption'}, caption),
  h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': caption}, thing));
// A table; cells that are numbers stand to the right. `rows`: lists of cells, the first one names
// the row.
function table(caption, heads, rows, numbers) {
  const cls = i => (numbers.includes(i) ? 'n' : undefined);
  return captioned(caption, h('table', {'aria-label': caption},
      h('thead', {}, h('tr', {}, heads.map((text, i) => h('th', {scope: 'col', class: cls(i)}, text)))),
      h('tbody', {}, rows.map(row => h('tr', {}, row.map((cell, i) =>
        i === 0 ? h('th', {scope: 'row', class: cls(0)}, cell)
          : h('td', {class: cell && cell.tag === 'svg' ? 'bar' : cls(i)}, cell)))))));
}
// A table that is opened on demand; `make` is called while it is open.
function behind(name, make) {
  const open = opened.has(name);
  return h('details', {key: 'table ' + name, 'data-table': name, open, ontoggle: event => {
    if (event.target.open === opened.has(name)) return;
    event.target.open ? opened.add(name) : opened.delete(name);
    render();
  }}, h('summary', {}, 'Figures as a table'), open ? make() : null);
}
