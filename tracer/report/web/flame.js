/* Flame graph, outermost function on top. Boxes thinner than a pixel are not made. */
function flameSection() {
  const rowHeight = 20;
  const hasBytes = data.leaks.some((leak) => leak.bytes), kinds = [...new Set(data.leaks.map((leak) => leak.kind))];
  let measure = hasBytes ? 'bytes' : 'count', kind = '', reversed = false, pattern = '', root = null, focus = null;
  const place = element('div', {id: 'flame', role: 'tree'}), detail = element('div', {id: 'detail', class: 'mono'});
  const found = element('span', {id: 'found', class: 'tally'});

  const select = (label, options, change) => element('label', null, label + ' ', element('select', {onchange: (event) => {
    change(event.target.value);
    build();
  }}, options.map(([value, text]) => element('option', {value}, text))));
  const reset = element('button', {type: 'button', id: 'reset', onclick: () => zoom(root)}, 'Reset zoom');
  const search = element('input', {type: 'search', id: 'search', placeholder: 'Search functions, files, types', 'aria-label': 'Search functions', oninput: (event) => {
    pattern = event.target.value.toLowerCase();
    draw();
  }});
  const controls = [search,
    hasBytes ? select('width', [['bytes', 'bytes'], ['count', 'objects']], (value) => { measure = value; }) : null,
    kinds.length > 1 ? select('of', [['', 'everything'], ...kinds.map((k) => [k, k + 's'])], (value) => { kind = value; }) : null,
    select('from', [['', 'the outermost function'], ['leaf', 'where it was made']], (value) => { reversed = Boolean(value); }),
    reset, found];

  function node(name, frame, parent) {
    return {name, frame, parent, bytes: 0, count: 0, children: new Map(), depth: parent ? parent.depth + 1 : 0};
  }

  function build() {
    root = node('everything', null, null);
    for (const leak of data.leaks) {
      if (kind && leak.kind !== kind) continue;
      const path = leak.stack.map((number) => ({name: data.frames[number][0], frame: number})).reverse();
      if (!path.length) path.push({name: '(stack not kept)', frame: null});
      if (leak.kind === 'reference') path.push({name: '[' + leak.type + ']', frame: null});
      if (reversed) path.reverse();
      path.unshift({name: data.names[leak.pid] || 'pid ' + leak.pid, frame: null});
      let at = root;
      add(at, leak);
      for (const step of path) {
        if (!at.children.has(step.name)) at.children.set(step.name, node(step.name, step.frame, at));
        at = at.children.get(step.name);
        add(at, leak);
      }
    }
    zoom(root);
  }

  function add(at, leak) {
    at.bytes += leak.bytes || 0;
    at.count += leak.count;
  }

  function zoom(to) {
    focus = to;
    reset.disabled = focus === root;
    draw();
  }

  const matches = (at) => pattern && (at.name.toLowerCase().includes(pattern)
    || (at.frame !== null && (data.frames[at.frame][3] || '').toLowerCase().includes(pattern)));

  /* What lies under matching boxes, each counted once. */
  function matched(at) {
    if (matches(at)) return at[measure];
    let sum = 0;
    for (const child of at.children.values()) sum += matched(child);
    return sum;
  }

  function amount(at) {
    const share = root[measure] ? ' (' + (100 * at[measure] / root[measure]).toFixed(1) + ' %)' : '';
    return (at.bytes ? size(at.bytes) + (at.bytes >= 1024 ? ' = ' + grouped(at.bytes) + ' bytes' : '') + ' in ' : '') + counted(at.count, 'object') + share;
  }

  function say(at) {
    const where = at.frame === null ? '' : data.frames[at.frame][3];
    detail.textContent = at.name + ': ' + amount(at) + (where ? '  ' + where : '');
  }

  function colour(at) {
    const module = at.frame === null ? '' : data.frames[at.frame][2] || '';
    let hash = 7;
    for (const c of module) hash = (hash * 31 + c.codePointAt(0)) % 9973;
    let shade = 3;
    for (const c of at.name) shade = (shade * 31 + c.codePointAt(0)) % 997;
    return at.frame === null ? 'hsl(40 12% 78%)' : 'hsl(' + (hash * 47) % 360 + ' 62% ' + (70 + shade % 13) + '%)';
  }

  function box(at, left, width) {
    const made = element('div', {class: 'box', tabindex: at === focus ? 0 : -1, role: 'treeitem', title: at.name + '\n' + amount(at)}, width > 1.2 ? at.name : '');
    made.style.left = left + '%';
    made.style.width = width + '%';
    made.style.top = at.depth * rowHeight + 'px';
    made.style.background = colour(at);
    if (matches(at)) made.classList.add('found');
    if (at.depth < focus.depth) made.classList.add('above');
    made.addEventListener('click', () => zoom(at));
    made.addEventListener('mouseenter', () => say(at));
    made.addEventListener('focus', () => say(at));
    made.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') zoom(at);
      if (event.key === 'Escape') zoom(root);
    });
    return made;
  }

  function draw() {
    const boxes = [];
    for (let above = focus.parent; above; above = above.parent) boxes.unshift(box(above, 0, 100));
    const scale = focus[measure] ? 100 / focus[measure] : 0;
    let level = scale ? [[focus, 0]] : [], deepest = focus.depth;
    while (level.length) {
      const below = [];
      for (const [at, start] of level) {
        boxes.push(box(at, start, at[measure] * scale));
        deepest = at.depth;
        let left = start;
        const children = [...at.children.values()].sort((a, b) => b[measure] - a[measure]);
        for (const child of children) {
          const width = child[measure] * scale;
          if (width >= 0.08) below.push([child, left]);
          left += width;
        }
      }
      level = below;
    }
    place.replaceChildren(...boxes);
    place.style.height = (deepest + 1) * rowHeight + 'px';
    found.textContent = pattern ? (root[measure] ? (100 * matched(root) / root[measure]).toFixed(1) + ' % in what matches' : 'nothing matches') : '';
    say(focus);
  }

  if (!data.leaks.length) return;
  movesByArrows(place, '.box');
  section('flame-graph', 'Flame graph', element('div', {class: 'controls'}, controls), element('div', {class: 'panel'}, place, detail));
  build();
}
