const data = JSON.parse(document.getElementById('data').textContent);

/* Text reaches the page through here only: as text nodes and attributes, never as markup. */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === 'class') made.className = value;
    else if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, '');
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined).map((child) =>
    child instanceof Node ? child : document.createTextNode(String(child))));
  return made;
}

function section(id, title, ...children) {
  const made = element('section', {id, 'aria-label': title}, element('h2', null, title), ...children);
  document.getElementById('main').append(made);
  document.getElementById('contents').append(element('a', {href: '#' + id}, title));
  return made;
}

const grouped = (number) => number.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ',');
const counted = (number, noun) => grouped(number) + ' ' + noun + (number === 1 ? '' : 's');

function size(bytes) {
  if (bytes < 1024) return counted(bytes, 'byte');
  let value = bytes / 1024, unit = 0;
  while (value >= 1023.95 && unit < 5) { value /= 1024; unit += 1; }
  return value.toFixed(1) + ' ' + ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][unit];
}

function duration(ns) {
  if (ns < 1e6) return (ns / 1e3).toFixed(1) + ' us';
  if (ns < 1e9) return (ns / 1e6).toFixed(1) + ' ms';
  return ns < 12e10 ? (ns / 1e9).toFixed(1) + ' s' : Math.round(ns / 6e10) + ' min';
}

function stackList(stack, own, status) {
  const lines = stack.map((number, index) => {
    const [name, place, , whole, inlined] = data.frames[number];
    return element('li', {class: index === own ? 'own' : ''}, name,
      element('span', {class: 'place', title: whole}, place + (inlined ? '  (inlined)' : '') + (index === own ? '  your code' : '')));
  });
  if (!stack.length) lines.push(element('li', {class: 'remark'}, '(stack not kept)'));
  else if (status && !['complete', 'frame-pointer'].includes(status)) lines.push(element('li', {class: 'remark'}, '(stack cut here: ' + status + ')'));
  return element('ul', {class: 'stack'}, lines);
}

/* One tab stop for many elements: the arrows move it. */
function movesByArrows(place, selector) {
  place.addEventListener('keydown', (event) => {
    const step = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1}[event.key];
    const all = [...place.querySelectorAll(selector)], next = step && all[all.indexOf(event.target) + step];
    if (!next || !all.includes(event.target)) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

/* Columns: {title, number, value(row), cell(row)}. `inside`, if given, makes what opens below a row; the first `opened`
   rows are open. Where `sortedBy` is null the rows stand as they are given. */
function sortableTable(columns, rows, options) {
  const {sortedBy = 0, inside = null, shown = 50, opened: first = 0} = options || {};
  const body = element('tbody'), heads = [];
  let column = sortedBy, descending = sortedBy !== null && Boolean(columns[sortedBy].number), limit = shown, current = rows, openedFirst = first;
  movesByArrows(body, 'tr.entry');
  const table = element('table', null, element('thead', null, element('tr', null, columns.map((c, index) => {
    const head = element('th', {class: c.number ? 'number' : '', scope: 'col'}, element('button', {type: 'button', onclick: () => {
      descending = column === index ? !descending : Boolean(c.number);
      column = index;
      draw();
    }}, c.title));
    heads.push(head);
    return head;
  }))), body);

  function row(entry, index) {
    const cells = columns.map((c) => element('td', {class: (c.number ? 'number ' : '') + (c.class || '')}, c.cell ? c.cell(entry) : c.value(entry)));
    if (!inside) return element('tr', null, cells);
    let opened = null;
    const line = element('tr', {class: 'entry', tabindex: index ? -1 : 0, 'aria-expanded': 'false'}, cells);
    const toggle = () => {
      if (opened) { opened.remove(); opened = null; }
      else { opened = element('tr', {class: 'inside'}, element('td', {colspan: columns.length}, inside(entry))); line.after(opened); }
      line.setAttribute('aria-expanded', String(Boolean(opened)));
    };
    line.addEventListener('click', toggle);
    line.addEventListener('keydown', (event) => { if (event.key === 'Enter') toggle(); });
    if (index >= openedFirst) return line;
    opened = element('tr', {class: 'inside'}, element('td', {colspan: columns.length}, inside(entry)));
    line.setAttribute('aria-expanded', 'true');
    return [line, opened];
  }

  function draw() {
    const value = column === null ? () => 0 : columns[column].value;
    const sign = descending ? -1 : 1;
    const sorted = current.map((entry, index) => [value(entry), index, entry]).sort(([a, i], [b, j]) =>
      (typeof a === 'string' ? a.localeCompare(b) : a - b) * sign || i - j);
    heads.forEach((head, index) => index === column
      ? head.setAttribute('aria-sort', descending ? 'descending' : 'ascending') : head.removeAttribute('aria-sort'));
    body.replaceChildren(...sorted.slice(0, limit).flatMap(([, , entry], index) => row(entry, index)));
    openedFirst = 0;
    if (sorted.length > limit) {
      body.append(element('tr', null, element('td', {colspan: columns.length}, element('button', {type: 'button', onclick: () => {
        limit = Infinity;
        draw();
      }}, 'show ' + counted(sorted.length - limit, 'more row')))));
    }
  }

  draw();
  return {table, show(entries) { current = entries; draw(); }};
}
