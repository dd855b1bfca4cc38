function head() {
  const verdict = document.getElementById('verdict');
  verdict.textContent = data.verdict;
  verdict.className = data.style;
  const scope = document.getElementById('scope'), root = data.processes[0];
  if (root) scope.append(element('code', null, root[2]), ', ' + root[5] + ', ');
  scope.append((data.mode === 'launched' ? 'launched and ' : 'attached to and ') + 'traced for ' + duration(data.durationNs) + ', '
    + counted(data.events, 'event') + (data.complete ? ', complete: 0 lost' : data.losses.length ? ', not complete' : ', 0 lost') + ', ' + counted(data.attached, 'probe'));
  for (const doubt of data.doubts) verdict.after(element('p', {class: 'lost'}, doubt));
  if (data.sampling) scope.append('; blocks were sampled, ' + data.sampling + ': their amounts are estimates');
  if (data.only) scope.append('; only ' + data.only);
  for (const [count, reason, remedy] of data.losses) {
    scope.after(element('p', {class: 'lost'}, grouped(count) + ' lost: ' + reason + (remedy ? '; cure: ' + remedy : '')));
  }
}

function svg(name, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/* The heap as a line: between the times when it was looked at as well, since of one process it is no less than what is left
   of it. What is left of mappings is added, as it is in the area. */
function heapLine() {
  const seen = data.heap, isOne = data.processes.length === 1;
  if (seen.length < 2) return [];
  const begin = seen[0][0], end = seen.at(-1)[0];
  const times = [...new Set([...seen.map(([time]) => time), ...data.survivors.map(([time]) => time).filter((time) => time > begin && time < end)])].sort((a, b) => a - b);
  let at = 0, left = 0;
  return times.map((time) => {
    while (at < seen.length - 2 && seen[at + 1][0] <= time) at++;
    while (left < data.survivors.length - 1 && data.survivors[left + 1][0] <= time) left++;
    const [[from, , before], [to, , after]] = [seen[at], seen[at + 1]], [, , bytes, mapped] = data.survivors[left] || [0, 0, 0, 0];
    const live = before + (after - before) * Math.min(1, (time - from) / (to - from || 1));
    return [time, mapped + (isOne ? Math.max(live, bytes - mapped) : live)];
  });
}

/* The heap over time, its peak, and how much of what is left at the end was there at each time. */
function timeSection() {
  if (data.survivors.length < 2 && data.heap.length < 2) return;
  const left = data.survivors.map(([time, , bytes]) => [time, bytes]), heap = heapLine();
  const width = 1000, height = 220, top = 10, bottom = 190, both = [...left, ...heap];
  const end = Math.max(...both.map(([time]) => time)), most = Math.max(...both.map(([, bytes]) => bytes));
  const x = (time) => (width * time / (end || 1)).toFixed(2), y = (bytes) => (bottom - (bottom - top) * bytes / (most || 1)).toFixed(2);
  const chart = svg('svg', {class: 'chart', viewBox: '0 0 ' + width + ' ' + height, preserveAspectRatio: 'none', role: 'img', 'aria-label': 'Bytes by time'});
  for (const part of [0, 0.5, 1]) {
    chart.append(svg('line', {class: 'grid', x1: 0, x2: width, y1: y(most * part), y2: y(most * part)}));
  }
  if (heap.length > 1) chart.append(svg('path', {class: 'heap', d: 'M0,' + bottom + heap.map(([time, bytes]) => ' L' + x(time) + ',' + y(bytes)).join('')}));
  let edge = 'M0,' + bottom, before = 0;
  for (const [time, bytes] of left) {
    edge += ' L' + x(time) + ',' + y(before) + ' L' + x(time) + ',' + y(bytes);
    before = bytes;
  }
  if (left.length > 1) chart.append(svg('path', {class: 'area', d: edge + ' L' + width + ',' + bottom + ' Z'}), svg('path', {class: 'edge', d: edge}));
  const axis = element('div', {class: 'controls tally', id: 'axis'}, '0 s to ' + duration(end) + '; at the top ' + size(most) + ', in the middle ' + size(Math.round(most / 2)));
  section('time', 'Over time', left.length > 1 ? element('p', {class: 'note'}, 'Of the memory that is left at the end: how much was there at each time (what is suppressed, too). A steady climb is a leak that grows; a step is made once.') : null,
    heap.length > 1 ? element('p', {class: 'note', id: 'heap'}, heapSentence()) : null, element('div', {class: 'panel'}, chart, axis));
}

function heapSentence() {
  const peak = data.heap.reduce((most, point) => point[2] > most[2] ? point : most), [, live, liveBytes, made, madeBytes] = data.heap.at(-1);
  const mapped = (data.survivors.at(-1) || [0, 0, 0, 0])[3], of = data.processes.length > 1 ? ' of the processes that lived then' : '';
  return 'The dashed line is the heap' + of + (mapped ? ', and what is left of mappings' : '') + '. The peak of the heap is ' + size(peak[2]) + ' in ' + counted(peak[1], 'block') + ', ' + duration(peak[0]) + ' after the start (as far as it was looked at: '
    + grouped(data.heap.length) + ' times). ' + counted(made, 'block') + ' of ' + size(madeBytes) + ' in all were made, and all but ' + grouped(live) + ' (' + size(liveBytes) + ') were temporary or ended with their process.';
}

/* What came and went between checkpoints. */
function periodsSection() {
  if (!data.periods.length) return;
  const number = (title, index) => ({title, number: true, value: (row) => row[index] || 0, cell: (row) => row[index] === null ? '' : grouped(row[index])});
  const columns = [number('made', 1), number('freed', 2), number('left', 3), number('bytes left', 4),
    {title: 'made in', class: 'where', value: (row) => row[0], cell: (row) => element('code', null, row[0])}];
  section('periods', 'Between checkpoints', data.periods.map(([title, rows]) => [
    element('p', {class: 'note'}, title), rows.length ? element('div', {class: 'panel'}, sortableTable(columns, rows, {sortedBy: 3, shown: 10}).table) : null]));
}

function processesSection() {
  const columns = [
    {title: 'pid', number: true, value: (p) => p[0]},
    ...(data.processes.some((p) => p[1] !== null) ? [{title: 'parent', number: true, value: (p) => p[1] || 0, cell: (p) => p[1] === null ? '' : p[1]}] : []),
    {title: 'command', class: 'where', value: (p) => p[2], cell: (p) => element('code', null, p[2])},
    {title: 'began', number: true, value: (p) => p[3], cell: (p) => duration(p[3])},
    {title: 'ended', number: true, value: (p) => p[4] === null ? Infinity : p[4], cell: (p) => p[4] === null ? '' : duration(p[4])},
    {title: 'how', value: (p) => p[5]},
    {title: 'blocks made', number: true, value: (p) => p[6], cell: (p) => grouped(p[6])},
    {title: 'freed', number: true, value: (p) => p[7], cell: (p) => grouped(p[7])},
  ];
  const began = columns.findIndex((column) => column.title === 'began'), list = sortableTable(columns, data.processes, {sortedBy: began}).table;
  list.querySelectorAll('th button')[began].click();
  const missed = [...data.unresolved.map(([name, reason]) => name + ' (' + reason + ')'), ...data.notInlined.map(([name, copies, reason]) => name + ' (' + counted(copies, 'inlined copy').replace('copys', 'copies') + ': ' + reason + ')')];
  section('processes', 'Processes', element('div', {class: 'panel'}, list),
    missed.length ? element('p', {class: 'note'}, 'Not covered by probes: ' + missed.join(', ') + '.') : null,
    data.notes.map((note) => element('p', {class: 'note'}, note)));
}

/* The amounts of each class of what is left, as tiles. */
function tiles() {
  const objects = data.leaks.filter((leak) => leak.kind === 'reference'), rest = data.leaks.filter((leak) => leak.kind !== 'reference');
  const sum = (leaks, field) => leaks.reduce((total, leak) => total + (leak[field] || 0), 0);
  const tile = (title, number, below) => element('div', {class: 'tile'}, element('b', null, number), element('span', null, title), element('span', {class: 'tally'}, below));
  const made = [];
  if (objects.length) made.push(tile('counted objects', grouped(sum(objects, 'count')), counted(new Set(objects.map((leak) => leak.type)).size, 'type')));
  const worst = Object.keys(data.classes), rank = (name) => worst.includes(name) ? worst.indexOf(name) : worst.length;
  for (const name of [...new Set(rest.map((leak) => leak.reachability || leak.state))].sort((a, b) => rank(a) - rank(b))) {
    const group = rest.filter((leak) => (leak.reachability || leak.state) === name);
    made.push(tile(data.classes[name] || name, size(sum(group, 'bytes')), 'in ' + counted(sum(group, 'count'), group.every((leak) => leak.kind === 'mapping') ? 'mapping' : 'block')));
  }
  const errors = data.errors.filter((error) => !error.remark).length;
  if (errors) made.push(tile(errors === 1 ? 'broken rule' : 'broken rules', grouped(errors), ''));
  if (made.length) document.getElementById('main').append(element('div', {class: 'tiles', id: 'tiles'}, made));
}

/* How many bytes are left in blocks of which sizes: a bar for each doubling. */
function sizesSection() {
  const bars = new Map();
  for (const leak of data.leaks) {
    if (!leak.bytes || !leak.count) continue;
    const power = Math.max(0, Math.floor(Math.log2(leak.bytes / leak.count)));
    const [bytes, count] = bars.get(power) || [0, 0];
    bars.set(power, [bytes + leak.bytes, count + leak.count]);
  }
  if (bars.size < 2) return;
  const powers = [...bars.keys()], most = Math.max(...[...bars.values()].map(([bytes]) => bytes));
  const rows = [];
  for (let power = Math.min(...powers); power <= Math.max(...powers); power++) {
    const [bytes, count] = bars.get(power) || [0, 0], bar = element('div', {class: 'bar'});
    bar.style.width = 100 * bytes / most + '%';
    rows.push(element('tr', null, element('td', {class: 'number'}, size(2 ** power)), element('td', {class: 'bars'}, bar),
      element('td', {class: 'number'}, bytes ? size(bytes) : ''), element('td', {class: 'number'}, count ? grouped(count) : '')));
  }
  section('sizes', 'Sizes', element('p', {class: 'note'}, 'Bytes that are left, by the size of a block, from that of the row up to twice as much. Of an entry with several sizes it is their mean.'),
    element('div', {class: 'panel'}, element('table', null, element('thead', null, element('tr', null, element('th', {class: 'number', scope: 'col'}, 'size'),
      element('th', {scope: 'col'}, ''), element('th', {class: 'number', scope: 'col'}, 'bytes'), element('th', {class: 'number', scope: 'col'}, 'count'))), element('tbody', null, rows))));
}

head();
tiles();
errorsSection();
leaksSection();
flameSection();
holdersSection();
timeSection();
sizesSection();
periodsSection();
balanceSection();
processesSection();
