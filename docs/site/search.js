// Becomes a part of language_data.js, between Sphinx's searchtools.js and the index: pages before rules, and typos.
//
// Results are ranked by where they are, and by whether the title begins with what is asked: titles of pages about a
// command begin with it. A word that no page has is replaced by the nearest that some page has, and a line says so.

// The first that matches the name of a page; a page to read counts whole.
const WEIGHTS = [
  [/^docs\/rules\//, 0.25],
  [/^(CHANGELOG|CONTRIBUTING|ARCHITECTURE)$/, 0.3],
  [/^docs\/(api|sources|fidelity|performance|forecast|upgrade-worlds|anomalies.*)$/, 0.5],
  [/^examples\//, 0.6],
];
const TITLE_BEGINS = 30;
// Shorter words have too many neighbours; in longer ones two letters may be wrong.
const LENGTHS = [Infinity, 4, 8];

let asked = "";

Scorer.score = ([docname, title, anchor, , score]) => {
  const [, weight] = WEIGHTS.find(([pages]) => pages.test(docname)) ?? [null, 1];
  const begins = asked !== "" && anchor === "" && `${title.toLowerCase()} `.match(/^[^\w]*(\S*?)[:,.?]? /)?.[1] === asked;
  return (score + (begins ? TITLE_BEGINS : 0)) * weight;
};

/** How many letters are wrong, missing, too many or swapped between two words. */
function distance(a, b) {
  const rows = [Array.from({ length: b.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= a.length; i++) {
    rows.push([i]);
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.length][b.length];
}

/** The word of the index that is meant: itself, if any page has it or a longer word with it, or the nearest. */
function meant(word, index) {
  const known = [...Object.keys(index.titleterms), ...Object.keys(index.terms)];
  if (known.some((term) => term.includes(word))) return word;
  const allowed = LENGTHS.findLastIndex((length) => word.length >= length || length === Infinity);
  const pages = (term) => [index.terms[term] ?? []].flat().length + 100 * [index.titleterms[term] ?? []].flat().length;
  let best = { word, off: Math.max(allowed, 0) + 1, pages: 0 };
  for (const term of new Set(known)) {
    if (Math.abs(term.length - word.length) >= best.off + 1) continue;
    const found = { word: term, off: distance(word, term), pages: pages(term) };
    if (found.off < best.off || (found.off === best.off && best.pages > 0 && found.pages > best.pages)) best = found;
  }
  return best.word;
}

const parseQuery = Search._parseQuery;
Search._parseQuery = (query) => {
  const [whole, terms, ...others] = parseQuery(query);
  asked = query.trim().toLowerCase().replace(/^kueuecore /, "");
  const corrected = new Set();
  for (const word of terms) {
    const instead = meant(word, Search._index);
    corrected.add(instead);
    if (instead === word) continue;
    asked = asked.replace(word, instead);
    const note = document.createElement("p");
    note.textContent = `No page has “${word}”; these have “${instead}”.`;
    Search.output.before(note);
  }
  return [whole, corrected, ...others];
};
