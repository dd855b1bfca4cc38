/* Creations and gets minus puts of the objects that are left, summed by call path. */
function balanceSection() {
  const references = data.leaks.filter((leak) => leak.kind === 'reference');
  if (!data.types.length && !references.length) return;
  const columns = ['type', 'created', 'gets', 'puts', 'destroyed', 'alive'].map((title, index) => ({
    title, number: index > 0, value: (row) => row[index],
    cell: index ? (row) => grouped(row[index]) : (row) => element('code', null, row[0]),
  }));
  const parts = [element('div', {class: 'panel'}, sortableTable(columns, data.types, {sortedBy: 5}).table)];
  if (references.length) parts.push(...balanceTree(references));
  section('references', 'References', ...parts);
}

function balanceTree(references) {
  const tree = element('ul', {class: 'tree', id: 'balance'});
  const types = [...new Set(references.map((leak) => leak.type || '?'))];
  let type = types[0], evenToo = false;

  const fresh = (name, place) => ({name, place, made: 0, gets: 0, puts: 0, children: new Map()});
  const net = (node) => node.made + node.gets - node.puts;

  function build() {
    const root = fresh(type, '');
    const add = (stack, field, count) => {
      root[field] += count;
      let at = root;
      for (const number of [...stack].reverse()) {
        const [name, place] = data.frames[number];
        const key = name + '\0' + place;
        if (!at.children.has(key)) at.children.set(key, fresh(name, place));
        at = at.children.get(key);
        at[field] += count;
      }
    };
    for (const leak of references.filter((one) => (one.type || '?') === type)) {
      add(leak.stack, 'made', leak.count);
      for (const [stack, count] of leak.gets) add(stack, 'gets', count);
      for (const [stack, count] of leak.puts) add(stack, 'puts', count);
    }
    return root;
  }

  const even = (node) => net(node) === 0 && [...node.children.values()].every(even);

  function row(start, depth) {
    const names = [], sameAs = (a, b) => a.made === b.made && a.gets === b.gets && a.puts === b.puts;
    let node = start;
    names.push(node);
    while (node.children.size === 1) {
      const [only] = node.children.values();
      if (!sameAs(only, node)) break;
      node = only;
      names.push(node);
    }
    const balance = net(node), sign = balance > 0 ? 'up' : balance < 0 ? 'down' : 'even';
    const tally = [[node.made, 'created'], [node.gets, node.gets === 1 ? 'get' : 'gets'], [node.puts, node.puts === 1 ? 'put' : 'puts']]
      .filter(([count]) => count).map(([count, word]) => grouped(count) + ' ' + word).join(', ');
    const head = [element('span', {class: 'net ' + sign}, (balance > 0 ? '+' : '') + grouped(balance)),
      names.map((one, index) => [index ? ' \u203a ' : '', element('span', {title: one.place}, one.name)]),
      element('span', {class: 'tally'}, '  ' + (names.at(-1).place ? names.at(-1).place + '  ' : '') + tally)];
    const below = [...node.children.values()].filter((child) => evenToo || !even(child)).sort((a, b) => Math.abs(net(b)) - Math.abs(net(a)));
    if (!below.length) return element('li', {class: 'plain'}, head);
    return element('li', null, element('details', {open: depth < 6}, element('summary', null, head),
      element('ul', null, below.map((child) => row(child, depth + 1)))));
  }

  const draw = () => tree.replaceChildren(row(build(), 0));
  const choice = element('select', {id: 'balance-type', onchange: (event) => { type = event.target.value; draw(); }}, types.map((one) => element('option', {value: one}, one)));
  const box = element('input', {type: 'checkbox', id: 'even', onchange: (event) => { evenToo = event.target.checked; draw(); }});
  draw();
  return [element('h3', null, 'Balance by call path, of the objects that are left'),
    element('div', {class: 'controls'}, element('label', null, 'type ', choice), element('label', null, box, ' paths that come out even too')),
    element('div', {class: 'panel'}, tree)];
}
