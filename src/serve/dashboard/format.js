'use strict';
// Numbers and times as people read them. Every figure is written by one of these.
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const two = n => String(n).padStart(2, '0');

// 1234567 -> "1,234,567"
const whole = n => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');
// An epsilon with three places; a budget as it was given.
const eps = e => (e === null ? 'unbounded' : e.toFixed(3));
const given = n => (n === null ? 'none' : n !== 0 && n < 1e-3 ? n.toExponential() : String(n));
const share = (part, all) => (all > 0 ? (100 * part / all).toFixed(part === all ? 0 : 1) + ' %' : '–');
// Three digits: "12,300", "4.53", "0.012".
function three(n) {
  if (!Number.isFinite(n)) return '–';
  if (n === 0) return '0';
  const a = Math.abs(n);
  if (a >= 100) return whole(a >= 1000 ? Number(n.toPrecision(3)) : n);
  return n.toFixed(a >= 10 ? 1 : a >= 1 ? 2 : 3);
}
const bytes = n => (n < 1e6 ? three(n / 1e3) + ' kB' : n < 1e9 ? three(n / 1e6) + ' MB'
  : three(n / 1e9) + ' GB');

function utc(ms, seconds) {
  const t = new Date(ms);
  const year = t.getUTCFullYear() === new Date().getUTCFullYear() ? '' : ' ' + t.getUTCFullYear();
  return `${t.getUTCDate()} ${MONTHS[t.getUTCMonth()]}${year} ${two(t.getUTCHours())}:` +
    two(t.getUTCMinutes()) + (seconds ? ':' + two(t.getUTCSeconds()) : '');
}
// "3.4 days", "17 minutes", "8 seconds"
function span(ms) {
  const s = Math.max(0, ms / 1000);
  if (s >= 2 * 365.25 * 86400) return three(s / 365.25 / 86400) + ' years';
  if (s >= 2 * 86400) return three(s / 86400) + ' days';
  if (s >= 2 * 3600) return three(s / 3600) + ' hours';
  if (s >= 120) return Math.round(s / 60) + ' minutes';
  return Math.round(s) + (Math.round(s) === 1 ? ' second' : ' seconds');
}

// Round ticks within [low, high], about `count` of them, no closer than `least`.
function ticks(low, high, count, least = 0) {
  const raw = Math.max(least, (high - low) / count);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw * .999);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
    out.push(Number((i * step).toPrecision(12)));
  return out;
}
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const TIME_STEPS = [SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE,
  5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY,
  7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 182 * DAY, 365 * DAY, 1826 * DAY, 3652 * DAY];
// Times with their labels.
function timeTicks(low, high, count) {
  const step = TIME_STEPS.find(s => (high - low) / s <= count) || 36525 * DAY;
  const out = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) {
    const t = new Date(at);
    const clock = `${two(t.getUTCHours())}:${two(t.getUTCMinutes())}`;
    const day = `${t.getUTCDate()} ${MONTHS[t.getUTCMonth()]}`;
    out.push([at, step < MINUTE ? `${clock}:${two(t.getUTCSeconds())}`
      : step >= 182 * DAY ? `${MONTHS[t.getUTCMonth()]} ${t.getUTCFullYear()}`
      : step >= DAY || at % DAY === 0 ? day : clock]);
  }
  return out;
}
