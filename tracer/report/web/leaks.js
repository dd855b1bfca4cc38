function leaksSection() {
  if (!data.leaks.length) {
    section('leaks', 'Entries', element('p', {class: 'note'}, 'Nothing is outstanding.'));
    return;
  }
  /* What is lost with an owner that is listed stands below it; nothing hangs below what does. */
  const key = (pid, id) => pid + ' ' + id;
  const listedIds = new Set(data.leaks.filter((leak) => (leak.below !== undefined || leak.memory) && leak.reachability === 'lost').map((leak) => key(leak.pid, leak.id)));
  const hangs = (leak) => leak.owner !== null && listedIds.has(key(leak.pid, leak.owner));
  const owned = new Map();
  for (const leak of data.leaks.filter(hangs)) {
    const owner = key(leak.pid, leak.owner);
    owned.set(owner, [...(owned.get(owner) || []), leak]);
  }
  const ownedBy = (leak) => leak.reachability === 'lost' ? owned.get(key(leak.pid, leak.id)) || [] : [];
  const listed = data.leaks.filter((leak) => leak.below !== undefined && !hangs(leak));
  const withBelow = (leak) => data.leaks.slice(data.leaks.indexOf(leak)).slice(0, leak.below + 1).flatMap((part) => [part, ...ownedBy(part)]);
  const memoryOf = (leak) => leak.below === undefined ? [] : withBelow(leak).filter((part) => part.memory);
  const mainFrame = (leak) => leak.stack.length ? data.frames[leak.stack[leak.start]] : null;
  const where = (leak) => { const frame = mainFrame(leak); return frame ? (frame[0] + ' ' + (frame[1].startsWith('(') ? '' : frame[1])).trim() : '(stack not kept)'; };
  const about = (leak) => leak.error ? '~' : '';
  const several = new Set(data.leaks.map((leak) => leak.pid)).size > 1;
  const columns = [
    {title: 'bytes', number: true, value: (leak) => leak.bytes || 0, cell: (leak) => leak.bytes === null ? '' : about(leak) + grouped(leak.bytes)},
    {title: 'count', number: true, value: (leak) => leak.sum, cell: (leak) => about(leak) + grouped(leak.sum)},
    {title: 'kind', value: (leak) => leak.kind},
    {title: 'type', value: (leak) => leak.type || '', cell: (leak) => element('code', null, leak.type || '?')},
    {title: 'state', value: (leak) => leak.reachability ? data.classes[leak.reachability] : leak.state},
    data.leaks.some((leak) => leak.trend) ? {title: 'trend', value: (leak) => leak.trend || ''} : null,
    {title: 'made in', class: 'where', value: where, cell: (leak) => element('code', null, where(leak))},
    {title: 'oldest', number: true, value: (leak) => leak.ageNs || 0, cell: (leak) => leak.ageNs === null ? '' : duration(leak.ageNs)},
    several ? {title: 'pid', number: true, value: (leak) => leak.pid} : null,
    {title: 'id', value: (leak) => leak.id, cell: (leak) => element('code', null, leak.id)},
  ].filter(Boolean);

  function inside(leak) {
    const parts = leak.summary ? [element('p', {class: 'summary'}, leak.summary)] : [];
    parts.push(element('h3', null, leak.kind === 'reference' ? 'Created at' : 'Made at'), stackList(leak.stack, leak.own, leak.status));
    for (const [stack, what, confidence, reason] of leak.unpaired) {
      parts.push(element('h3', null, what + ' never put (' + confidence + ': ' + reason + ')'), stackList(stack));
    }
    for (const [word, calls] of [['get', leak.gets], ['put', leak.puts]]) {
      for (const [stack, count] of calls) parts.push(element('h3', null, counted(count, word)), stackList(stack));
    }
    for (const [stack, count] of leak.freedAt) {
      parts.push(element('h3', null, 'freed: ' + grouped(count) + ' at ' + leak.lookedAt), stackList(stack));
    }
    if (leak.sameCause) parts.push(element('h3', null, leak.sameCause));
    for (const [stack, count] of leak.births) parts.push(element('p', {class: 'note'}, grouped(count)), stackList(stack));
    if (leak.kept) parts.push(element('p', {class: 'note'}, leak.kept));
    for (const memory of memoryOf(leak)) {
      parts.push(element('h3', null, (memory.count === 1 ? 'Its' : 'Their') + ' memory: ' + memory.memory + ' ', element('code', null, memory.id)), ...inside(memory));
    }
    if (ownedBy(leak).length) {
      parts.push(element('h3', null, leak.belowOwner), element('ul', {class: 'tree below'}, ownedBy(leak).map((below) => element('li', null,
        element('details', null, element('summary', null, size(below.bytes || 0) + ' in ' + counted(below.count, 'block') + ': ', element('code', null, (below.type || '?') + ' in ' + where(below)), ' ', element('code', null, below.id)),
          inside(below))))));
    }
    const facts = [];
    if (leak.error) facts.push('estimated from ' + counted(leak.error[2], 'block') + ' drawn: \u00b1 ' + counted(leak.error[0], 'byte') + ', \u00b1 ' + counted(leak.error[1], 'block'));
    if (leak.least !== null && leak.count > 1) facts.push(leak.least === leak.most ? 'each of ' + counted(leak.least, 'byte') : 'of ' + grouped(leak.least) + ' to ' + counted(leak.most, 'byte'));
    if (leak.reachability) facts.push(data.classes[leak.reachability]);
    if (leak.at.length) facts.push('at ' + leak.at.slice(0, 5).join(', ') + (leak.count > 5 ? ' and ' + grouped(leak.count - Math.min(5, leak.at.length)) + ' more' : ''));
    for (const text of leak.heldBy) parts.push(element('p', {class: 'note holder'}, text));
    for (const text of [facts.join('; '), ...leak.overTime, ...leak.notes]) if (text) parts.push(element('p', {class: 'note'}, text));
    return parts;
  }

  const text = (leak) => [leak.id, leak.kind, leak.type || '', leak.state, ...leak.stack.flatMap((number) => data.frames[number])].join(' ').toLowerCase();
  const texts = new Map(listed.map((leak) => [leak, withBelow(leak).map(text).join(' ')])), shown = element('span', {class: 'tally', id: 'shown'});
  const list = sortableTable(columns, listed, {inside, sortedBy: null, opened: 1});
  const summary = (leaks) => {
    shown.textContent = counted(leaks.length, 'entry').replace('entrys', 'entries') + ': '
      + size(leaks.flatMap(withBelow).reduce((sum, leak) => sum + (leak.bytes || 0), 0)) + ' in ' + counted(leaks.flatMap(withBelow).reduce((sum, leak) => sum + leak.count, 0), 'object');
  };
  const filter = element('input', {type: 'search', id: 'filter', placeholder: 'Filter by any frame, type or id', 'aria-label': 'Filter entries', oninput: (event) => {
    const wanted = event.target.value.toLowerCase();
    const left = listed.filter((leak) => texts.get(leak).includes(wanted));
    list.show(left);
    summary(left);
  }});
  summary(listed);
  section('leaks', 'Entries', element('div', {class: 'controls'}, filter, shown), element('div', {class: 'panel'}, list.table),
    data.suppressed ? element('p', {class: 'note'}, 'Suppressed: ' + data.suppressed + '.') : null,
    data.inherited ? element('p', {class: 'note'}, 'Inherited by fork, no leak: ' + data.inherited + '.') : null);
}

function errorsSection() {
  if (!data.errors.length) return;
  section('errors', 'Broken rules', element('div', {class: 'panel'}, data.errors.map((error) => [
    element('h3', null, error.sentence + ', at ' + error.address + ', pid ' + error.pid + (error.remark ? ' (no error by itself)' : '')),
    error.stacks.map(([what, stack]) => [element('p', {class: 'note'}, what), stackList(stack)]),
    error.heldBy.map((text) => element('p', {class: 'note holder'}, text)),
  ])));
}
