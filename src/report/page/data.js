// What of the analysis is chosen, and how results are found.
const analysis = data;

// In the order of legends and tables. The symbol tells a line apart where its colour does not.
const METHODS = new Map([
    ['threshold', { symbol: 'circle', note: "the paper's Definition 1: each layer chooses for itself" }],
    ['leader', { symbol: 'rect', note: 'compares with earlier representatives only' }],
    ['inherit', { symbol: 'triangle', note: "the paper's Algorithm 1 as printed" }],
    ['causal', { symbol: 'diamond', note: 'Algorithm 1, corrected to look back only' }],
    ['linked', { symbol: 'roundRect', note: 'tests the link of the layer below first' }],
    ['adaptive', { symbol: 'down', note: 'the threshold follows the turnover' }],
    ['unvalidated', { symbol: 'none', dash: [7, 4], note: 'control: inherited without validation' }],
    ['random', { symbol: 'none', dash: [2, 3], note: 'control: a random set of equal size' }],
]);
const SOURCES = new Map([
    ['residual', 'residual stream'], ['normalised', 'normalised residual'],
    ['key', 'keys (before rotation)'], ['value', 'values'],
]);

const known = [...METHODS.keys()];
const rank = (method) => (METHODS.has(method) ? known.indexOf(method) : known.length);
const results = list(analysis.results).filter((result) => result && result.method !== undefined)
    .sort((a, b) => rank(a.method) - rank(b.method));

const ascending = (a, b) => (typeof a === 'number' && typeof b === 'number' ? a - b : 0);
const distinct = (field, of = results) =>
    [...new Set(of.map((each) => each[field]).filter((value) => value !== null && value !== undefined))].sort(ascending);

const choice = {
    tokens: distinct('tokens')[0],
    source: distinct('source')[0],
    tau: distinct('tau')[0],
};

const matches = (each, fields) => each && fields.every((field) => each[field] === choice[field]);
const chosen = (...fields) =>
    results.filter((result) => matches(result, fields.length ? fields : ['tokens', 'source', 'tau']));
const layersOf = (result) => list(result.layers).filter((row) => row && number(row.layer) !== null);
