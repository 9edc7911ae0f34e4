// Plots over the settings: savings against the number of tokens, representatives against the threshold.
const PREDICTED_SAVINGS = [[512, 0.52], [1024, 0.72], [2048, 0.84], [4096, 0.91], [8192, 0.95]];
const INHERITING = ['inherit', 'causal', 'linked', 'adaptive'];

// One line for each method: the summary's figure against a field of the setting.
function trendLines(of, against, field, more = () => '') {
    return distinct('method', of).map((method) => {
        const points = of.filter((result) => result.method === method && number(result[against]) !== null)
            .sort((a, b) => a[against] - b[against])
            .map((result) => {
                const summary = result.summary ?? {};
                return { x: result[against], y: number(summary[field]), interval: intervalOf(summary, field),
                    more: more(summary) };
            });
        return methodLine(method, points);
    });
}

// What the first inheriting method would save if its r at the smallest T held for every T.
function fixedLine(of, layers) {
    const method = INHERITING.find((name) => !hidden.has(name) && of.some((result) => result.method === name));
    const measured = of.filter((result) => result.method === method).sort((a, b) => a.tokens - b.tokens);
    const entries = number(measured[0]?.summary?.gram_entries);
    if (measured.length < 2 || entries === null || !layers || layers < 2) {
        return [];
    }
    const first = measured[0].tokens;
    const r = (entries / first - first) / (layers - 1); // of the layers that are inherited from
    const tokens = [...measured.map((result) => result.tokens), ...PREDICTED_SAVINGS.map(([t]) => t)];
    const points = [...new Set(tokens)].filter((t) => t >= first).sort((a, b) => a - b)
        .map((t) => ({ x: t, y: 1 - (t + (layers - 1) * r) / (layers * t), interval: null }));
    return [methodLine(method, points,
        { name: `${method} if r stayed as at T = ${first}`, reference: true, symbol: 'none', dash: [3, 3] })];
}

const predictedLine = () => ({
    name: 'the paper\'s Table 8 for GPT-J, as printed',
    colour: colour('--ink'), symbol: 'diamond', hollow: true, dash: [6, 4], reference: true,
    points: PREDICTED_SAVINGS.map(([x, y]) => ({ x, y, interval: null })),
});

function drawSavings(figure) {
    const of = chosen('source', 'tau');
    const lines = trendLines(of, 'tokens', 'gram_savings',
        (summary) => named('mean r', summary.mean_r, format.count));
    if (!lines.some((line) => line.points.some((point) => point.y !== null))) {
        figure.hide();
        return;
    }
    drawLines(figure, [...lines, ...fixedLine(of, number(analysis.n_layer)), predictedLine()], {
        x: xAxis('tokens T', { type: 'log', logBase: 2, min: 'dataMin', max: 'dataMax' }),
        y: yAxis('Gram entries saved (%)', { max: 1, axisLabel: { formatter: (value) => format.tick(100 * value) } }),
        heading: (tokens) => `T = ${tokens}`,
        how: format.percent,
    });
}

function drawTau(figure) {
    if (distinct('tau').length < 2) {
        figure.hide();
        return;
    }
    drawLines(figure, trendLines(chosen('tokens', 'source'), 'tau', 'mean_r',
        (summary) => named('', summary.mean_r_share, format.percent).trim()), {
        x: xAxis('threshold τ', { scale: true, min: 'dataMin', max: 'dataMax' }),
        y: yAxis('mean r (tokens)', { min: 0 }),
        heading: (tau) => `τ = ${tau}`,
        how: format.count,
    });
}

function setUpTrends() {
    const [savings, tau] = [new Figure('savings'), new Figure('tau')];
    return () => {
        drawSavings(savings);
        drawTau(tau);
    };
}
