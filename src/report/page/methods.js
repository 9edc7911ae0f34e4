// The methods of an evaluation and their families: the same rule with several budgets is one line.
// The symbol, full or hollow, tells a family apart where its colour does not.
const METHODS = new Map([
    ['joint', { symbol: 'circle', note: 'opens tokens by compressed keys; a cover speaks for the rest' }],
    ['refine', { symbol: 'diamond', note: 'a cover of the keys, its heaviest clusters opened' }],
    ['oracle', { symbol: 'circle', hollow: true, note: 'a bound, not a method: reads all keys to choose' }],
    ['sampled', { symbol: 'rect', note: 'blocks chosen by a few of the queries' }],
    ['snapkv', { symbol: 'triangle', note: 'what earlier queries attended to' }],
    ['blocks', { symbol: 'down', note: 'blocks by the mean of their keys' }],
    ['quest', { symbol: 'rect', hollow: true, note: "blocks by their keys' largest and smallest coordinates" }],
    ['streaming', { symbol: 'triangle', hollow: true, note: 'the first tokens and the recent ones' }],
    ['proportional', { symbol: 'diamond', hollow: true, note: 'clusters read by their size' }],
    ['random', { symbol: 'down', hollow: true, note: 'control: tokens at random' }],
]);
const DASHES = [undefined, [6, 3], [2, 3], [9, 3, 2, 3]]; // variants of a family

const methods = list(data.methods).filter((method) => method && typeof method === 'object' && method.name !== undefined)
    .sort((a, b) => (number(a.kl) ?? Infinity) - (number(b.kl) ?? Infinity) || 0);
const isNoise = (method) => method.name === (data.noise?.name ?? 'fa-off');
const rivals = methods.filter((method) => !isNoise(method));

// "joint:0.1,bits=3" is of the rule "joint" and of the family "joint bits=3": its budget is left out.
const isBudget = (option) => /^\s*((budget|epsilon)=)?[\d.e-]+\s*%?\s*$/.test(option);
const partsOf = (method) => text(method.name).split(/[:,;]/);
const ruleOf = (method) => partsOf(method)[0].trim();
const familyOf = (method) => [ruleOf(method), ...partsOf(method).slice(1).filter((option) => !isBudget(option))].join(' ');

const families = [...new Set(rivals.map(familyOf))];
const variantOf = (family, rule) => families.filter((each) => each.split(' ')[0] === rule).indexOf(family);

function familyLine(method, points, more = {}) {
    const [rule, family] = [ruleOf(method), familyOf(method)];
    return methodLine(rule, points, { name: family, method: family, hollow: METHODS.get(rule)?.hollow,
        dash: DASHES[Math.max(0, variantOf(family, rule)) % DASHES.length], ...more });
}

const choice = { by: rivals.some((method) => number(method.share) !== null) ? 'share' : 'bytes_share' };
const BY = new Map([['share', 'tokens read'], ['bytes_share', 'bytes read']]);
const onFrontier = (method) => method[choice.by === 'share' ? 'frontier' : 'frontier_bytes'] === true;

