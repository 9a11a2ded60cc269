// Asks the daemon every two seconds, and shows what it answered.
const EVERY = 2000, PATIENCE = 10000;
const opened = new Set();  // tables
const settings = {theme: 'auto', figures: true, back: 'minutes'};
// An operator's token, where the daemon asks for one. It stays in this page.
let token = '', asksToken = false;
let data = null, failure = '', gotAt = 0, failedAt = 0, timer = 0, asking = null;

function keep() {
  try { localStorage.setItem('tacit', JSON.stringify(settings)); } catch (e) { /* not kept */ }
}
function recall() {
  try { Object.assign(settings, JSON.parse(localStorage.getItem('tacit') || '{}')); } catch (e) { /**/ }
  if (!['auto', 'light', 'dark'].includes(settings.theme)) settings.theme = 'auto';
  if (!(settings.back in LOOKS)) settings.back = 'minutes';
  settings.figures = settings.figures !== false;
}
const dark = matchMedia('(prefers-color-scheme: dark)');
function applyTheme() {
  document.documentElement.dataset.theme =
    settings.theme === 'auto' ? (dark.matches ? 'dark' : 'light') : settings.theme;
}

function statusLine() {
  const s = data.state, v = data.versions;
  const cls = failure || !s.ready ? 'bad' : s.why ? 'warn' : '';
  const node = document.getElementById('status');
  if (node.className !== cls) node.className = cls;
  patch(node, [h('b', {}, failure ? 'no answer' : fig('activity', s.activity)), h('span', {class: 'quiet'}, ' · commit ',
    fig('commit', whole(v.version)), data.last_commit_ms
      ? [', ', fig('committed', span(data.time_ms - data.last_commit_ms)), ' ago'] : ''),
  s.why && s.why !== s.activity ? h('span', {}, ' · ' + s.why) : null]);
}
function alarm() {
  document.body.classList.toggle('stale', failure !== '' && data !== null);
  patch(document.getElementById('alarm'), failure === '' ? [] : [h('p', {},
    asksToken ? `The daemon answers operators alone (${failure}). `
      : `The daemon does not answer (${failure}). `, data
      ? ['The figures below are of ', fig('stale', utc(gotAt, true)), ', ',
        fig('age', span(Date.now() - gotAt)), ' old.'] : 'There is nothing to show yet.')]);
}
function askToken(asks) {
  asksToken = asks;
  const form = document.getElementById('token');
  if (form.hidden !== !asks) form.hidden = !asks;
}
function render() {
  alarm();
  document.getElementById('figures').checked = settings.figures;
  patch(document.getElementById('figures-state'),
    [settings.figures ? 'shown' : 'off: neither asked for nor shown']);
  if (!data) return;
  statusLine();
  patch(document.querySelector('#budget .body'), budgetBody(data));
  patch(document.getElementById('raw'), settings.figures ? rawParts(data) : []);
  patch(document.querySelector('#versions .body'), versionsBody(data));
  watchPlots();
}

async function poll() {
  clearTimeout(timer);
  if (asking) asking.abort();
  const mine = asking = new AbortController();
  const patience = setTimeout(() => mine.abort(), PATIENCE);
  let next = EVERY;
  try {
    const answer = await fetch('/v1/dashboard?figures=' + (settings.figures ? 'all' : 'public') +
      '&back=' + settings.back, {signal: mine.signal, cache: 'no-store',
      headers: token ? {Authorization: 'Bearer ' + token} : {}});
    const body = await answer.json();
    if (mine !== asking) return;
    askToken(answer.status === 401 || answer.status === 403);
    if (!answer.ok) throw new Error(body.error ? body.error.message : answer.status);
    data = body;
    gotAt = Date.now();
    failure = '';
    // The course of budgets is found while nobody waits: soon after the first look.
    if (data.budgets_of === null) next = 300;
  } catch (error) {
    if (mine !== asking) return;
    failure = error.name === 'AbortError' ? 'no answer within ten seconds'
      : error.name === 'TypeError' ? 'no connection' : error.message;
  } finally {
    clearTimeout(patience);
  }
  render();
  timer = setTimeout(poll, document.hidden ? 30 * EVERY : next);
}

function start() {
  recall();
  applyTheme();
  dark.addEventListener('change', applyTheme);
  for (const input of document.querySelectorAll('#theme input')) {
    input.checked = input.value === settings.theme;
    input.onchange = () => { settings.theme = input.value; keep(); applyTheme(); };
  }
  document.getElementById('token').onsubmit = event => {
    event.preventDefault();
    const text = document.getElementById('token-text');
    token = text.value.trim();
    text.value = '';
    poll();
  };
  document.getElementById('figures').onchange = event => {
    settings.figures = event.target.checked;
    if (!settings.figures && data) data.figures = null;
    keep();
    render();
    poll();
  };
  document.addEventListener('visibilitychange', () => { if (!document.hidden) poll(); });
  setInterval(() => { if (failure) alarm(); }, 1000);
  render();
  poll();
}
start();
