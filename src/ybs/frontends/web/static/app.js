// The page: which session it shows, what it sends, and what the keys do. It has no logic of the agent.
import { Log, make, reply } from './view.js';
import { drawBoard } from './board.js';
const $ = id => document.getElementById(id);
const MODES = ['ask', 'accept-edits', 'plan', 'auto', 'deny', 'bypass'];
const GUARD_MS = 300, HOLD_MS = 100, BEAT_MS = 40000;
const tab = crypto.getRandomValues(new Uint32Array(2)).join('-');
const store = globalThis.localStorage;
let current = null; // { id, name, state }
let [opened, saved, projects] = [[], [], []];
let stream = null, attached = [], given = '' /* put back into the prompt, and not all typed */, offers = { items: [], at: -1 }, refs = new Map(), pictures = new Map();
const seenDone = new Set();
const log = new Log($('log'), { activity, picture, older });
class Gone extends Error {}
// Another program may have taken the port of a server that ended. It is told the token only when it has shown that it knows the login.
let isKnown = false;
const hex = buffer => [...new Uint8Array(buffer)].map(byte => byte.toString(16).padStart(2, '0')).join('');
async function know(token) {
  const { subtle } = crypto, nonce = crypto.randomUUID(), encoded = text => new TextEncoder().encode(text);
  const secret = encoded(hex(await subtle.digest('SHA-256', encoded(token))));
  const key = await subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const answer = await fetch(`/api/proof?nonce=${nonce}`);
  if (answer.status === 401) { showLogin(); throw new Gone('not logged in'); }
  isKnown = await answer.text() === hex(await subtle.sign('HMAC', key, encoded(`${nonce} ${location.origin}`)));
  if (!isKnown) throw new Error('Another program answers in place of ybs.');
}
async function call(path, options = {}) {
  const token = store.getItem('ybs-token') || '';
  try {
    if (token && !isKnown) await know(token);
    return await fetch(`/api/${path}`, { ...options, headers: { 'x-ybs-token': token, 'content-type': 'application/json' } });
  } catch (error) { isKnown &&= error.name === 'AbortError'; throw error; }
}
async function api(path, body) {
  const answer = await call(path, body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) });
  if (answer.status === 401 && path !== 'enter') { showLogin(); throw new Gone('not logged in'); }
  const data = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(data.error || `The server says ${answer.status}.`), data);
  return data;
}
const on = path => `sessions/${current.id}/${path}`;
function say(text) {
  $('said').textContent = '';
  setTimeout(() => { $('said').textContent = text; }, 50);
}
function complain(error) {
  if (error instanceof Gone) return;
  log.on_note({ t: 'note', level: 'error', text: error.message }); say(error.message); stick(true);
}
const doing = work => (...args) => Promise.resolve(work(...args)).catch(complain);

// Logging in

function showLogin(why) {
  stream?.abort(); $('app').hidden = true; $('login').hidden = false;
  if (why) $('loginwhy').textContent = why;
}
async function enter(given) {
  store.removeItem('ybs-token');
  store.setItem('ybs-token', (await api('enter', given)).token); await start();
}
$('loginform').addEventListener('submit', event => {
  event.preventDefault();
  enter({ password: $('password').value }).catch(error => showLogin(error.message));
  $('password').value = '';
});
async function start() {
  const data = await api('sessions');
  ({ open: opened, saved, projects } = data); $('login').hidden = true; $('app').hidden = false; document.body.classList.add('ready'); drawLists();
  const wanted = new URLSearchParams(location.hash.slice(1)).get('s');
  const found = opened.find(each => each.id === wanted || (each.name && each.name === wanted));
  if (found) show(found.id, found.name);
  else if (wanted && saved.some(each => each.name === wanted)) await resume(wanted);
  else show(null);
}

// The connection

async function follow() {
  stream?.abort();
  const own = stream = new AbortController();
  let wait = 200;
  while (!own.signal.aborted) {
    try {
      const query = new URLSearchParams({ tab });
      if (current && log.last !== null) query.set('after', log.last);
      const answer = await call(current ? on(`stream?${query}`) : `stream?${query}`, { signal: own.signal });
      if (answer.status === 401) return showLogin();
      if (answer.status === 400) { await recover(own); continue; }
      if (!answer.ok) throw new Error('the server is busy');
      $('lost').hidden = true; wait = 200; await read(answer.body.getReader(), own);
    } catch (error) { if (own.signal.aborted || error instanceof Gone) return; }
    $('lost').hidden = isKnown = false;
    await new Promise(done => setTimeout(done, wait));
    wait = Math.min(wait * 2, 5000);
  }
}
async function read(reader, own) {
  const decoder = new TextDecoder();
  let rest = '';
  while (!own.signal.aborted) {
    let timer;
    const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error('silence')), BEAT_MS); });
    const { value, done } = await Promise.race([reader.read(), late]).finally(() => clearTimeout(timer));
    if (done || own.signal.aborted) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
    rest = lines.pop();
    for (const line of lines) if (line) take(JSON.parse(line));
  }
}

// The server was started again, and knows this session by its transcript alone.
async function recover(own) {
  const name = current?.name;
  if (own.signal.aborted) return;
  if (!name) return void show(null);
  const { id } = await api('sessions', { resume: name });
  if (own.signal.aborted) return;
  current.id = id; log.clear(); pictures = new Map();
}
function take(record) {
  switch (record.t) {
    case 'sessions': return takeSessions(record.open);
    case 'begin': return begin(record);
    case 'again': log.clear(); return follow();
    case 'state': return takeState(record);
    case 'status': return takeStatus(record);
    case 'reply': return takeReply(record);
    case 'done_line': return takeDraft(record);
    case 'back': return takeBack(record);
    default:
      if (record.t === 'end' && !record.a) say(record.reason === 'done' ? 'The answer is finished.' : record.text);
      return log.add(record);
  }
}
function begin(record) {
  log.clear(); log.last = record.first ? record.first - 1 : 0; log.first = record.first;
  $('older').hidden = !record.first;
  for (const text of record.warnings) log.on_note({ t: 'note', level: 'warning', text });
  if (record.resumes) {
    const box = make('p', { class: 'note warning', text: 'ybs ended in the midst of this turn. ' },
      make('button', { type: 'button', text: 'Go on', onclick: doing(() => { box.remove(); return send('/retry'); }) }));
    setTimeout(() => $('log').append(box));
  }
  isAtEnd = true;
}
async function older() {
  if (!log.first) return;
  const { first, records } = await api(on(`events?before=${log.first}`));
  const scroll = $('scroll'), height = scroll.scrollHeight;
  log.prepend(records, first); scroll.scrollTop += scroll.scrollHeight - height; $('older').hidden = !first;
}
async function picture(path) {
  if (!pictures.has(path)) {
    pictures.set(path, call(on(`pictures/${path}`)).then(answer => { if (!answer.ok) throw new Error('no picture'); return answer.blob(); }).then(blob => URL.createObjectURL(blob)));
  }
  return pictures.get(path);
}

// Lists of sessions

function takeSessions(list) {
  const before = new Map(opened.map(each => [each.id, each]));
  for (const each of list) {
    const was = before.get(each.id);
    if (was?.busy && !each.busy && (each.id !== current?.id || document.hidden)) {
      seenDone.add(each.id); notify(`${each.title || 'A session'}: done`, each.id);
    }
    if (was && each.question && each.question !== was.question) notify(`${each.title || 'A session'} asks`, each.id);
    if (each.busy) seenDone.delete(each.id);
  }
  const isNew = list.length !== opened.length;
  opened = list;
  const mine = opened.find(each => each.id === current?.id);
  if (mine) current.name = mine.name || current.name;
  drawLists();
  if (isNew) api('sessions').then(data => { ({ saved, projects } = data); drawLists(); }).catch(() => {});
}
function age(at) {
  const seconds = Date.now() / 1000 - at;
  for (const [size, unit] of [[86400, 'd'], [3600, 'h'], [60, 'min']]) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  return 'now';
}
const money = usd => !usd ? '' : usd < 0.1 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
function row(each, state, act) {
  const facts = [each.folder, age(each.at), each.cost ? money(each.cost) : '', each.incognito ? 'incognito' : '', each.elsewhere ? 'open elsewhere' : ''];
  const isCurrent = each.id && each.id === current?.id;
  return make('li', {}, make('button', { type: 'button', class: `session ${state}`, 'aria-current': isCurrent ? 'page' : undefined, onclick: act },
    make('span', { class: 'dot', 'aria-hidden': 'true' }), make('b', { text: each.title || 'New session' }),
    state ? make('span', { class: 'sr', text: `, ${state}` }) : null,
    make('span', { class: 'facts', text: facts.filter(Boolean).join(' · ') })));
}
function drawLists() {
  const words = $('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = each => words.every(word => `${each.title} ${each.folder} ${each.model}`.toLowerCase().includes(word));
  const state = each => each.question ? 'asks' : each.busy ? 'working' : seenDone.has(each.id) ? 'done' : '';
  const focused = document.activeElement?.closest?.('#open, #saved') ? [...document.querySelectorAll('.session')].indexOf(document.activeElement) : -1;
  $('open').replaceChildren(...opened.filter(fits).map(each => row(each, state(each), () => show(each.id, each.name))));
  $('saved').replaceChildren(...saved.filter(fits).slice(0, 100).map(each => row(each, '', doing(() => resume(each.name)))));
  $('openhead').hidden = !opened.length; $('savedhead').hidden = !saved.length;
  if (focused >= 0) document.querySelectorAll('.session')[focused]?.focus();
  const mine = opened.find(each => each.id === current?.id);
  const asks = opened.some(each => each.question);
  const mark = asks ? '(asks) ' : opened.some(each => each.busy) ? '… ' : seenDone.size ? '(done) ' : '';
  document.title = `${mark}${mine?.title || 'ybs'}${mine?.title ? ' · ybs' : ''}`;
}
async function resume(name, fork = false) {
  try {
    const { id } = await api('sessions', { resume: name, fork });
    show(id, fork ? '' : name);
  } catch (error) {
    if (!error.copy) throw error;
    dialog('Open elsewhere', make('p', { text: error.message }),
      make('button', { class: 'primary', text: 'Open a copy', onclick: doing(() => { closeDialog(); return resume(name, true); }) }));
  }
}
function show(id, name = '', takesFocus = true) {
  current = id ? { id, name, state: null } : null; seenDone.delete(id); log.clear(); activity('');
  pictures = new Map(); refs = new Map();
  const isOpen = current !== null;
  for (const part of ['scroll', 'foot', 'controls']) $(part).hidden = !isOpen;
  $('welcome').hidden = isOpen; $('board').hidden = true; $('questions').replaceChildren();
  $('title').textContent = isOpen ? '' : 'ybs'; $('where').textContent = '';
  location.hash = isOpen ? `s=${name || id}` : ''; toggleSide(false); drawLists(); follow();
  if (isOpen && takesFocus && matchMedia('(min-width: 760px)').matches) $('prompt').focus();
}

// Where the session stands

function takeState(state) {
  const before = current.state;
  current.state = state;
  if (state.name && state.name !== current.name) { current.name = state.name; location.hash = `s=${state.name}`; }
  $('title').textContent = state.title || 'New session';
  if (!$('mode').options.length) $('mode').append(...MODES.map(each => make('option', { value: each, text: each })));
  $('mode').value = state.mode; $('model').textContent = state.model; $('stop').hidden = !state.busy;
  $('send').textContent = state.busy ? 'Steer' : 'Send'; $('jobs').hidden = !state.jobs.length;
  $('jobs').textContent = state.jobs.length === 1 ? '1 job' : `${state.jobs.length} jobs`;
  $('waiting').replaceChildren(...state.waiting.map(text => make('li', { text })));
  if (state.waiting.length) $('waiting').append(make('li', {}, make('button', { type: 'button', text: 'Take back the newest', onclick: recall })));
  if (before?.busy && !state.busy) activity('');
  drawSteps(state.steps); drawQuestions(state.questions);
}
function takeStatus(status) {
  $('where').textContent = [status.folder, status.branch, status.incognito ? 'incognito' : '', money(status.cost)].filter(Boolean).join(' · ');
  const share = status.window ? Math.min(1, status.tokens / status.window) : 0;
  $('meter').value = share; $('contextwords').textContent = `${Math.round(share * 100)} %`;
  $('context').title = `${status.tokens.toLocaleString()} of ${status.window.toLocaleString()} tokens. What takes the room?`;
}
function drawSteps(steps) {
  const box = $('steps'), lines = steps.split('\n').filter(Boolean);
  box.hidden = !lines.length;
  box.firstElementChild.textContent = `Steps: ${lines.filter(line => line[1] === 'x').length} of ${lines.length} done`;
  box.lastElementChild.replaceChildren(...lines.map(line => make('li', { class: line[1] === 'x' ? 'done' : line[1] === '>' ? 'now' : '', text: line.slice(4) })));
}
function activity(words) { $('activity').hidden = !words; $('activitywords').textContent = words; }
function drawQuestions(questions) {
  const box = $('questions');
  const known = new Map([...box.children].map(card => [card.dataset.id, card]));
  for (const [id, card] of known) if (!questions.some(each => each.id === id)) card.remove();
  for (const each of questions) if (!known.has(each.id)) box.append(card(each));
  if (questions.length && !known.size) {
    activity('');
    if (!document.activeElement?.value) box.firstElementChild?.focus();
    say(`${questions[0].asks}: ${questions[0].is_call ? questions[0].title : ''}`);
  } else if (!questions.length && known.size) $('prompt').focus();
}
function card(question) {
  const hint = question.is_call ? 'Why not; the model reads it' : 'Your answer';
  const words = make('input', { type: 'text', 'aria-label': hint, placeholder: hint });
  const form = make('form', { class: 'words', hidden: true }, words, make('button', { class: 'primary', text: 'Answer' }));
  const title = question.is_call ? `${question.agent ? `${question.agent}: ` : ''}${question.tool}: ${question.title}` : question.asks;
  const keys = make('div', { class: 'keys' });
  const dim = text => text ? make('p', { class: 'dim', text }) : null;
  let isOpen = false, free = null; // a key that was pressed before the question could be read is no consent
  const enable = is => { isOpen = is; for (const each of keys.children) each.disabled = !is; };
  const answer = doing(async given => {
    enable(false);
    await api(on('answer'), { question: question.id, reason: '', ...given }).catch(error => { enable(true); throw error; });
  });
  const draw = choices => keys.replaceChildren(...choices.map(choice => make('button', { type: 'button', disabled: !isOpen, 'data-key': choice.key, onclick: () => {
    form.hidden = !choice.words; free = { key: choice.key, with_network: network.checked };
    return form.hidden ? answer(free) : words.focus();
  } }, make('kbd', { text: choice.key }), make('span', { text: ` ${choice.label}` }))));
  const network = make('input', { type: 'checkbox', onchange: () => draw(network.checked ? question.with_network : question.choices) });
  const box = make('section', { class: 'question', tabindex: -1, 'data-id': question.id, 'aria-label': `Question: ${title}` },
    make('h3', { text: title }),
    question.body ? make('div', { class: 'body', html: question.body }) : null, dim(question.reason),
    ...question.warnings.map(text => make('p', { class: 'note warning', text })),
    question.with_network.length ? make('label', {}, network, make('kbd', { text: 'w' }), ' with network: the command could send away any file that it can read') : null,
    dim(question.withheld && `“Always” is not offered: ${question.withheld}`), keys, form);
  form.addEventListener('submit', event => {
    event.preventDefault();
    if (words.value.trim() || question.is_call) answer({ ...free, reason: words.value });
  });
  network.checked = question.with_network.length > 0 && question.needs_network;
  draw(network.checked ? question.with_network : question.choices);
  setTimeout(enable, GUARD_MS, true);
  return box;
}

// Sending

async function send(text, more = {}) { await api(on('lines'), { text, tab, ...more }); }

// Send a command whose answer is for a dialog and not for the conversation.
function ask(text) {
  const ref = crypto.getRandomValues(new Uint32Array(1))[0].toString(36);
  return new Promise((done, fail) => { refs.set(ref, done); send(text, { ref }).catch(fail); });
}
function takeReply(record) {
  if (record.clipboard) navigator.clipboard?.writeText(record.clipboard).catch(() => {});
  takeDraft(record);
  if (record.ref && refs.has(record.ref)) {
    refs.get(record.ref)(record); refs.delete(record.ref);
    return;
  }
  if (record.quit) {
    doing(closeSession)(); return;
  }
  if (record.text || record.menu || record.tables.length || record.diff || record.notes.length) {
    $('log').append(reply(record, doing(line => send(line, { choice: true }))));
    say(record.text.slice(0, 200) || 'Here is the answer of the command.');
  }
}
function draft(text) { $('prompt').value = text; grow(); }
function takeDraft(record) { if (record.draft) { draft(record.draft); given = record.draft; } }
function takeBack(record) { const typed = $('prompt').value; if (record.text) draft(typed ? joined(record.words, typed) : record.text); given = joined(record.given, given); }
const joined = (...texts) => texts.filter(Boolean).join('\n');
const submit = doing(async queue => {
  const text = $('prompt').value;
  if (!text.trim() && !attached.length) return;
  const more = { queue, given, pictures: attached.filter(each => each.data).map(({ type, data }) => ({ type, data })),
    files: attached.filter(each => each.text !== undefined).map(({ name, text: words }) => ({ name, text: words })) };
  const kept = attached;
  draft(''); attached = []; drawAttached(); hideOffers();
  try {
    await send(text, more); given = ''; stick(true);
  } catch (error) {
    draft(text); attached = kept; drawAttached(); throw error;
  }
});
const stopTurn = doing(() => api(on('stop'), {}));
const recall = doing(async () => takeBack(await api(on('recall'), {})));
async function attach(files) {
  for (const file of files) {
    if (/^image\/(png|jpeg|gif|webp)$/.test(file.type)) {
      const address = await new Promise(done => { const reader = new FileReader(); reader.onload = () => done(reader.result); reader.readAsDataURL(file); });
      attached.push({ name: file.name, type: file.type, data: address.split(',')[1] });
    } else {
      const text = await file.text();
      if (text.includes('\0')) throw new Error(`${file.name} is not text. Name it with @ if it lies on the machine that ybs runs on.`);
      attached.push({ name: file.name, text });
    }
  }
  drawAttached(); $('prompt').focus();
}
// A long text that is pasted or dropped goes along as a file does: nobody reads it to its end, so it names no files.
function takeLong(event, data) {
  const text = data.getData('text/plain'), lines = text.split('\n').length;
  if (lines <= 10 && text.length <= 1000) return;
  event.preventDefault(); attached.push({ name: `pasted, ${lines} line${lines === 1 ? '' : 's'}`, text }); drawAttached();
}
function drawAttached() {
  $('attached').replaceChildren(...attached.map(each => make('li', {}, make('span', { text: each.name }),
    make('button', { type: 'button', class: 'icon', 'aria-label': `Do not attach ${each.name}`, text: '×', onclick: () => {
      attached = attached.filter(other => other !== each); drawAttached();
    } }))));
}

// Completion

let asked = 0;
async function offer() {
  const area = $('prompt'), before = area.value.slice(0, area.selectionStart), number = ++asked;
  if (!current || !(before.startsWith('/') || /@\S*$/.test(before.slice(-200)))) return hideOffers();
  const { items } = await api(on(`complete?text=${encodeURIComponent(before)}`));
  if (number !== asked) return undefined;
  offers = { items, at: items.length ? 0 : -1, before };
  return drawOffers();
}
function drawOffers() {
  const box = $('offers');
  box.hidden = !offers.items.length;
  box.replaceChildren(...offers.items.map((each, at) => make('li', { role: 'option', id: `offer${at}`, 'aria-selected': String(at === offers.at), onmousedown: event => {
    event.preventDefault(); accept(at);
  } }, make('b', { text: each.label }), make('span', { text: each.detail }))));
  const area = $('prompt');
  if (offers.at >= 0) area.setAttribute('aria-activedescendant', `offer${offers.at}`);
  else area.removeAttribute('aria-activedescendant');
  box.children[offers.at]?.scrollIntoView({ block: 'nearest' });
}
function hideOffers() { asked += 1; offers = { items: [], at: -1 }; drawOffers(); }
function accept(at) {
  const area = $('prompt'), item = offers.items[at];
  const end = area.selectionStart; // what was typed since the offer came is a part of what it replaces
  area.setRangeText(item.text, Math.max(0, offers.before.length - item.cut), end, 'end'); hideOffers(); grow();
  if (item.text.endsWith('/') || item.text.endsWith(' ')) offer().catch(() => {});
}
function grow() {
  const area = $('prompt');
  area.rows = Math.min(10, Math.max(1, area.value.split('\n').length));
}

// Scrolling

// As long as the person is at the end, the end stays in sight, whatever grows.
let isAtEnd = true, lastSize = '';
function stick(is) {
  isAtEnd ||= is;
  if (isAtEnd) $('scroll').scrollTop = $('scroll').scrollHeight;
  $('down').hidden = $('scroll').hidden || isAtEnd;
}
const watcher = new ResizeObserver(() => stick(false));
for (const id of ['log', 'scroll']) watcher.observe($(id));
$('scroll').addEventListener('scroll', () => {
  const size = `${$('scroll').scrollHeight} ${$('scroll').clientHeight}`;
  isAtEnd = $('scroll').scrollHeight - $('scroll').scrollTop - $('scroll').clientHeight < 90 || (isAtEnd && size !== lastSize); // what grows or shrinks moves the place too: that is nobody's scrolling
  lastSize = size; $('down').hidden = isAtEnd;
  if ($('scroll').scrollTop < 60 && log.first && !$('older').disabled) {
    $('older').disabled = true;
    older().catch(complain).finally(() => { $('older').disabled = false; });
  }
});
$('down').addEventListener('click', () => stick(true));
$('older').addEventListener('click', doing(older));

// Dialogs

function dialog(title, ...content) {
  $('dialogtitle').textContent = title; $('dialogbody').replaceChildren(...content);
  if (!$('dialog').open) $('dialog').showModal();
  $('dialogbody').querySelector('input, .choices button')?.focus();
}
const closeDialog = () => $('dialog').close();
$('dialogclose').addEventListener('click', closeDialog);
const newSession = doing(async () => {
  ({ saved, projects } = await api('sessions'));
  const incognito = make('input', { type: 'checkbox' });
  const open = doing(async folder => {
    closeDialog();
    const { id } = await api('sessions', { folder, incognito: incognito.checked });
    show(id);
  });
  dialog('New session', make('p', { text: 'In which project?' }),
    make('ul', { class: 'choices' }, ...projects.map(([folder, shown]) => make('li', {}, make('button', { onclick: () => open(folder) }, make('b', { text: shown }))))),
    make('label', {}, incognito, ' incognito: nothing of it is saved, and no other login sees it'));
});
async function pick(line) {
  const answer = await ask(line);
  dialog(line, reply({ ...answer, line: '' }, doing(chosen => { closeDialog(); return send(chosen, { choice: true }); })));
}
const wayBack = (way, label, title, words) => doing(async () => {
  const answer = await ask(`/diff ${way}`);
  dialog(title, make('p', { text: words }), reply({ ...answer, text: answer.diff ? '' : answer.text, line: '', notes: [] }, () => {}),
    make('button', { class: 'primary', text: label, onclick: doing(() => { closeDialog(); return send(`/${way}`); }) }));
});
const undo = wayBack('undo', 'Undo', 'Take the last turn back?', 'Its words go, and these changes to files are taken back. Redo brings both again.');
const redo = wayBack('redo', 'Redo', 'Do it again?', 'What was taken back last is done again: its words, and these changes to files.');
const closeSession = async () => {
  const closing = on('close');
  show(null); await api(closing, {});
};
const showJobs = doing(async () => {
  const { jobs } = await api(on('jobs'));
  dialog('Background commands', ...jobs.map(job => make('details', { class: 'job', open: true }, make('summary', { text: job.line }),
    make('pre', { class: 'out', tabindex: 0, text: job.output || 'Nothing new was printed.' }),
    job.running ? make('button', { text: 'Stop it', onclick: doing(async () => { await ask(`/jobs stop ${job.name}`); return showJobs(); }) }) : null)));
  const watch = setInterval(doing(async () => {
    if (!$('dialog').open || $('dialogtitle').textContent !== 'Background commands') return clearInterval(watch);
    const now = await api(on('jobs'));
    return now.jobs.forEach((job, at) => {
      const box = document.querySelectorAll('.job')[at];
      if (box) box.querySelector('pre').textContent = job.output || 'Nothing new was printed.';
      if (box) box.firstChild.textContent = job.line;
    });
  }), 1000);
});
function hitList(hits, act) {
  if (!hits.length) return make('p', { text: 'Nothing was found.' });
  return make('ul', { class: 'choices' }, ...hits.map(hit => make('li', {}, make('button', { onclick: () => act(hit) },
    hit.title ? make('b', { text: hit.title }) : null, make('span', { text: hit.excerpt })))));
}
async function jump(place) {
  while (log.first && place < log.first) await older();
  isAtEnd = false;
  const found = [...$('log').querySelectorAll('[data-n]')].filter(each => Number(each.dataset.n) <= place).pop();
  found?.scrollIntoView({ block: 'center' }); found?.classList.add('found');
  setTimeout(() => found?.classList.remove('found'), 2500);
}
function searchHere() {
  const results = make('div', {});
  const field = make('input', { type: 'search', 'aria-label': 'Search in this session', placeholder: 'Words, then Enter' });
  const form = make('form', { onsubmit: doing(async event => {
    event.preventDefault();
    const { hits } = await api(on(`search?q=${encodeURIComponent(field.value)}`));
    results.replaceChildren(hitList(hits, doing(hit => { closeDialog(); return jump(hit.n); })));
  }) }, field);
  dialog('Search in this session', form, results); field.focus();
}
$('filter').addEventListener('input', drawLists);
$('filter').addEventListener('keydown', doing(async event => {
  if (event.key !== 'Enter' || !$('filter').value.trim()) return;
  const { hits } = await api(`search?q=${encodeURIComponent($('filter').value)}`);
  dialog(`Sessions with “${$('filter').value}”`, hitList(hits, doing(async hit => {
    closeDialog();
    const found = opened.find(each => each.name === hit.name);
    return found ? show(found.id, found.name) : resume(hit.name);
  })));
}));
const showSettings = doing(async () => {
  const { logins } = await api('logins');
  const theme = make('select', { 'aria-label': 'Colours', onchange: event => { store.setItem('ybs-theme', event.target.value); setTheme(); } },
    ...['auto', 'light', 'dark'].map(each => make('option', { value: each, text: each })));
  theme.value = store.getItem('ybs-theme') || 'auto';
  const linked = make('p', {});
  dialog('Settings', make('p', {}, 'Colours ', theme),
    make('p', {}, make('button', { text: 'Notify me when a turn is done or asks', onclick: async event => {
      const permission = await globalThis.Notification?.requestPermission();
      event.target.textContent = permission === 'granted' ? 'Notifications are on' : 'The browser does not allow it';
    } })),
    make('h3', { text: 'Logged in browsers' }),
    make('ul', { class: 'logins' }, ...logins.map(each => make('li', {}, make('span', { text: `${/(Edg|OPR|Firefox|Chrome|Safari)\/\d+/.exec(each.browser)?.[0].replace('/', ' ') || each.browser.slice(0, 40)} · ${/\(([^;)]+)/.exec(each.browser)?.[1] || ''} · ${each.address} · used ${age(each.seen)}${each.own ? ' · this one' : ''}` }),
      make('button', { text: 'Log out', onclick: doing(async () => { await api(each.own ? 'leave' : `logins/${each.id}/end`, {}); return each.own ? location.reload() : showSettings(); }) })))),
    make('p', {}, make('button', { text: 'A link for another browser', onclick: doing(async () => {
      linked.textContent = (await api('links', {})).link;
    }) })), linked);
});
const KEYS = [['?', 'these shortcuts'], ['i', 'go to the prompt'], ['n', 'new session'], ['j k', 'next and previous session'], ['b', 'board'], ['/', 'search in this session'],
  ['f', 'filter the sessions'], ['m', 'next mode'], ['u', 'take the last turn back'], ['Esc', 'leave the prompt, close a dialog; twice: stop the turn'], ['Enter', 'send; while a turn runs: steer it'], ['Alt-Enter', 'send when the turn has ended'],
  ['Shift-Enter', 'a new line'], ['Alt-Up', 'take back the newest line that waits'], ['y n r o i a p e w 1…9', 'answer a question'], [',', 'settings']];
function showHelp() {
  dialog('Shortcuts', make('table', { class: 'keys' }, make('tbody', {}, ...KEYS.map(([key, what]) => make('tr', {}, make('th', { scope: 'row' }, ...key.split(' ').map(each => make('kbd', { text: each }))), make('td', { text: what }))))));
}
const showBoard = doing(async () => {
  for (const part of ['scroll', 'foot', 'welcome']) $(part).hidden = true;
  $('controls').hidden = true; $('board').hidden = false; $('title').textContent = 'Board';
  $('where').textContent = ''; current = null; location.hash = 'board'; drawLists(); follow(); toggleSide(false);
  await board();
});
const board = async () => drawBoard($('board'), await api('board'), about, pair);
// Let somebody speak in a chat, or refuse them.
const pair = doing(async (code, role) => { await api('pair', { code, role }).finally(board); });
// Show, accept or dismiss a task that recurs; then the board is drawn anew.
const about = doing(async line => {
  const answer = await api('learned', { text: line });
  if (answer.menu) answer.menu.items = answer.menu.items.filter(item => !item.line.endsWith(' project')); // the board is of no project
  dialog('A recurring task', reply({ ...answer, line: '' }, about));
  if (!answer.menu && !line.startsWith('/learn why')) await board();
});

// Keys

function step(by) {
  const at = opened.findIndex(each => each.id === current?.id);
  const next = opened[(at + by + opened.length) % opened.length];
  if (next) show(next.id, next.name, false);
}
const withSession = act => () => { if (current) act(); };
const ACTS = { '?': showHelp, n: newSession, j: () => step(1), k: () => step(-1), b: () => showBoard(), '/': withSession(searchHere), f: () => $('filter').focus(), u: withSession(undo),
  i: withSession(() => $('prompt').focus()), m: withSession(doing(() => send(`/mode ${MODES[(MODES.indexOf(current.state.mode) + 1) % 4]}`, { ref: 'quiet' }))), ',': showSettings };
let escaped = 0, typedAt = -GUARD_MS, held = { text: '', timer: 0 };
// A key answers only if none came just before it and none follows at once. Else it belongs to what is being typed, and goes on in the prompt.
function pressed(event, question, wasQuiet) {
  clearTimeout(held.timer);
  if (!wasQuiet) { const area = $('prompt'); area.setRangeText(held.text, area.selectionStart, area.selectionEnd, 'end'); held.text = ''; return area.focus(); }
  const box = event.key === 'w' && question.querySelector('[type=checkbox]');
  const button = () => box || [...question.querySelectorAll('[data-key]')].find(each => each.dataset.key === event.key);
  const isEarly = button()?.disabled, act = () => { held.text = ''; return button() ? button().click() : ACTS[event.key]?.(); };
  event.preventDefault();
  held = { text: event.key, timer: setTimeout(() => isEarly || !question.isConnected || act(), HOLD_MS) };
  return undefined;
}
document.addEventListener('keydown', event => {
  const isTyping = event.target.closest?.('input, textarea, select'), wasQuiet = event.timeStamp - typedAt >= GUARD_MS;
  if (event.key.length === 1) typedAt = event.timeStamp;
  if (event.key === 'Escape' && !$('dialog').open) {
    if (offers.items.length) return hideOffers();
    const isTwice = event.timeStamp - escaped < 800;
    escaped = event.timeStamp;
    return isTwice && current?.state?.busy ? stopTurn() : document.activeElement?.blur();
  }
  if (isTyping || $('dialog').open || event.ctrlKey || event.metaKey || event.altKey || $('app').hidden) return undefined;
  const question = $('questions').firstElementChild;
  if (question && event.key.length === 1 && event.key !== ' ') return event.repeat ? event.preventDefault() : pressed(event, question, wasQuiet);
  if (!ACTS[event.key]) return undefined;
  event.preventDefault(); return ACTS[event.key]();
});
$('prompt').addEventListener('keydown', event => {
  if (event.isComposing) return;
  const count = offers.items.length;
  if (count && ['ArrowDown', 'ArrowUp'].includes(event.key)) {
    event.preventDefault(); offers.at = (offers.at + (event.key === 'ArrowDown' ? 1 : -1) + count) % count;
    drawOffers();
  } else if (count && (event.key === 'Tab' || (event.key === 'Enter' && !offers.items.some(each => each.text.trim() === $('prompt').value.trim())))) {
    event.preventDefault(); accept(offers.at);
  } else if (event.key === 'Enter' && !event.shiftKey) {
    event.preventDefault(); submit(event.altKey);
  } else if (event.key === 'ArrowUp' && event.altKey) recall();
});
$('prompt').addEventListener('input', () => { grow(); offer().catch(() => {}); });
$('prompt').addEventListener('blur', hideOffers);
$('prompt').addEventListener('paste', doing(async event => {
  if (!event.clipboardData.files.length) return takeLong(event, event.clipboardData);
  event.preventDefault(); return attach([...event.clipboardData.files]);
}));
$('composer').addEventListener('submit', event => { event.preventDefault(); submit(false); });
for (const kind of ['dragover', 'drop']) {
  $('main').addEventListener(kind, event => {
    if (!event.dataTransfer.types.includes('Files')) { if (kind === 'drop') takeLong(event, event.dataTransfer); return; }
    event.preventDefault();
    if (kind === 'drop' && current) doing(attach)([...event.dataTransfer.files]);
  });
}
$('attach').addEventListener('click', () => $('files').click());
$('files').addEventListener('change', doing(async () => { await attach([...$('files').files]); $('files').value = ''; }));
document.addEventListener('click', doing(async event => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  const text = button.ybsText ?? button.closest('.code').querySelector('code').textContent;
  await navigator.clipboard.writeText(text); button.textContent = 'Copied';
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}));
function toggleSide(is) { document.body.classList.toggle('side', is); $('menu').setAttribute('aria-expanded', String(is)); }
$('menu').addEventListener('click', () => toggleSide(!document.body.classList.contains('side')));
const CLICKS = { new: newSession, more: () => $('controls').classList.toggle('all'), boardbutton: () => showBoard(), settings: showSettings, help: showHelp, stop: stopTurn, undo, redo, find: searchHere, jobs: showJobs,
  model: doing(() => pick('/model')), effort: doing(() => pick('/effort')), context: doing(() => pick('/context')), close: doing(closeSession) };
for (const [id, act] of Object.entries(CLICKS)) $(id).addEventListener('click', act);
$('mode').addEventListener('change', doing(() => ask(`/mode ${$('mode').value}`)));
function notify(text, id) {
  if (!document.hidden || globalThis.Notification?.permission !== 'granted') return;
  const shown = new Notification('ybs', { body: text, tag: id });
  shown.onclick = () => { globalThis.focus(); show(id); };
}
function setTheme() { document.documentElement.dataset.theme = store.getItem('ybs-theme') || 'auto'; }
setTheme();

// A browser opens six connections to a server in all. A page that nobody sees lets go of its own, and asks now and then.
let parked = 0;
document.addEventListener('visibilitychange', () => {
  clearTimeout(parked); clearInterval(parked);
  if (document.hidden) {
    parked = setTimeout(() => { stream?.abort(); parked = setInterval(() => api('sessions').then(data => takeSessions(data.open)).catch(() => {}), 15000); }, 20000);
  } else if (!$('app').hidden) { seenDone.delete(current?.id); drawLists(); if (stream.signal.aborted) follow(); }
});
function comeIn() {
  const key = new URLSearchParams(location.hash.slice(1)).get('key');
  if (!key) return store.getItem('ybs-token') ? start().catch(error => error instanceof Gone || showLogin(error.message)) : showLogin();
  history.replaceState(null, '', current?.name ? `/#s=${current.name}` : '/'); enter({ key }).catch(error => showLogin(error.message));
}
comeIn(); addEventListener('hashchange', () => location.hash.startsWith('#key=') && comeIn()); // the link, after a login has ended
addEventListener('storage', event => event.key === 'ybs-token' && event.newValue && !$('login').hidden && comeIn()); // another tab has logged in
