// Ways to read less of linear layers' weights, by what they cost in quality.
const points = list(data.points).filter((point) => point && number(point.bytes_share) !== null && number(point.kl) !== null);
const families = [...new Set(points.map((point) => text(point.family)))];
const ofFamily = (family) => points.filter((point) => text(point.family) === family)
    .sort((a, b) => a.bytes_share - b.bytes_share);
const inputKinds = [...new Set(points.flatMap((point) => Object.keys(point.inputs ?? {})))];

const TABLE = [
    { field: 'bytes_share', title: 'Bytes read', how: format.percent },
    { field: 'passed', title: 'Tokens pass', how: format.percent },
    { field: 'rough', title: 'Rough', how: format.percent },
    { field: 'kl', title: 'KL', how: format.kl },
    { field: 'top1', title: 'Top-1 kept', how: format.percent },
    { field: 'ppl_ratio', title: 'PPL ratio', how: (value) => fixed(value, 4) },
];
const LEAST_KL = 1e-6; // a logarithm has no zero

const familyLine = (family, linePoints = []) => plainLine(family, families.indexOf(family), linePoints, { method: family });

function setUpFrontier() {
    const figure = new Figure('frontier');
    return () => drawLines(figure, families.map((family) => familyLine(family, ofFamily(family).map((point) => ({
        x: point.bytes_share, y: Math.max(point.kl, LEAST_KL), interval: null, more: point.name,
    })))), {
        x: xAxis("bytes read of the weights' (%)", { min: 0, axisLabel: { formatter: (value) => format.tick(100 * value) } }),
        y: yAxis('KL divergence', { type: 'log', axisLabel: { formatter: (value) => format.kl(value) } }),
        heading: (share) => format.percent(share), how: format.kl,
    });
}

function setUpTable() {
    const figure = document.getElementById('table');
    const place = tablePlace(figure, 'All settings');
    return () => {
        const columns = TABLE.filter(({ field }) => points.some((point) => number(point[field]) !== null));
        const rows = families.flatMap(ofFamily);
        figure.hidden = !rows.length;
        place.replaceChildren(tableOf('Setting', columns.map(({ title }) => title), element('tbody', {},
            ...rows.map((point) => figureRow(lineHeading({ ...familyLine(text(point.family)), name: text(point.name) }),
                point, columns)))));
    };
}

function setUpKinds() {
    const figure = document.getElementById('kinds');
    const place = tablePlace(figure, 'Tokens that skip the weights');
    return () => {
        const rows = families.flatMap(ofFamily).filter((point) => Object.keys(point.inputs ?? {}).length);
        figure.hidden = !rows.length;
        const columns = inputKinds.map((kind) => ({ field: kind, title: kind, how: format.percent }));
        place.replaceChildren(tableOf('Setting', inputKinds, element('tbody', {}, ...rows.map((point) =>
            figureRow(lineHeading({ ...familyLine(text(point.family)), name: text(point.name) }),
                Object.fromEntries(inputKinds.map((kind) => [kind, point.inputs[kind]?.passed])), columns)))));
    };
}

function setUpTiles() {
    const good = points.filter((point) => point.kl <= 0.01 && point.bytes_share < 1).sort((a, b) => a.bytes_share - b.bytes_share);
    const tiles = [tile(format.count(points.length), 'settings measured', [counted(data.tokens, 'tokens each')])];
    if (good.length) {
        tiles.push(tile(format.percent(good[0].bytes_share), 'fewest bytes at KL \u2264 0.01', [text(good[0].name)]));
    }
    document.getElementById('figures').replaceChildren(...tiles);
}

showHeader('quality for bytes of linear layers', [
    text(data.weights), data.text ? `text ${text(data.text)}` : '', counted(data.tokens, 'tokens'), text(data.machine),
    text(data.date),
], 'scripts/frontier');
document.getElementById('command').textContent = text(data.command);
setUpTiles();
drawers.push(() => { document.getElementById('nothing').hidden = points.length > 0; },
    setUpFrontier(), setUpTable(), setUpKinds());
start();
