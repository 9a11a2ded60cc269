// The parts whose figures nobody added noise to. They are made, and asked for, only while the
// operator's switch is on.
const raw = () => h('span', {class: 'raw'}, 'operator only: not noised');
const section = (id, title, aside, ...body) =>
  h('section', {key: id, id, 'aria-labelledby': 'h-' + id},
    h('div', {class: 'head'}, h('h2', {id: 'h-' + id}, title), raw(), aside),
    h('div', {class: 'body'}, body));
const facts = list => h('dl', {class: 'facts'}, list.map(([name, value, small]) =>
  h('div', {}, h('dt', {}, name), h('dd', {}, value, small ? h('small', {}, ' ' + small) : null))));

const LOOKS = {minutes: '6 minutes', hours: '2 hours', day: '30 hours'};
function lookBack() {
  return h('fieldset', {class: 'choice', id: 'back'}, h('legend', {}, 'Last'),
    Object.keys(LOOKS).map(back => h('label', {},
      h('input', {type: 'radio', name: 'back', value: back, checked: settings.back === back,
        onchange: () => { settings.back = back; keep(); poll(); }}),
      h('span', {}, LOOKS[back]))));
}

// Rates between neighbouring samples.
function rates(samples, column) {
  const out = [];
  for (let i = 1; i < samples.rows.length; ++i) {
    const [was, is] = [samples.rows[i - 1], samples.rows[i]];
    if (is[0] > was[0]) out.push([is[0], Math.max(0, is[column] - was[column]) * 1000 / (is[0] - was[0])]);
  }
  return out;
}
function streamSection(d) {
  const f = d.figures, s = f.samples, rows = s.rows, r = f.records;
  const read = rates(s, 1), learnt = rates(s, 3);
  const recent = rows.filter(row => row[0] >= lastOf(rows)[0] - 10500);
  const rate = recent.length > 1
    ? (lastOf(recent)[1] - recent[0][1]) * 1000 / (lastOf(recent)[0] - recent[0][0]) : NaN;
  const newest = Math.max(0, ...f.learners.map(l => Math.max(0, ...l.quality.map(q => q.last_ms))));
  const out = [facts([
    ['records read', fig('read', whole(r.read)), 'since the start'],
    ['records a second', fig('rate', three(rate)), recent.length > 1 ? 'in the last 10 s' : ''],
    ['to be read', fig('ahead', whole(r.ahead)), r.ahead && rate > 0
      ? 'in ' + span(r.ahead / rate * 1000) + ' at this pace' : ''],
    ['not learnt from', fig('dead', whole(r.dead)), share(r.dead, r.read) + ' of those read'],
    ['newest event learnt', newest ? fig('newest', utc(newest, true)) : '–', newest
      ? span(d.time_ms - newest) + ' ago' : 'records have no times']])];
  if (f.source_alert) out.push(h('p', {class: 'bad'}, 'Source: ' + f.source_alert));
  if (read.length < 2) {
    out.push(h('p', {class: 'quiet'}, 'No curve yet: a sample is taken every ' +
      span(s.every_ms) + ', and two are needed.'));
    return section('stream', 'Stream', lookBack(), out);
  }
  const x = [rows[0][0], lastOf(rows)[0]];
  const most = Math.max(1, ...read.map(p => p[1]), ...learnt.map(p => p[1]));
  const xs = timeTicks(x[0], x[1], Math.max(2, Math.floor((widths['rate'] || 500) / 90)));
  out.push(h('div', {class: 'two'},
    h('div', {key: 'rate'}, h('h3', {}, 'Throughput, records a second'),
      chart({name: 'rate', height: 170, left: 48, right: 92, x, y: [0, most], xs,
        ys: ticks(0, most, 4, 1), yText: three,
        says: 'Records read and learnt a second, over time. The table below has the figures.',
        lines: [{points: read, ink: 'a', area: true, label: 'read ' + three(lastOf(read)[1])},
          {points: learnt, ink: 'b', label: 'learnt ' + three(lastOf(learnt)[1])}]})),
    h('div', {key: 'lag'}, h('h3', {}, 'Lag, records to be read'), (() => {
      const ahead = rows.map(row => [row[0], row[4]]);
      if (ahead.every(p => p[1] === 0))
        return h('p', {class: 'quiet'}, 'Nothing waited in this time: all that is known was read.');
      const top = Math.max(1, ...ahead.map(p => p[1]));
      return chart({name: 'lag', height: 170, left: 48, right: 92, x, y: [0, top], xs,
        ys: ticks(0, top, 4, 1), yText: three,
        says: 'Records that are known and not read yet, over time. The table below has the figures.',
        lines: [{points: ahead, ink: 'a', area: true, dot: true, label: whole(lastOf(ahead)[1])}]});
    })())));
  out.push(behind('stream', () => table('Records between two samples', ['until', 'read',
    'not learnt from', 'learnt', 'to be read', 'commits'], rows.slice(1).map((row, i) => [
    utc(row[0], true), whole(row[1] - rows[i][1]), whole(row[2] - rows[i][2]),
    whole(row[3] - rows[i][3]), whole(row[4]), whole(row[5] - rows[i][5])]), [1, 2, 3, 4, 5])));
  return section('stream', 'Stream', lookBack(), out);
}

// Log loss over that of the best constant.
function entropy(q) {
  const rate = q.clicks / q.events, part = p => (p > 0 ? -p * Math.log(p) : 0);
  const constant = part(rate) + part(1 - rate);
  return constant > 0 && q.events > 0 ? q.loss_sum / q.events / constant : null;
}
// Points with their place in the stream: events' times where these only grow, else how many came.
// The steps of a held period all go over the same time.
function placed(learner) {
  let events = 0, before = 1;
  const timed = learner.quality.every(q => q.last_ms >= before && (before = q.last_ms));
  return learner.quality.map(q => {
    events += q.events;
    return {...q, upto: events, at: timed ? q.last_ms : events, timed};
  });
}
// The 95 % interval of a figure.
const between = (low, high) => (low === null ? '–' : `${low.toFixed(3)} to ${high.toFixed(3)}`);
function qualityCard(learner) {
  const key = learner.learner, points = placed(learner), name = 'quality ' + key;
  const hits = learner.recommends;
  const value = hits ? q => (q.asked ? q.hits / q.asked : null) : entropy;
  const good = points.filter(q => value(q) !== null);
  const top = h('h3', {}, key);
  if (good.length === 0)
    return h('div', {class: 'card', key}, top, h('p', {class: 'quiet'}, points.length === 0
      ? 'No prediction yet: it predicts each record before it learns from it.'
      : hits ? 'Nobody was asked for a next item yet.'
        : 'All labels so far are the same: a constant is always right.'));
  const last = lastOf(good);
  const x = [0, lastOf(points).at];
  if (last.timed) x[0] = points[0].first_ms || points[0].at;
  const line = (ink, of, label, more) => ({ink, label, ...more,
    points: good.map(q => [q.at, of(q)]).filter(p => p[1] !== null)});
  const xs = last.timed ? timeTicks(x[0], x[1], Math.max(2, Math.floor((widths[name] || 320) / 90)))
    : ticks(x[0], x[1], 3).map(v => [v, v ? whole(v) : '0']);
  let lines, rules, y, says, numbers;
  if (hits) {
    const popular = q => q.popular_hits / q.asked, next = q => q.successor_hits / q.asked;
    const most = Math.max(.01, ...good.flatMap(q => [value(q), popular(q), next(q)]));
    y = [0, most];
    rules = [];
    lines = [line('q', popular, 'popular ' + three(popular(last))),
      line('c', next, 'successors ' + three(next(last))),
      line('a', value, 'model ' + three(value(last)), {dot: true})];
    numbers = h('p', {}, fig(`hit ${key}`, value(last).toFixed(3), 'big'), ' HIT@10; NDCG@10 ',
      fig(`gain ${key}`, (last.gain / last.asked).toFixed(3)));
    says = 'Share of next items among the ten best';
  } else {
    const values = good.map(value), low = Math.min(.98, ...values), most = Math.max(1.02, ...values);
    y = [low - .04 * (most - low), most + .04 * (most - low)];
    rules = [{y: 1, label: 'best constant'}];
    lines = [line('a', value, 'model ' + value(last).toFixed(3), {dot: true})];
    numbers = h('p', {}, fig(`ne ${key}`, value(last).toFixed(3), 'big'), ' NE');
    says = 'Log loss over that of the best constant';
  }
  const small = hits
    ? [fig(`hit range ${key}`, between(last.hit_low, last.hit_high)),
      `, 95 % interval of the HIT@10 of ${whole(last.asked)} asked last`]
    : ['calibration ', fig(`calibration ${key}`, last.clicks
      ? (last.predicted / last.clicks).toFixed(3) : '–'), ' · AUC ',
    fig(`auc ${key}`, learner.auc === null ? '–' : learner.auc.toFixed(3)), ' (95 %: ',
    fig(`auc range ${key}`, between(learner.auc_low, learner.auc_high)),
    `) · of the last ${whole(last.events)} records`];
  return h('div', {class: 'card', key}, h('div', {class: 'top'}, top, numbers),
    h('p', {class: 'quiet'}, small),
    chart({name, height: 130, left: 44, right: 104, x, y, lines, rules, xs, ys: ticks(y[0], y[1], 3),
      yText: v => String(Number(v.toFixed(3))),
      says: `${says}, of ${key}, over ${last.timed ? 'the events’ time' : 'records learnt'}. ` +
        'The table below has the figures.'}),
    behind(name, () => table(hits ? 'Next items asked for before they were learnt from'
      : 'Predictions made before their records were learnt from', ['upto record',
      ...(last.timed ? ['event time'] : []), 'records', ...(hits
        ? ['asked', 'HIT@10', '95 %', 'popular', 'successors'] : ['labels 1', 'NE', 'calibration'])],
    points.map(q => [whole(q.upto), ...(last.timed ? [utc(q.last_ms, true)] : []), whole(q.events),
      ...(hits ? [whole(q.asked), ...(q.asked
        ? [value(q).toFixed(4), between(q.hit_low, q.hit_high),
          ...[q.popular_hits, q.successor_hits].map(n => (n / q.asked).toFixed(4))] : ['–', '–', '–', '–'])]
        : [whole(q.clicks), entropy(q) === null ? '–' : entropy(q).toFixed(4),
          q.clicks ? (q.predicted / q.clicks).toFixed(4) : '–'])]),
    last.timed ? [0, 2, 3, 4, 5, 6, 7] : [0, 1, 2, 3, 4, 5, 6])));
}
function qualitySection(d) {
  return section('quality', 'Quality beside baselines', null,
    h('p', {class: 'quiet'}, 'Predictions made before learning. NE is log loss over that of the best ' +
      'constant: below 1 is better than a constant. HIT@10 stands beside the most popular items and ' +
      'the usual successors.'),
    h('div', {class: 'grid'}, d.figures.learners.map(qualityCard)));
}

const LEFT = [['nothing', 's0'], ['up to ¼', 's4'], ['up to ½', 's3'], ['up to ¾', 's2'],
  ['more', 's1']];
function usersSection(d) {
  const allowance = Object.fromEntries(d.learners.map(l => [l.learner, l.allowance]));
  const bound = d.figures.learners.filter(l => allowance[l.learner] > 0);
  if (bound.length === 0)
    return section('users', 'Users’ allowances', null, h('p', {class: 'quiet'},
      'No learner has an allowance: the unit of each is the event.'));
  const counted = bound.filter(l => l.users && l.users.users);
  const out = [];
  if (counted.length) {
    const when = Math.max(...counted.map(l => l.users.counted_ms));
    const caption = `Users by what is left of their allowance, counted ${utc(when, true)} and every ` +
      'ten minutes';
    out.push(captioned(caption, h('table', {'aria-label': caption},
      h('thead', {}, h('tr', {}, ['learner', 'steps each', 'users', ''].map((t, i) =>
        h('th', {scope: 'col', class: i === 1 || i === 2 ? 'n' : undefined}, t)),
      LEFT.map(([t, c]) => h('th', {scope: 'col', class: 'n'}, h('i', {class: 'dot ' + c}), t)))),
      h('tbody', {}, counted.map(l => {
        const u = l.users, parts = [u.none, ...u.quarters];
        return h('tr', {key: l.learner}, h('th', {scope: 'row'}, l.learner),
          h('td', {class: 'n'}, fig(`allowance ${l.learner}`, whole(allowance[l.learner]))),
          h('td', {class: 'n'}, fig(`users ${l.learner}`, whole(u.users))),
          h('td', {class: 'bar'}, bar(l.learner, parts.map((n, i) => [n, LEFT[i][1]]), u.users,
            `Of ${whole(u.users)} users ${whole(u.none)} have nothing left`)),
          parts.map((n, i) => h('td', {class: 'n'}, fig(`users ${l.learner} ${i}`, whole(n)))));
      })))));
  }
  const not = bound.filter(l => !l.users), empty = bound.filter(l => l.users && !l.users.users);
  if (not.length) out.push(h('p', {class: 'quiet'}, not.map(l => l.learner).join(', ') +
    ': the first count is under way.'));
  if (empty.length) out.push(h('p', {class: 'quiet'}, empty.map(l => l.learner).join(', ') +
    ': no user was counted yet; the next count is within ten minutes.'));
  return section('users', 'Users’ allowances', null, out);
}

const PHASES = [['waiting for records', 's4'], ['budgets', 'fb'], ['learning', 's1'],
  ['figures', 's3'], ['commits', 's2']];
function stepsSection(d) {
  const f = d.figures, sum = key => f.learners.reduce((s, l) => s + l.seconds[key], 0);
  const seconds = [f.wait_seconds, sum('account'), sum('learn'), sum('observe'), f.commit_seconds];
  const all = seconds.reduce((a, b) => a + b, 0), steps = f.learners.some(l => l.steps > 0);
  if (!steps)
    return section('steps', 'Phases of a step', null, h('p', {class: 'quiet'},
      'No step was taken since the start.'));
  const each = (l, key) => (l.steps ? three(1000 * l.seconds[key] / l.steps) : '–');
  return section('steps', 'Phases of a step', null,
    h('div', {}, bar('phases', seconds.map((s, i) => [s, PHASES[i][1]]), all,
      'The training thread’s time by phase; the table below has the figures'),
    table(`The training thread’s time since the start: ${three(all)} s`,
      ['phase', 'seconds', 'share'], PHASES.map(([name, cls], i) =>
        [[h('i', {class: 'dot ' + cls}), name], three(seconds[i]), share(seconds[i], all)]), [1, 2])),
    table('Milliseconds of a step', ['learner', 'steps', 'budgets', 'learning', 'figures'],
      f.learners.map(l => [l.learner, fig(`taken ${l.learner}`, whole(l.steps)), each(l, 'account'),
        each(l, 'learn'), each(l, 'observe')]), [1, 2, 3, 4]),
    h('p', {class: 'quiet'}, `The last commit took ${three(1000 * f.last_commit_seconds)} ms; ` +
      `${whole(f.unfolded_deltas)} wait to be folded. Steps ready for training: ${whole(f.steps_queued)}.`));
}
function rowsSection(d) {
  const f = d.figures, per = (l, n) => (l.steps ? three(n / l.steps) : '–');
  if (!f.learners.some(l => l.steps > 0))
    return section('rows', 'Rows and cache', null, h('p', {class: 'quiet'},
      'No row was touched since the start.'));
  return section('rows', 'Rows and cache', null,
    table('Of a step, and of all look-ups of rows since the start', ['learner', 'records', 'touched',
      'written', 'clipped', 'users out', 'records out', 'hits', 'ahead', 'cache'],
    f.learners.map(l => {
      const looked = l.cache.hits + l.cache.misses;
      return [l.learner, fig(`examples ${l.learner}`, per(l, l.examples)), per(l, l.rows_touched),
        per(l, l.rows_written), share(l.units_clipped, l.units),
        share(l.came.users_left_out, l.came.users), share(l.came.records_left_out, l.came.records),
        share(l.cache.hits, looked), share(l.cache.read_ahead, l.cache.misses), bytes(l.cache.bytes)];
    }), [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    h('p', {class: 'quiet'}, 'Touched and written: rows of a step. Clipped: share of units. Out: ' +
      'share of users whose allowance is used, and of their records. Hits: of rows looked up; ahead: misses that were read before ' +
      'they were needed.'));
}
function deadSection(d) {
  const f = d.figures, letters = [...f.dead_letters].sort((a, b) => b.records - a.records);
  if (letters.length === 0)
    return section('dead', 'Dead letters by reason', null, h('p', {class: 'quiet'}, f.records.read
      ? `None: all of the ${whole(f.records.read)} records read could be learnt from.`
      : 'No record was read yet.'));
  const most = letters[0].records;
  return section('dead', 'Dead letters by reason', null,
    table(`Records that could not be learnt from: ${share(f.records.dead, f.records.read)} of those read`,
      ['bad part', '', 'records', 'share'], letters.map(l => [l.part,
        bar(l.part, [[l.records, 'fb']], most, `${l.part}: ${whole(l.records)}`),
        fig(`dead ${l.part}`, whole(l.records)), share(l.records, f.records.dead)]), [2, 3]));
}
function rawParts(d) {
  if (!d.learns)
    return [h('section', {key: 'none'}, h('p', {class: 'quiet'}, 'Nothing is learnt here: this server ' +
      'answers from a checkpoint. It has no stream, no step and no dead letter to show.'))];
  if (!d.figures) return [];
  return [usersSection(d), streamSection(d), qualitySection(d),
    h('div', {class: 'two', key: 'two'}, stepsSection(d), deadSection(d)), rowsSection(d)];
}
