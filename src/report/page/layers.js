// Plots over the layers: representatives, turnover, overlaps, copy error.
const changes = (row) => {
    const [adds, removes] = [number(row.adds), number(row.removes)];
    return adds === null || removes === null ? '' : `+${format.count(adds)} −${format.count(removes)}`;
};
const named = (name, value, how) => (number(value) === null ? '' : `${name} ${how(value)}`);
const joined = (...parts) => parts.filter(Boolean).join(', ');

const LAYER_PLOTS = [
    { id: 'r', axis: 'r (tokens)', how: format.count, share: true,
        more: (row, result) => joined(named('', row.r_share, format.percent).trim(),
            result.method === 'adaptive' && named('τ', row.tau, format.ratio)) },
    { id: 'turnover', axis: 'turnover (%)', how: format.percent, percent: true, more: changes },
    { id: 'jaccard_previous', axis: 'Jaccard index', how: format.ratio, more: changes, unit: true },
    { id: 'jaccard_independent', axis: 'Jaccard index', how: format.ratio, unit: true,
        more: (row) => joined(named('missed', row.missed, format.count), named('r', row.growth, format.factor)) },
    { id: 'copy_error', axis: 'copy error', how: format.ratio,
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

// All that an axis must hold: the points and their intervals, which the axis does not see by itself.
const extentOf = (lines) => lines.filter((line) => !hidden.has(line.method)).flatMap((line) => line.points)
    .filter((point) => point.y !== null).flatMap((point) => [point.y, ...(point.interval ?? [])]);

function layerAxes(plot, lines) {
    const labels = plot.percent ? { axisLabel: { formatter: (value) => format.tick(100 * value) } } : {};
    const extent = extentOf(lines);
    if (plot.unit) {
        const bottom = Math.floor(10 * Math.min(1, ...extent)) / 10;
        return [yAxis(plot.axis, { min: Math.min(0.9, Math.max(0, bottom)), max: 1 })];
    }
    const { step, top } = roundScale(Math.max(0, ...extent));
    const left = yAxis(plot.axis, { ...labels, min: 0, max: top, interval: step });
    if (!plot.share) {
        return [left];
    }
    const tokens = number(choice.tokens);
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
