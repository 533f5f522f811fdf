'use strict';
// The page: manifests in, tables out. All text goes into the page as text, never as HTML.

const $ = (id) => document.getElementById(id);
const EXAMPLES = JSON.parse($('examples').textContent);
const engine = loaded();
/** The last outcome that is shown, and the one to compare with. */
let shown = null;
let pinned = null;
let turn = 0;

function element(name, text = '', attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function table(header, rows) {
  const made = element('table');
  const head = element('tr');
  head.append(...header.map((name) => element('th', name, { scope: 'col' })));
  const body = element('tbody');
  for (const row of rows) {
    const line = element('tr');
    row.forEach((cell, index) => {
      const box = index === 0 ? element('th', '', { scope: 'row' }) : element('td');
      box.append(cell instanceof Node ? cell : String(cell ?? '-'));
      line.append(box);
    });
    body.append(line);
  }
  const top = element('thead');
  top.append(head);
  made.append(top, body);
  return made;
}

const key = (workload) => `${workload.namespace}/${workload.name}`;
const flavors = (podSets) => podSets.map((podSet) => [podSet.name, ...Object.entries(podSet.flavors)
  .map(([resource, flavor]) => `${resource} ${podSet.resourceUsage[resource] ?? ''} in ${flavor}`)].join(': ')).join('; ');

async function ask() {
  const objects = objectsOf($('manifests').value);
  const rest = { now: $('now').value.trim() || null, explain: $('explain').value || null };
  const question = `{"objects":[${objects.join(',')}],${JSON.stringify(rest).slice(1)}`;
  return JSON.parse(await answered(await engine, question));
}

/** Decides and shows; `says` is announced. Returns whether it succeeded. */
async function decide() {
  turn += 1;
  const mine = turn;
  let answer;
  try {
    answer = await ask();
  } catch (error) {
    answer = { errors: [error.message] };
  }
  // An older question may be answered later.
  if (mine !== turn) return false;
  $('errors').replaceChildren(...(answer.errors ?? []).map((text) => element('li', text)));
  $('problems').hidden = !answer.errors;
  $('manifests').setAttribute('aria-invalid', String(Boolean(answer.errors)));
  $('outcome').hidden = Boolean(answer.errors);
  $('pin').disabled = $('download').disabled = Boolean(answer.errors);
  $('notes').replaceChildren(...(answer.notes ?? []).map((text) => element('li', text)));
  if (answer.errors) {
    shown = null;
    $('says').textContent = `${answer.errors.length === 1 ? 'One problem' : `${answer.errors.length} problems`}; nothing was decided.`;
    return false;
  }
  shown = { answer, run: JSON.parse(answer.run) };
  show();
  return true;
}

function show() {
  const { run, answer } = shown;
  const counts = Object.entries(run.counts).map(([status, n]) => `${n} ${status}`).join(', ');
  const endings = { Repeating: '; workloads preempt each other in a loop', CycleLimit: '; still changing when it was stopped' };
  $('says').textContent = `At ${run.now}, after ${run.cycles} ${run.cycles === 1 ? 'cycle' : 'cycles'}: ${counts || 'no workloads'}${endings[run.ending] ?? ''}.`;
  const rows = run.workloads.map((workload) => [
    explainButton(workload), workload.clusterQueue, workload.priority,
    element('span', workload.status, { class: `stage stage-${workload.status}` }),
    flavors(workload.podSets), workload.message,
  ]);
  $('workloads').replaceChildren(table(['Workload', 'ClusterQueue', 'Priority', 'Status', 'Gets', 'Message'], rows));
  const chosen = $('explain').value;
  $('explain').replaceChildren(element('option', 'choose one', { value: '' }),
    ...run.workloads.map((workload) => element('option', key(workload), { value: key(workload) })));
  $('explain').value = run.workloads.some((workload) => key(workload) === chosen) ? chosen : '';
  $('cycles').replaceChildren(...answer.cycles.map(cycle));
  $('quota').replaceChildren(table(['Of', 'Flavor', 'Resource', 'Nominal', 'Used', 'Borrowed', 'Available'],
    run.quota.map((row) => [`${row.kind} ${row.name}`, row.flavor, row.resource, row.nominal ?? 'unlimited', row.usage,
      row.borrowed, row.available ?? 'unlimited'])));
  showChanges();
  showExplanation(answer.explain && JSON.parse(answer.explain));
  $('outcome').hidden = false;
}

function explainButton(workload) {
  const button = element('button', key(workload), { type: 'button' });
  button.setAttribute('aria-label', `Explain ${key(workload)}`);
  button.addEventListener('click', () => {
    $('explain').value = key(workload);
    decide().then(() => $('explain').focus());
  });
  return button;
}

function cycle(decision) {
  const said = [
    ...decision.admissions.map((it) => `${it.workload} gets quota in ${it.clusterQueue}: ${flavors(it.podSets)}`),
    ...decision.placed.map((it) => `${it.workload} is placed anew`),
    ...decision.preemptions.map((it) => `${key(it)} is preempted by ${it.preemptor}: ${it.reason}`),
    ...decision.pending.map((it) => `${it.workload} waits in ${it.clusterQueue}${it.message ? `: ${it.message}` : ''}`),
  ];
  const item = element('li');
  const list = element('ul');
  list.append(...(said.length ? said : ['nothing changes']).map((text) => element('li', text)));
  item.append(list);
  return item;
}

function showChanges() {
  $('changes').hidden = pinned === null;
  if (pinned === null) return;
  const fate = (workload) => workload && [workload.status, flavors(workload.podSets), workload.message].filter(Boolean).join(': ');
  const [before, after] = [pinned, shown].map(({ run }) => new Map(run.workloads.map((it) => [key(it), fate(it)])));
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  const rows = names.filter((name) => before.get(name) !== after.get(name))
    .map((name) => [name, before.get(name) ?? 'not there', after.get(name) ?? 'not there']);
  const box = $('changes').querySelector('div');
  box.replaceChildren(rows.length ? table(['Workload', 'Pinned', 'Now'], rows) : element('p', 'None: every workload fares as before.'));
}

function showExplanation(found) {
  const box = $('explanation');
  box.replaceChildren();
  if (!found) return;
  const { workload } = found;
  box.append(element('p', `${key(workload)} is ${workload.status}${workload.message ? `: ${workload.message}` : ''}`));
  const would = { Waits: 'as the head of a cycle it would still wait' }[found.would] ?? `if it asked again now: ${found.would}`;
  box.append(element('p', `${would}${found.message ? `: ${found.message}` : ''}`));
  const trials = found.podSets.flatMap((podSet) => [
    ...podSet.flavors.map((trial) => [podSet.index, trial.flavor, `${trial.mode}${trial.isChosen ? ', chosen' : ''}`, trial.reasons.join('; ')]),
    ...podSet.notTried.map((flavor) => [podSet.index, flavor, 'not tried', '']),
  ]);
  add(box, 'Flavors', ['Pod set', 'Flavor', 'Result', 'Why'], trials);
  const levels = found.podSets.flatMap((podSet) => podSet.flavors.flatMap((trial) => trial.asked
    .filter((asked) => asked.verdict === 'Contested')
    .flatMap((asked) => asked.levels.map((level) => [`${level.kind} ${level.name}`, trial.flavor, asked.resource,
      level.subtreeQuota ?? 'unlimited', level.usage, level.needed, level.available ?? 'unlimited', level.missing]))));
  add(box, 'Levels', ['Level', 'Flavor', 'Resource', 'Total', 'Used', 'Needed', 'Available', 'Missing'], levels);
  const holders = found.searches.flatMap((search) => search.holders.map((holder) => [key(holder), holder.clusterQueue,
    holder.priority, holder.uses.map((use) => `${use.amount} ${use.resource} in ${use.flavor}`).join(', '), holder.verdict]));
  add(box, 'Who uses it', ['Workload', 'ClusterQueue', 'Priority', 'Uses', 'Verdict'], holders);
}

function add(box, title, header, rows) {
  if (!rows.length) return;
  const id = `explain-${title.replaceAll(' ', '-')}`;
  const scroll = element('div', '', { class: 'scroll', role: 'region', 'aria-labelledby': id, tabindex: '0' });
  scroll.append(table(header, rows));
  box.append(element('h3', title, { id }), scroll);
}

/** The state as the fragment of a link: compressed, in the alphabet of URLs. */
async function fragment() {
  const state = JSON.stringify({ manifests: $('manifests').value, now: $('now').value, explain: $('explain').value });
  const packed = new Response(new Blob([state]).stream().pipeThrough(new CompressionStream('deflate-raw')));
  let binary = '';
  new Uint8Array(await packed.arrayBuffer()).forEach((byte) => { binary += String.fromCharCode(byte); });
  return `#1.${btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')}`;
}

/** Takes the state from the address; returns whether it had one. */
async function restore() {
  const [version, packed] = location.hash.slice(1).split('.');
  if (version !== '1' || !packed) return false;
  try {
    const data = Uint8Array.from(atob(packed.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
    const text = new Response(new Blob([data]).stream().pipeThrough(new DecompressionStream('deflate-raw')));
    const state = JSON.parse(await text.text());
    $('manifests').value = String(state.manifests ?? '');
    $('now').value = String(state.now ?? '');
    const explained = String(state.explain ?? '');
    $('explain').replaceChildren(element('option', explained, { value: explained }));
  } catch {
    $('says').textContent = 'This link is cut off or damaged: copy it again.';
    return true;
  }
  await decide();
  return true;
}

async function copyLink() {
  const hash = await fragment();
  history.replaceState(null, '', hash);
  try {
    await navigator.clipboard.writeText(location.href);
    $('says').textContent = 'The link is copied; it is in the address bar, too. It holds the manifests: share it as you would share them.';
  } catch {
    $('says').textContent = 'The link is in the address bar. It holds the manifests: share it as you would share them.';
  }
}

function download() {
  const link = element('a', '', { href: URL.createObjectURL(new Blob([shown.answer.run], { type: 'application/json' })), download: 'run.json' });
  link.click();
  URL.revokeObjectURL(link.href);
}

$('example').append(...Object.keys(EXAMPLES).map((name) => element('option', name, { value: name })));
$('example').addEventListener('change', () => {
  const text = EXAMPLES[$('example').value];
  if (text === undefined) return;
  $('manifests').value = text;
  $('now').value = $('explain').value = '';
  decide();
});
$('decide-form').addEventListener('submit', (event) => {
  event.preventDefault();
  decide();
});
$('manifests').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) decide();
});
$('manifests').addEventListener('paste', (event) => {
  // Browsers take minutes to insert thousands of lines one by one.
  const text = event.clipboardData.getData('text/plain');
  if (text.length < 20000) return;
  event.preventDefault();
  const box = $('manifests');
  box.setRangeText(text, box.selectionStart, box.selectionEnd, 'end');
});
$('explain').addEventListener('change', decide);
$('pin').addEventListener('click', () => {
  pinned = shown;
  $('unpin').hidden = false;
  showChanges();
  $('says').textContent = 'Pinned. Edit the manifests, a quota for example, and decide again: the page lists what changes.';
});
$('unpin').addEventListener('click', () => {
  pinned = null;
  $('unpin').hidden = true;
  showChanges();
  $('pin').focus();
});
$('link').addEventListener('click', copyLink);
$('download').addEventListener('click', download);
addEventListener('hashchange', restore);
restore();
