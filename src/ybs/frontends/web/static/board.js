// The board: plots of what was spent, with the table of each, and how things stand.
import { make, table } from './view.js';
const COLOURS = 6; // classes c0 to c5 of the style sheet
const FIGURES = [['Spent', 'US dollars', use => use.usd], ['Tokens', '', use => use.input + use.output]];
const short = value => value >= 1e6 ? `${(value / 1e6).toFixed(1)}M` : value >= 1e3 ? `${(value / 1e3).toFixed(1)}k` : Number.isInteger(value) ? String(value) : value.toFixed(value < 0.1 ? 4 : 2);
function days(uses) {
  const known = uses.map(use => use.day).filter(day => /^\d{4}-\d\d-\d\d$/.test(day)).sort();
  const last = new Date(`${known[known.length - 1]}T00:00:00Z`);
  return Array.from({ length: 30 }, (_, at) => new Date(last.getTime() - (29 - at) * 864e5).toISOString().slice(0, 10))
    .filter(day => day >= known[0]);
}

// Bars by day, a part of each for each of the groups; the table below has the same figures.
function bars(title, unit, sums, columns, groups) {
  const width = 720, height = 180, left = 56, bottom = 150;
  const totals = columns.map(day => groups.reduce((sum, group) => sum + (sums.get(`${day}\n${group}`) || 0), 0));
  const most = Math.max(...totals, 1e-9);
  const room = (width - left) / columns.length;
  const plot = make('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${title}. The table below has the figures.`, class: 'plot' });
  for (const part of [0, 0.5, 1]) {
    const y = bottom - part * (bottom - 12);
    plot.append(make('line', { x1: left, x2: width, y1: y, y2: y, class: 'rule' }), make('text', { x: left - 6, y: y + 4, 'text-anchor': 'end', text: short(part * most) }));
  }
  columns.forEach((day, at) => {
    let low = bottom;
    groups.forEach((group, number) => {
      const value = sums.get(`${day}\n${group}`) || 0;
      const tall = value / most * (bottom - 12);
      low -= tall;
      if (tall) plot.append(make('rect', { x: left + at * room + 1, y: low, width: Math.max(1, Math.min(40, room - 2)), height: tall, class: `c${number % COLOURS}` }, make('title', { text: `${day}, ${group}: ${short(value)}` })));
    });
    if (columns.length < 9 || at % 5 === 0) plot.append(make('text', { x: left + at * room, y: height - 10, text: day.slice(5) }));
  });
  const legend = make('ul', { class: 'legend' }, ...groups.map((group, number) => make('li', {}, make('svg', { viewBox: '0 0 10 10', class: 'key', 'aria-hidden': 'true' }, make('rect', { width: 10, height: 10, class: `c${number % COLOURS}` })), make('span', { text: group }))));
  const rows = columns.filter((_, at) => totals[at]).map(day => ({ level: 0, cells: [day, ...groups.map(group => short(sums.get(`${day}\n${group}`) || 0))] }));
  return figure(title, unit, [plot, legend], { kinds: ['text', ...groups.map(() => 'count')], heads: ['day', ...groups], rows });
}
function figure(title, unit, plots, data) {
  return make('figure', {}, make('figcaption', {}, make('h3', { text: title }), make('span', { class: 'dim', text: unit })), ...plots,
    make('details', {}, make('summary', { text: 'Table' }), table(data, title)));
}
function grouped(uses, field, value) {
  const add = (sums, key, use) => sums.set(key, (sums.get(key) || 0) + value(use));
  const totals = new Map(), sums = new Map();
  for (const use of uses) add(totals, use[field], use);
  const names = [...totals.entries()].sort((one, other) => other[1] - one[1]).map(([name]) => name);
  const groups = names.length > COLOURS ? [...names.slice(0, COLOURS - 1), 'others'] : names;
  for (const use of uses) add(sums, `${use.day}\n${groups.includes(use[field]) ? use[field] : 'others'}`, use);
  return [sums, groups];
}
function hits(uses, columns) {
  const width = 720, height = 150, left = 56, bottom = 120;
  const share = day => {
    const of = uses.filter(use => use.day === day);
    const input = of.reduce((sum, use) => sum + use.input, 0);
    return input ? of.reduce((sum, use) => sum + use.cached, 0) / input : null;
  };
  const points = columns.map((day, at) => [left + (at + 0.5) * (width - left) / columns.length, share(day), day]).filter(([, value]) => value !== null);
  const y = value => bottom - value * (bottom - 12);
  const plot = make('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Share of the input that came from the cache. The table below has the figures.', class: 'plot' });
  for (const part of [0, 0.5, 1]) plot.append(make('line', { x1: left, x2: width, y1: y(part), y2: y(part), class: 'rule' }), make('text', { x: left - 6, y: y(part) + 4, 'text-anchor': 'end', text: `${part * 100} %` }));
  plot.append(make('polyline', { points: points.map(([x, value]) => `${x},${y(value)}`).join(' '), class: 'curve' }));
  for (const [x, value, day] of points) plot.append(make('circle', { cx: x, cy: y(value), r: 3, class: 'c0' }, make('title', { text: `${day}: ${Math.round(value * 100)} %` })));
  const rows = points.map(([, value, day]) => ({ level: 0, cells: [day, `${Math.round(value * 100)} %`] }));
  return figure('Cache hits', 'share of the input tokens that the provider had in its cache', [plot], { kinds: ['text', 'count'], heads: ['day', 'from the cache'], rows });
}
function beliefs(kind, arms) {
  const width = 720, left = 220, row = 24;
  const plot = make('svg', { viewBox: `0 0 ${width} ${row * arms.length + 22}`, role: 'img', 'aria-label': `Chance of success at tasks of the kind ${kind}. The table below has the figures.`, class: 'plot beliefs' });
  const x = value => left + value * (width - left - 12);
  arms.forEach(([name, mean, low, high], at) => {
    const y = row * at + 14;
    plot.append(make('text', { x: left - 10, y: y + 4, 'text-anchor': 'end', text: name.length > 30 ? `…${name.slice(-29)}` : name }),
      make('line', { x1: x(low), x2: x(high), y1: y, y2: y, class: `belief s${at % COLOURS}` }), make('circle', { cx: x(mean), cy: y, r: 4, class: `c${at % COLOURS}` }));
  });
  for (const part of [0, 0.5, 1]) plot.append(make('text', { x: x(part), y: row * arms.length + 18, 'text-anchor': 'middle', text: `${part * 100} %` }));
  const percent = value => `${Math.round(value * 100)} %`;
  const rows = arms.map(([name, mean, low, high, results]) => ({ level: 0, cells: [name, percent(mean), percent(low), percent(high), results.toFixed(1)] }));
  return figure(`Router: ${kind}`, 'chance of success; the line is where it lies in 9 of 10 cases', [plot], { kinds: ['text', 'count', 'count', 'count', 'count'], heads: ['model', 'expected', 'from', 'to', 'results'], rows });
}
// What waits for a word: a name, a note, and buttons with what they do.
function waiting(rows, kind = '') {
  return make('ul', { class: `learned ${kind}` }, ...rows.map(([name, note, ...acts]) => make('li', {}, make('b', { text: name }), make('span', { class: 'dim', text: note }),
    ...acts.map(([label, onclick]) => make('button', { text: label, 'aria-label': `${label}: ${name}`, onclick })))));
}
// What was asked for again and again. `about` takes the command that says what to do with one.
function learned(data, about) {
  const [list] = data.tables;
  return list ? waiting(list.rows.map(({ cells: [id, state, task, from] }) => {
    const act = (label, what) => [label, () => about(`/learn ${what} ${id}`)];
    return [task, [state, from].filter(Boolean).join(' · '), ...(id.startsWith('p') ? [] : [act('Why', 'why'), act('Make a command', 'accept')]), act('Dismiss', 'dismiss')];
  })) : make('p', { class: 'dim', text: data.text });
}
// Who wants to speak in a chat. `pair` takes the code, and as whom they may.
function strangers(people, pair) {
  const roles = { 'Let in as guest': 'guest', 'Let in as owner': 'owner', Refuse: 'refused' };
  return waiting(people.map(({ code, channel, who, age }) => [who, `${channel} · ${age} · code ${code}`, ...Object.entries(roles).map(([label, role]) => [label, () => pair(code, role)])]), 'waiting');
}
export function drawBoard(root, data, about, pair) {
  const parts = [], { router } = data;
  const total = field => data.uses.reduce((sum, use) => sum + use[field], 0), input = total('input');
  const tiles = [['Spent', total('unpriced') && !total('usd') ? '–' : `$${total('usd').toFixed(2)}`], ['Tokens in', short(input)], ['Tokens out', short(total('output'))],
    ['From the cache', input ? `${Math.round(total('cached') / input * 100)} %` : '–'], ['Answers', short(total('answers'))], ['Running now', String(data.running.length)]];
  parts.push(make('dl', { class: 'tiles' }, ...tiles.map(([name, value]) => make('div', {}, make('dt', { text: name }), make('dd', { text: value })))));
  if (total('unpriced')) parts.push(make('p', { class: 'dim', text: `The price of ${short(total('unpriced'))} answers is not known; they are not in what was spent.` }));
  if (data.waiting.length) parts.push(make('h2', { text: 'Wants to be let in' }), make('p', { class: 'dim', text: 'An owner approves what sessions do; a guest only talks. Anybody can choose a name: where you doubt who it is, tell the code to the person you mean, and have them type it in the chat.' }), strangers(data.waiting, pair));
  parts.push(make('h2', { text: 'Running turns' }), data.running.length
    ? table({ kinds: ['text', 'text', 'text', 'text'], heads: ['session', 'state', 'folder', 'model'], rows: data.running.map(each => ({ level: 0, cells: [each.title || 'New session', each.question ? 'asks' : 'working', each.folder, each.model] })) }, 'Running turns')
    : make('p', { class: 'dim', text: 'Nothing runs at the moment.' }));
  if (data.uses.length) {
    const columns = days(data.uses);
    parts.push(make('h2', { text: 'Spending and tokens' }));
    for (const [name, unit, value] of total('usd') ? FIGURES : FIGURES.slice(1)) {
      for (const field of ['model', 'project']) {
        const [sums, groups] = grouped(data.uses, field, value);
        parts.push(bars(`${name} by ${field}, each day`, unit, sums, columns, groups));
      }
    }
    parts.push(hits(data.uses, columns));
  } else parts.push(make('p', { class: 'dim', text: 'No saved session has used any tokens yet.' }));
  parts.push(make('h2', { text: 'Router' }));
  if (router.problem) parts.push(make('p', { class: 'dim', text: router.problem }));
  else if (!Object.keys(router.arms).length) parts.push(make('p', { class: 'dim', text: 'No router is set up: it takes two models or more in router.arms.' }));
  else {
    parts.push(make('p', { text: `${router.decisions} decisions, ${router.settled} with an outcome; policy ${router.policy}.` }));
    parts.push(...Object.entries(router.arms).map(([kind, arms]) => beliefs(kind, arms)));
    if (router.last.length) parts.push(make('h3', { text: 'The last choice' }), make('pre', { class: 'out', tabindex: 0, text: router.last.join('\n') }));
  }
  parts.push(make('h2', { text: 'Recurring tasks' }), learned(data.learned, about), make('h2', { text: 'Health' }), make('div', { class: 'scroll', tabindex: 0 }, make('table', { 'aria-label': 'Health' }, make('tbody', {}, ...data.health.map(([name, value, isWell]) =>
    make('tr', {}, make('th', { scope: 'row', text: name }), make('td', { text: value }), make('td', { class: isWell ? 'well' : 'bad', text: isWell ? 'well' : 'look at this' })))))));
  root.replaceChildren(...parts);
}
