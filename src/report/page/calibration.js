// Plots of a calibration, and its page put together.
const KIND_PLOTS = [
    { id: 'held_out_median', axis: 'median |r| / |x|', how: format.ratio },
    { id: 'held_out_passing', axis: 'tokens (%)', how: format.percent, percent: true },
    { id: 'inherited_energy', axis: 'energy (%)', how: format.percent, percent: true },
    { id: 'updates_saved', axis: 'updates (%)', how: format.percent, percent: true },
];
const COLUMNS = [
    { field: 'width', title: 'Width', how: format.count },
    { field: 'k', title: 'Directions', how: format.count },
    { field: 'energy', title: 'Energy', how: format.percent },
    { field: 'held_out_median', title: 'Median |r| / |x|', how: format.ratio },
    { field: 'held_out_passing', title: 'Gate passes', how: format.percent },
    { field: 'inherited_energy', title: 'In the basis before', how: format.percent },
    { field: 'updates_saved', title: 'Updates saved', how: format.percent },
];

const shareAxis = (name) => yAxis(name, { min: 0, max: 1, axisLabel: { formatter: (value) => format.tick(100 * value) } });
const layerX = () => xAxis('layer', { min: 'dataMin', max: 'dataMax', minInterval: 1 });
const curveOf = (input) => list(input.curve).filter((point) => number(point?.[0]) > 0 && number(point?.[1]) !== null);

function kindLines(field) {
    return kinds.map((kind, index) => plainLine(kind, index,
        ofKind(kind).map((input) => ({ x: input.layer, y: number(input[field]), interval: null }))));
}

function setUpKindPlots() {
    const plots = KIND_PLOTS.map((plot) => ({ ...plot, figure: new Figure(plot.id) }));
    return () => plots.forEach(({ id, axis: name, how, percent, figure }) => drawLines(figure, kindLines(id), {
        x: layerX(), y: percent ? shareAxis(name) : yAxis(name, { min: 0 }), heading: (layer) => `layer ${layer}`, how,
    }));
}

// A few depths of a model tell as much as all of them.
function someDepths(of) {
    const at = [0, 1 / 4, 1 / 2, 3 / 4, 1].map((part) => Math.round(part * (of.length - 1)));
    return [...new Set(at)].map((i) => of[i]);
}

function drawEnergy(figure) {
    const lines = someDepths(ofKind(choice.kind)).filter(Boolean).map((input, index) => plainLine(`layer ${input.layer}`, index,
        curveOf(input).map(([k, energy]) => ({ x: k, y: energy, interval: null }))));
    drawLines(figure, lines, { x: xAxis('directions k', { type: 'log', logBase: 2, min: 'dataMin', max: 'dataMax' }),
        y: shareAxis('energy (%)'), heading: (k) => `k = ${k}`, how: format.percent });
}

function drawDepth(figure) {
    const of = ofKind(choice.kind);
    const counts = [...new Set(of.flatMap((input) => curveOf(input).map(([k]) => k)))].sort((a, b) => a - b);
    const lines = counts.map((k, index) => plainLine(`k = ${k}`, index, of.map((input) => ({ x: input.layer,
        y: curveOf(input).find((point) => point[0] === k)?.[1] ?? null, interval: null }))));
    drawLines(figure, lines, { x: layerX(), y: shareAxis('energy (%)'), heading: (layer) => `layer ${layer}`,
        how: format.percent });
}

function setUpEnergy() {
    const [energy, depth] = [new Figure('energy'), new Figure('depth')];
    return () => {
        drawEnergy(energy);
        drawDepth(depth);
    };
}

function setUpSummary() {
    const figure = document.getElementById('summary');
    const place = tablePlace(figure, 'Means over the layers');
    return () => {
        const rows = list(data.kinds).filter((kind) => kind && kind.kind !== undefined);
        const columns = COLUMNS.filter(({ field }) => rows.some((row) => number(row[field]) !== null));
        figure.hidden = !columns.length;
        const body = element('tbody');
        rows.forEach((row) => body.append(figureRow(
            lineHeading(plainLine(text(row.kind), Math.max(0, kinds.indexOf(text(row.kind))), [])), row, columns)));
        place.replaceChildren(tableOf('Input', columns.map(({ title }) => title), body));
    };
}

function setUpTiles() {
    const seconds = data.seconds ?? {};
    const shown = [['prefill', 'reading the text'], ['moments', 'second moments'], ['eigenproblems', 'eigenproblems'],
        ['images', 'images of the weights']].filter(([field]) => number(seconds[field]) !== null)
        .map(([field, words]) => tile(format.seconds(seconds[field]), words, []));
    const ratio = number(data.ratio_to_bare_prefill);
    document.getElementById('figures').replaceChildren(...shown,
        ...(ratio === null ? [] : [tile(format.factor(ratio), "the bare engine's prefill", ['without eigenproblems'])]));
}

showHeader("directions of linear layers' inputs", [
    text(data.architecture), text(data.weights), data.text ? `text ${text(data.text)}` : '', counted(data.tokens, 'tokens'),
    data.images ? `images in ${text(data.images)}` : '', text(data.machine), text(data.date),
], 'cascade calibrate');
document.getElementById('command').textContent = text(data.command);
setUpTiles();
drawers.push(() => { document.getElementById('nothing').hidden = inputs.length > 0; },
    setUpEnergy(), setUpSummary(), setUpKindPlots());
setUpPickers([{ label: 'Input', name: text, selected: choice.kind, values: kinds, onPick: (kind) => { choice.kind = kind; } }]);
start();
