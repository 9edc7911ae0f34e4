// Plots over the layers: representatives, turnover, overlaps, copy error.
const changes = (row) => {
    const [adds, removes] = [number(row.adds), number(row.removes)];
    return adds === null || removes === null ? '' : `+${format.count(adds)} −${format.count(removes)}`;
};
const named = (name, value, how) => (number(value) === null ? '' : `${name} ${how(value)}`);
const joined = (...parts) => parts.filter(Boolean).join(', ');

const LAYER_PLOTS = [
    { id: 'r', axis: 'r (tokens)', how: format.count, fromZero: true, share: true,
        more: (row, result) => joined(named('', row.r_share, format.percent).trim(),
            result.method === 'adaptive' && named('τ', row.tau, format.ratio)) },
    { id: 'turnover', axis: 'turnover (%)', how: format.percent, percent: true, fromZero: true, more: changes },
    { id: 'jaccard_previous', axis: 'Jaccard index', how: format.ratio, more: changes, unit: true },
    { id: 'jaccard_independent', axis: 'Jaccard index', how: format.ratio, unit: true,
        more: (row) => joined(named('missed', row.missed, format.count), named('r', row.growth, format.factor)) },
    { id: 'copy_error', axis: 'copy error', how: format.ratio, fromZero: true,
        more: (row) => named('uncovered', row.uncovered, format.count) },
];

function layerPoints(rows, plot, result) {
    const points = [];
    for (const row of rows) {
        points.push({ x: row.layer, y: number(row[plot.id]), interval: intervalOf(row, plot.id),
            more: plot.more(row, result) });
    }
    return points;
}

function layerLines(plot) {
    const lines = [];
    for (const result of chosen()) {
        lines.push(methodLine(result.method, layerPoints(layersOf(result), plot, result)));
        if (result.paper) {
            const name = `${text(result.method)}, ${text(result.paper.model) || 'paper'}`;
            lines.push(methodLine(result.method, layerPoints(layersOf(result.paper), plot, {}),
                { name, reference: true, hollow: true, dash: [1, 3] }));
        }
    }
    return lines;
}

const highestOf = (lines) => Math.max(0, ...lines.filter((line) => !hidden.has(line.method))
    .flatMap((line) => line.points.map((point) => Math.max(point.y ?? 0, point.interval?.[1] ?? 0))));

function layerAxes(plot, lines) {
    const labels = plot.percent ? { axisLabel: { formatter: (value) => format.tick(100 * value) } } : {};
    if (!plot.share) {
        return [yAxis(plot.axis, { ...labels, scale: !plot.fromZero, max: plot.unit ? 1 : undefined })];
    }
    const tokens = number(choice.tokens);
    const { step, top } = roundScale(highestOf(lines));
    const left = yAxis(plot.axis, { min: 0, max: top, interval: step });
    const share = tokens ? roundScale(top / tokens) : null;
    const right = share && yAxis('r / T (%)', { position: 'right', min: 0, max: top / tokens, interval: share.step,
        splitLine: { show: false },
        axisLabel: { formatter: (value) => format.tick(100 * value), showMaxLabel: share.top - top / tokens < 1e-9 } });
    return right ? [left, right] : [left];
}

function setUpLayerPlots() {
    const figures = LAYER_PLOTS.map((plot) => new Figure(plot.id));
    return () => LAYER_PLOTS.forEach((plot, i) => {
        const lines = layerLines(plot);
        const layers = lines.flatMap((line) => line.points.map((point) => point.x));
        const count = Math.max(number(analysis.n_layer) ?? 0, ...layers.map((layer) => layer + 1));
        drawLines(figures[i], lines, {
            x: xAxis('layer', { type: 'category', boundaryGap: false, data: Array.from({ length: count }, (_, l) => l) }),
            y: layerAxes(plot, lines),
            heading: (layer) => `Layer ${layer}`,
            how: plot.how,
        });
    });
}
