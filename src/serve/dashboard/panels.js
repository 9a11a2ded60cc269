// The parts that follow from the ledger and from the versions: nothing in them is un-noised.
function forecastText(learner, curve) {
  if (!curve) return 'its course is being computed';
  const unit = learner.unit === 'user' ? 'user' : 'record';
  switch (curve.forecast) {
    case 'no_budget': return 'has no budget that could run out';
    case 'nothing_spent': return 'no forecast yet: nothing is spent';
    case 'too_little_history':
      return 'no forecast yet: a few steps only, or all on the same records';
    case 'constant': return unit === 'user'
      ? 'does not run out while no user is learnt from more often'
      : 'does not run out while no record is used again';
    case 'bounded': return `does not run out: a ${unit} comes to ${eps(curve.most)} at most`;
    case 'exhausted': return 'has run out: no room for another step';
    case 'runs_out':
      return `runs out ${utc(curve.runs_out_ms)}, ${span(curve.runs_out_ms - lastOf(curve.spent)[0])}` +
        ' after the last commit, at the pace so far';
    default: return 'does not run out within a hundred years';
  }
}
const lastOf = list => list[list.length - 1];
const left = (budget, spent) => Math.max(0, budget - spent);

// The budget that was left over time, and the forecast.
function burnDown(name, title, learner, height) {
  const curve = learner.curve, budget = learner.budget, points = curve ? curve.spent : [];
  if (budget === null || learner.epsilon === null || points.length === 0) return null;
  const begin = points[0][0], end = lastOf(points)[0];
  let until = end;
  if (curve.ahead.length) {
    // A far day would press all of the history into the edge.
    until = Math.min(lastOf(curve.ahead)[0], end + 2 * Math.max(end - begin, MINUTE));
  }
  const path = [[begin, budget]].concat(points.map(p => [p[0], left(budget, p[2])]));
  // A single moment: level since then.
  if (end - begin < SECOND && until === end && data.time_ms > end) {
    until = data.time_ms;
    path.push([until, lastOf(path)[1]]);
  }
  const lines = [{points: path, ink: 'a', area: true, dot: true,
    label: curve.ahead.length ? '' : eps(left(budget, learner.epsilon)) + ' left'}];
  if (curve.ahead.length) {
    const ahead = [];
    for (const [at, , e] of curve.ahead) {
      if (at > until) {
        const before = lastOf(ahead), part = (until - before[0]) / (at - before[0]);
        ahead.push([until, before[1] + part * (left(budget, e) - before[1])]);
        break;
      }
      ahead.push([at, left(budget, e)]);
      if (left(budget, e) === 0) break;
    }
    const whole = until === lastOf(curve.ahead)[0];
    lines.push({points: ahead, ink: 'a', ahead: true,
      label: (whole ? 'gone ' : '→ ') + (curve.runs_out_ms - end < DAY
        ? utc(curve.runs_out_ms).slice(-5) : utc(curve.runs_out_ms).slice(0, -6))});
  }
  const x = [begin, Math.max(until, begin + SECOND)];
  return chart({name, height, left: 36, right: 78, x, y: [0, budget], lines,
    says: `Epsilon that is left of ${title}, over time: ${eps(left(budget, learner.epsilon))} of ` +
      `${given(budget)}; ${forecastText(learner, curve)}. The table below has the figures.`,
    xs: timeTicks(x[0], x[1], Math.max(2, Math.floor((widths[name] || 320) / 90))),
    ys: [...ticks(0, budget, height > 150 ? 4 : 1).filter(t => t < .9 * budget), budget], yText: given});
}
function burnTable(key, learner) {
  const {budget, curve} = learner;
  const rows = curve.spent.map(([at, steps, e]) => [utc(at, true), whole(steps), eps(e),
    budget === null ? '–' : eps(left(budget, e)), 'spent']);
  for (const [at, , e] of curve.ahead)
    rows.push([utc(at, true), '–', eps(e), budget === null ? '–' : eps(left(budget, e)), 'forecast']);
  return table('Epsilon over time, out of the ledger; within a run of equal steps at an even pace',
    ['time', 'steps', 'spent', 'left', ''], rows, [1, 2, 3]);
}
function budgetCard(key, title, learner, height, stops = []) {
  const bounded = learner.epsilon !== null, {budget, curve} = learner;
  const spent = bounded && budget !== null;
  const note = learner.stopped_by
    ? h('span', {class: 'bad'}, 'stands still: its next step would cross ' +
      (learner.stopped_by === 'own' ? 'its budget' : 'the budget of all'))
    : stops.length ? h('span', {class: 'bad'}, `has no room for a step of ${stops.join(', ')}`)
    : bounded ? fig(`forecast ${key}`, forecastText(learner, curve)) : '';
  return h('div', {class: 'card', key, 'data-card': key},
    h('div', {class: 'top'}, h('h3', {}, title),
      h('p', {}, spent
        ? [fig(`left ${key}`, eps(left(budget, learner.epsilon)), 'big'), ' left of ',
          fig(`budget ${key}`, given(budget))]
        : bounded
          ? [fig(`epsilon ${key}`, eps(learner.epsilon), 'big'), ' spent, no budget']
          : h('span', {class: 'bad'}, 'not private'))),
    h('p', {class: 'quiet'}, bounded
      ? ['spent ', fig(`spent ${key}`, eps(learner.epsilon)), ' at delta ', given(learner.delta),
        ` per ${learner.unit}`, learner.steps === undefined ? ''
          : [' · ', fig(`steps ${key}`, whole(learner.steps)),
            (learner.steps === 1 ? ' step, ' : ' steps, ') + learner.participation]]
      : ['nothing bounds what it tells', learner.steps === undefined ? ''
        : [' · ', fig(`steps ${key}`, whole(learner.steps)),
          learner.steps === 1 ? ' step' : ' steps']]),
    spent && curve && curve.spent.length ? burnDown('burn ' + key, title, learner, height)
      : spent && learner.steps !== 0 && !curve ? h('p', {class: 'quiet'}, 'computing the curve') : null,
    h('p', {class: 'note'}, note),
    learner.not_covered ? h('p', {class: 'bad'}, learner.not_covered) : null,
    curve && curve.spent.length && bounded ? behind('burn ' + key, () => burnTable(key, learner)) : null);
}

function budgetBody(d) {
  const out = [];
  if (d.budgets_failed)
    out.push(h('p', {class: 'bad'}, 'The ledger’s entries cannot be read: ' + d.budgets_failed));
  if (d.learners.length === 0) return [h('p', {class: 'quiet'}, 'No learner is configured.')];
  if (d.versions.version === 0)
    out.push(h('p', {class: 'quiet'}, 'Nothing has been learnt yet: no step is committed, and ' +
      'every budget is whole.'));
  const cards = [];
  if (d.learners.length > 1 || d.retired.length || d.total.budget !== null)
    out.push(budgetCard('total', 'All learners together', d.total, 190,
      d.learners.filter(l => l.stopped_by === 'total').map(l => l.learner)));
  for (const learner of d.learners)
    cards.push(budgetCard('learner ' + learner.learner, learner.learner, learner,
      d.learners.length > 1 ? 118 : 190));
  out.push(h('div', {class: 'grid'}, cards));
  const rows = d.learners.map(l => [l.learner, l.unit, whole(l.steps), eps(l.epsilon),
    given(l.budget), given(l.delta), l.at_most.words]);
  rows.push(['all together', d.total.unit, '', eps(d.total.epsilon), given(d.total.budget),
    given(d.total.delta), d.total.at_most.words]);
  out.push(h('details', {key: 'said', 'data-table': 'said', open: opened.has('said'),
    ontoggle: e => { e.target.open ? opened.add('said') : opened.delete('said'); render(); }},
  h('summary', {}, 'What the budgets mean, in words'),
  opened.has('said') ? table('The guess is whether you were in the data', ['learner', 'unit', 'steps', 'spent',
    'budget', 'delta', 'in plain words'], rows, [2, 3, 4, 5]) : null));
  if (d.retired.length)
    out.push(table('Learners that are configured no more, and stay in the total',
      ['learner', 'unit', 'steps', 'spent', 'delta'],
      d.retired.map(l => [l.learner, l.unit, whole(l.steps), eps(l.epsilon), given(l.delta)]),
      [2, 3, 4]));
  return out;
}

function versionsBody(d, now) {
  const v = d.versions;
  const pair = (name, value) => [h('dt', {}, name), h('dd', {}, value)];
  const out = [h('dl', {class: 'pairs'},
    pair('served', ['commit ', fig('version', whole(v.version)), d.last_commit_ms
      ? `, of ${utc(d.last_commit_ms, true)}` : v.version ? '' : ': nothing is committed yet']),
    pair('snapshot', h('code', {'data-n': 'head'}, v.head)),
    pair('ledger', [fig('entries', whole(v.entries)), v.entries === 1 ? ' entry' : ' entries']),
    pair('lineage', h('code', {'data-n': 'lineage'}, v.lineage)),
    pair('program', h('code', {'data-n': 'code'}, v.code)),
    v.learnt_by.map(c => pair('learnt by', [h('code', {}, c.code),
      ` from commit ${whole(c.commit)} on, ${utc(c.time_ms)}`])))];
  if (v.checkpoints === null)
    out.push(h('p', {class: 'quiet'}, 'No checkpoint can be made here: this server has no store of its own.'));
  else if (v.checkpoints.length === 0)
    out.push(h('p', {class: 'quiet'}, 'There is no checkpoint yet: ', h('code', {},
      'tacit checkpoint create'), ' makes one, store.checkpoints.every does so on a schedule.'));
  else
    out.push(table('Newest checkpoints', ['made', 'kind', 'commit', 'epsilon', 'size', 'folder'],
      v.checkpoints.map(c => [utc(c.time_ms), c.kind, whole(c.version), eps(c.epsilon),
        bytes(c.bytes), h('code', {}, c.folder.replace(/.*\//, ''))]), [2, 3, 4]));
  return out;
}
