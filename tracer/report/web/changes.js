function head() {
  const verdict = document.getElementById('verdict');
  verdict.textContent = data.verdict;
  verdict.className = data.style;
  document.getElementById('scope').append('before: ', element('code', null, data.names[0]), ', after: ', element('code', null, data.names[1]));
}

function tiles() {
  const made = data.amounts.filter(([, count]) => count).map(([word, count]) =>
    element('div', {class: 'tile ' + word}, element('b', null, grouped(count)), element('span', null, word)));
  if (made.length) document.getElementById('main').append(element('div', {class: 'tiles', id: 'tiles'}, made));
}

function changesSection() {
  if (!data.changes.length) {
    section('changes', 'Changes', element('p', {class: 'note'}, 'Nothing is new, grown, shrunk or gone.'));
    return;
  }
  const order = data.amounts.map(([word]) => word);
  const where = (change) => {
    if (!change.stack.length) return '(stack not kept)';
    const [name, place] = data.frames[change.stack[change.own === null ? 0 : change.own]];
    return (name + ' ' + (place.startsWith('(') ? '' : place)).trim();
  };
  const columns = [
    {title: 'change', value: (change) => order.indexOf(change.word), cell: (change) => element('b', {class: change.word}, change.word)},
    {title: 'by', number: true, value: (change) => change.bytes || change.count, cell: (change) => change.difference},
    {title: 'then', number: true, value: (change) => change.then},
    {title: 'now', number: true, value: (change) => change.now},
    {title: 'kind', value: (change) => change.kind},
    {title: 'type', value: (change) => change.type || '', cell: (change) => element('code', null, change.type || '?')},
    {title: 'made in', class: 'where', value: where, cell: (change) => element('code', null, where(change))},
    {title: 'id', value: (change) => change.id, cell: (change) => element('code', null, change.id)},
  ];
  const inside = (change) => stackList(change.stack, change.own);
  const text = (change) => [change.word, change.id, change.kind, change.type || '', ...change.stack.flatMap((number) => data.frames[number])].join(' ').toLowerCase();
  const texts = new Map(data.changes.map((change) => [change, text(change)])), shown = element('span', {class: 'tally', id: 'shown'});
  const list = sortableTable(columns, data.changes, {inside, sortedBy: null, opened: 1});
  const summary = (changes) => { shown.textContent = counted(changes.length, 'change'); };
  const filter = element('input', {type: 'search', id: 'filter', placeholder: 'Filter by any frame, type or id', 'aria-label': 'Filter changes', oninput: (event) => {
    const wanted = event.target.value.toLowerCase();
    const left = data.changes.filter((change) => texts.get(change).includes(wanted));
    list.show(left);
    summary(left);
  }});
  summary(data.changes);
  section('changes', 'Changes', element('div', {class: 'controls'}, filter, shown), element('div', {class: 'panel'}, list.table));
}

head();
tiles();
changesSection();
