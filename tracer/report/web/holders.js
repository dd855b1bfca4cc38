/* Dominator tree: what holds memory that is not lost, from the roots down. A node: [words, id, count, bytes, retained, below, left out]. */
function holdersSection() {
  if (!data.holders.length) return;
  const trees = data.holders.map(([pid, nodes, more]) => {
    const whole = nodes.reduce((sum, node) => sum + node[4], 0) + more[1];
    const rest = ([count, bytes]) => count ? element('li', {class: 'plain tally'}, grouped(count) + ' more: ' + size(bytes)) : null;
    const row = ([words, id, count, bytes, retained, below, left], depth) => {
      const own = id === null ? '' : retained === bytes ? '' : size(bytes) + ' of them in ';
      const head = [element('span', {class: 'net'}, size(retained)), element('span', {class: 'share tally'}, (100 * retained / whole).toFixed(1) + ' %'), words,
        element('span', {class: 'tally'}, id === null ? '' : '  ' + own + counted(count, 'block') + '  ' + id)];
      if (!below.length) return element('li', {class: 'plain'}, head);
      return element('li', null, element('details', {open: depth < 1}, element('summary', null, head),
        element('ul', null, below.map((node) => row(node, depth + 1)), rest(left))));
    };
    return [data.holders.length > 1 ? element('h3', null, (data.names[pid] || 'pid ' + pid) + ' (' + pid + '), ' + size(whole)) : null,
      element('div', {class: 'panel'}, element('ul', {class: 'tree'}, nodes.map((node) => row(node, 0)), rest(more)))];
  });
  section('holders', 'What holds memory', element('p', {class: 'note'},
    'Of the memory that something still pointed at. What stands below a line is retained by it alone: without it, nothing would lead there. What several lines lead to stands beside them.'), trees);
}
