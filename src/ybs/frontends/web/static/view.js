// Draws the records of a session. What the server has made HTML of is safe HTML; all else is set as text.

const policy = globalThis.trustedTypes
  ? globalThis.trustedTypes.createPolicy('ybs', { createHTML: text => text })
  : { createHTML: text => text };
const DRAWN = new Set(['svg', 'line', 'text', 'rect', 'title', 'polyline', 'circle']);
export function make(tag, options = {}, ...children) {
  const element = DRAWN.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === 'text') element.textContent = value;
    else if (name === 'html') element.innerHTML = policy.createHTML(value);
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}
const ORIGINS = { guard: 'Reminder by ybs', shell: 'Command', summary: 'Summary', context: 'About the project' };
const STREAMED = new Set(['text', 'think', 'out', 'writing', 'partial', 'outs']);
export function table(data, label) {
  const cell = (kind, value, level) => {
    if (kind === 'share') {
      const words = typeof value === 'number' ? `${Math.round(value * 100)} %` : '';
      return make('td', { class: 'share' }, typeof value === 'number'
        ? make('progress', { max: 1, value, 'aria-label': words }) : null);
    }
    const isNumber = !['text', 'words', 'note'].includes(kind);
    return make('td', { class: isNumber ? 'number' : `level${level}`, text: value });
  };
  const rows = data.rows.map(row => row.cells.length === 1 && data.kinds.length > 1
    ? make('tr', {}, make('th', { colspan: data.kinds.length, scope: 'rowgroup', text: row.cells[0] }))
    : make('tr', {}, ...row.cells.map((value, at) => cell(data.kinds[at], value, at ? 0 : row.level))));
  const heads = data.heads.length
    ? make('thead', {}, make('tr', {}, ...data.heads.map(head => make('th', { scope: 'col', text: head })))) : null;
  return make('div', { class: 'scroll', tabindex: 0 },
    make('table', { 'aria-label': label }, heads, make('tbody', {}, ...rows)));
}

// The answer of a command. `choose` takes the line of what is picked.
export function reply(record, choose) {
  const box = make('article', { class: `reply${record.error ? ' error' : ''}` });
  if (record.line && record.line.startsWith('/')) box.append(make('p', { class: 'line', text: record.line }));
  if (record.text) box.append(make('p', { class: 'plain', text: record.text }));
  for (const each of record.tables) box.append(table(each, record.line));
  if (record.diff) box.append(make('div', { html: record.diff }));
  if (record.menu) {
    box.append(make('p', { class: 'plain', text: record.menu.title }));
    box.append(make('ul', { class: 'choices' }, ...record.menu.items.map(item => make('li', {},
      make('button', { type: 'button', 'aria-current': item.is_current ? 'true' : undefined, onclick: () => choose(item.line) },
        make('b', { text: item.label }), make('span', { text: item.detail }))))));
  }
  for (const note of record.notes) box.append(make('p', { class: 'dim plain', text: note }));
  return box;
}

export class Log {
  // `hooks`: activity(words), picture(path) gives the address of a picture, older() is asked for what was before.
  constructor(root, hooks) { Object.assign(this, { root, hooks }); this.clear(); }
  clear() {
    this.root.replaceChildren(); this.last = null; this.first = 0; this.calls = new Map(); this.branches = new Map();
    this.live = new Map(); this.target = this.root;
    this.floor = Infinity; // what is behind this place was taken back, and is not drawn when it is loaded later
  }
  prepend(records, first) {
    const fragment = document.createDocumentFragment();
    this.target = fragment;
    for (const record of records) this.draw(record);
    this.cut(this.floor); this.target = this.root; this.root.prepend(fragment); this.first = first;
  }
  add(record) {
    if (record.n && !STREAMED.has(record.t)) {
      if (this.last !== null && record.n <= this.last) return;
      this.last = record.n;
    }
    this.draw(record);
  }
  draw(record) { this[`on_${record.t}`]?.(record); }
  // Where what an agent says stands: a sub-agent's in a branch below the call that started it.
  place(record) {
    if (!record.a) return this.target;
    const known = this.branches.get(record.a);
    if (known) return known;
    const body = make('div', { class: 'branch' });
    const branch = make('details', { class: 'agent', open: true }, make('summary', { text: record.a }), body);
    const call = record.by && [...this.calls.values()].find(each => each.dataset.call === record.by);
    if (call) {
      call.querySelector('.inside').append(branch); call.open = true;
    } else this.put(this.target, branch, record);
    this.branches.set(record.a, body);
    return body;
  }
  put(place, element, record) {
    if (record.n) element.dataset.n = record.n;
    const live = this.live.get(record.a || '');
    if (live && live.element.parentNode === place) place.insertBefore(element, live.element);
    else place.append(element);
    return element;
  }
  pictures(record) {
    if (!record.pictures?.length) return null;
    const box = make('div', { class: 'pictures' });
    for (const path of record.pictures) {
      const image = make('img', { alt: 'Attached picture', loading: 'lazy' });
      this.hooks.picture(path).then(address => { image.src = address; }, () => { image.alt = 'A picture that cannot be shown'; });
      box.append(image);
    }
    return box;
  }
  on_user(record) {
    const place = this.place(record);
    if (record.origin !== 'person') {
      const words = [record.text, record.more].filter(Boolean).join('\n');
      this.put(place, make('details', { class: 'aside' }, make('summary', { text: ORIGINS[record.origin] || record.origin }),
        make('p', { class: 'plain', text: words })), record);
      return;
    }
    const element = make('article', { class: 'user' }, make('h3', { class: 'sr', text: record.a ? 'Task' : 'You' }),
      make('p', { class: 'plain', text: record.text }));
    if (record.more) element.append(make('details', { class: 'aside' }, make('summary', { text: 'Attached' }), make('p', { class: 'plain', text: record.more })));
    const pictures = this.pictures(record);
    if (pictures) element.append(pictures);
    this.put(place, element, record);
  }
  writing(record) {
    const agent = record.a || '';
    if (!this.live.has(agent)) {
      const thinking = make('details', { class: 'think', hidden: true }, make('summary', { text: 'Thinking…' }), make('p', { class: 'plain' }));
      const blocks = make('div', { class: 'markdown' }), rest = make('p', { class: 'plain rest' });
      const element = make('article', { class: 'answer live', 'aria-busy': 'true' }, thinking, blocks, rest);
      this.place(record).append(element); this.live.set(agent, { element, thinking, blocks, rest });
    }
    return this.live.get(agent);
  }
  drop(record) {
    const agent = record.a || '';
    this.live.get(agent)?.element.remove(); this.live.delete(agent);
  }
  on_text(record) {
    const live = this.writing(record);
    if (record.html !== undefined) {
      live.blocks.append(make('div', { html: record.html })); live.rest.textContent = record.rest;
    } else live.rest.append(record.text);
    this.hooks.activity('writing');
  }
  on_think(record) {
    const live = this.writing(record);
    live.thinking.hidden = false; live.thinking.lastChild.append(record.text); this.hooks.activity('thinking');
  }
  on_partial(record) {
    this.drop(record);
    const live = this.writing(record);
    if (record.html) live.blocks.append(make('div', { html: record.html }));
    live.rest.textContent = record.rest; live.thinking.hidden = !record.think;
    live.thinking.lastChild.textContent = record.think;
  }
  on_writing(record) { this.hooks.activity(`writing a call: ${record.verb}`); }
  on_request(record) {
    this.drop(record); this.hooks.activity(`waiting for ${record.model}`);
    if (record.routed) this.on_note({ ...record, level: 'info', text: record.routed });
  }
  on_retry(record) { this.drop(record); this.hooks.activity(record.text); }
  on_said(record) {
    this.drop(record);
    if (!record.parts.length && !record.cut) return;
    const element = make('article', { class: 'answer' }, make('h3', { class: 'sr', text: 'Answer' }));
    for (const part of record.parts) {
      if (part.think) element.append(make('details', { class: 'think' }, make('summary', { text: 'Thinking' }), make('div', { class: 'markdown', html: part.think })));
      else element.append(make('div', { class: 'markdown', html: part.html }));
    }
    const source = record.parts.map(part => part.source).filter(Boolean).join('\n\n');
    if (source) {
      const button = make('button', { type: 'button', class: 'copy whole', 'data-copy': true, text: 'Copy' });
      button.ybsText = source; element.append(button);
    }
    if (record.cut) element.append(make('p', { class: 'note warning', text: `Cut: ${record.cut}` }));
    this.put(this.place(record), element, record);
  }
  call(record) {
    const key = `${record.a || ''} ${record.id}`;
    if (!this.calls.has(key)) {
      const summary = make('summary', {}, make('span', { class: 'sign', 'aria-hidden': 'true' }), make('span', { class: 'sr state' }),
        make('b', { class: 'verb' }), make('span', { class: 'about' }), make('span', { class: 'result' }), make('span', { class: 'took' }));
      const element = make('details', { class: 'call running' }, summary, make('div', { class: 'args' }), make('div', { class: 'output' }), make('div', { class: 'inside' }));
      element.dataset.call = record.id; this.put(this.place(record), element, record); this.calls.set(key, element);
    }
    return this.calls.get(key);
  }
  fill(element, name, text) { element.querySelector(name).textContent = text || ''; }
  on_tool(record) {
    const element = this.call(record);
    this.fill(element, '.verb', record.verb); this.fill(element, '.about', record.about);
    element.querySelector('.args').replaceChildren(...(record.args ? [make('div', { html: record.args })] : []));
    if (element.classList.contains('running')) { this.fill(element, '.state', 'running: '); this.hooks.activity(`${record.verb} ${record.about}`); }
  }
  on_out(record) {
    const output = this.call(record).querySelector('.output');
    if (!output.firstChild) output.append(make('pre', { class: 'out', tabindex: 0 }));
    output.firstChild.append(record.text);
    if (output.firstChild.textContent.length > 60000) output.firstChild.textContent = output.firstChild.textContent.slice(-30000);
  }
  on_outs(record) { this.call(record).querySelector('.output').replaceChildren(make('pre', { class: 'out', tabindex: 0, text: record.text })); }
  on_done(record) {
    const element = this.call(record);
    if (record.n && !element.dataset.n) element.dataset.n = record.n;
    element.classList.remove('running', 'asks');
    element.classList.add(record.refused ? 'refused' : record.ok ? 'ok' : 'failed');
    this.fill(element, '.state', record.refused ? 'refused: ' : record.ok ? 'done: ' : 'failed: ');
    this.fill(element, '.verb', record.verb);
    const about = element.querySelector('.about').textContent;
    const said = about && record.said.includes(about) ? record.said.slice(record.said.indexOf(about) + about.length).replace(/^[:\s]+/, '') : record.said;
    this.fill(element, '.result', record.diff ? `+${record.added} −${record.removed}` : said);
    this.fill(element, '.took', record.took);
    const parts = [record.diff ? make('div', { html: record.diff }) : null, record.html ? make('div', { html: record.html }) : null,
      record.advice ? make('p', { class: 'plain', text: record.advice }) : null, this.pictures(record)];
    element.querySelector('.output').replaceChildren(...parts.filter(Boolean));
    if (record.diff) element.querySelector('.args pre')?.remove();
    if (record.diff && !record.refused) element.open = true;
  }
  on_asked(record) { this.call(record).classList.add('asks'); }
  on_answered(record) {
    const element = this.call(record);
    element.classList.remove('asks');
    element.querySelector('.args').append(make('p', { class: 'dim', text: record.text }));
  }
  on_note(record) { this.put(this.place(record), make('p', { class: `note ${record.level}`, text: record.text }), record); }
  on_files(record) {
    const commit = record.commit ? `, committed as ${record.commit}` : '';
    this.on_note({ ...record, level: 'info', text: `Changed: ${record.paths.join(', ')}${commit}` });
  }
  on_end(record) {
    this.drop(record);
    if (!record.a) this.hooks.activity('');
    const place = this.place(record);
    if (record.reason !== 'done') {
      this.put(place, make('p', { class: `note ${record.reason === 'error' ? 'error' : 'warning'}`, text: record.text || record.reason }), record);
    }
    this.put(place, make('p', { class: 'end', text: record.used }), record);
  }
  on_over(record) { this.put(this.target, make('p', { class: 'note info', text: 'A new conversation begins here.' }), record); }
  cut(to) {
    for (const element of [...this.target.children]) {
      if (Number(element.dataset.n || 0) <= to) continue;
      for (const known of [this.calls, this.branches]) { for (const [key, each] of known) if (element.contains(each)) known.delete(key); }
      element.remove();
    }
  }
  on_cut(record) {
    this.cut(record.to); this.floor = Math.min(this.floor, record.to);
    for (const each of record.records || []) this.draw(each);
  }
}
