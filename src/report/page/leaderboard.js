// The plot of all methods: KL divergence against what is read.
const LADDER = [['Q8_0', 0.0014], ['Q6_K', 0.0055], ['Q5_K_M', 0.011], ['Q4_K_M', 0.031]]; // of an 8B model

function leaderboardLines() {
    const shown = rivals.filter((method) => number(method.kl) !== null && number(method[choice.by]) !== null);
    return families.map((family) => {
        const of = shown.filter((method) => familyOf(method) === family).sort((a, b) => a[choice.by] - b[choice.by]);
        const points = of.map((method) => ({ x: method[choice.by], y: method.kl, interval: intervalOf(method, 'kl'), method }));
        return of.length ? familyLine(of[0], points) : null;
    }).filter(Boolean);
}

// An axis of logarithms that holds all values, with labels at 1, 2 and 5. Not the plot library's own: that one rounds its
// ends to the digits of the data, and so to 0.
function logAxis(values) {
    const logs = values.filter((value) => value > 0).map(Math.log10);
    const [min, max] = logs.length ? [Math.min(...logs) - 0.12, Math.max(...logs) + 0.12] : [-4, 0];
    const digits = max - min > 3 ? [1] : [1, 2, 5];
    const ticks = [];
    for (let power = Math.floor(min); power <= max; power++) {
        ticks.push(...digits.map((digit) => power + Math.log10(digit)).filter((log) => log >= min && log <= max));
    }
    return { min, max, axisTick: { customValues: ticks, lineStyle: { color: colour('--rule') } },
        axisLabel: { customValues: ticks, formatter: (log) => String(Number((10 ** log).toPrecision(1))) } };
}

const percentLabel = { formatter: (value) => `${format.tick(100 * value)} %` };

function errorBars(line, index) {
    const points = line.points.filter((point) => point.interval?.[0] > 0);
    return {
        id: `bars${index}`, type: 'custom', silent: true, clip: true, z: 2, encode: { x: 0, y: [] },
        data: points.map((point, i) => [point.x, point.y, i]),
        renderItem: (_, api) => {
            const { x, interval } = points[api.value(2)];
            const [[middle, low], [, high]] = interval.map((y) => api.coord([x, Math.log10(y)]));
            const stroke = (x1, y1, x2, y2) => ({ type: 'line', shape: { x1, y1, x2, y2 },
                style: { stroke: line.colour, lineWidth: 1.25, opacity: 0.8 } });
            return { type: 'group', children: [stroke(middle, low, middle, high), stroke(middle - 4, low, middle + 4, low),
                stroke(middle - 4, high, middle + 4, high)] };
        },
    };
}

function frontierSeries(lines) {
    const points = lines.flatMap((line) => line.points).filter((point) => onFrontier(point.method)).sort((a, b) => a.x - b.x);
    return {
        id: 'frontier', type: 'line', step: 'end', silent: true, z: 1, symbol: 'circle', symbolSize: 15, showAllSymbol: true,
        data: points.map((point) => ({ value: [point.x, point.y], name: text(point.method.name) })),
        itemStyle: { color: 'transparent', borderColor: colour('--ink'), borderWidth: 1.5 },
        lineStyle: { color: colour('--ink'), width: 7, opacity: 0.13 },
        label: { show: true, position: 'bottom', distance: 9, formatter: '{b}', color: colour('--ink'), fontSize: 11,
            textBorderColor: colour('--paper'), textBorderWidth: 3 },
        labelLayout: { hideOverlap: true },
    };
}

// Lines across the plot to compare with. Where two of their names would lie upon each other, the noise's stays.
function referenceSeries({ min, max }) {
    const noise = number(data.noise?.kl) > 0 ? Math.log10(data.noise.kl) : null;
    const within = (log) => log !== null && log >= min && log <= max;
    const collides = (log) => within(noise) && Math.abs(log - noise) < 0.04 * (max - min);
    const marks = LADDER.map(([name, kl]) => ({ yAxis: Math.log10(kl), name })).filter((mark) => within(mark.yAxis))
        .map((mark) => ({ ...mark, label: { formatter: mark.name, show: !collides(mark.yAxis) } }));
    if (within(noise)) {
        marks.push({ yAxis: noise, label: { formatter: 'noise' }, lineStyle: { type: [7, 4], color: colour('--muted') } });
    }
    return {
        id: 'references', type: 'line', data: [], silent: true, z: 0,
        markLine: { silent: true, symbol: 'none', animation: false, data: marks, z: 0, precision: 9,
            lineStyle: { color: colour('--rule'), type: [2, 3], width: 1 },
            label: { position: 'end', color: colour('--muted'), fontSize: 11, fontFamily: FONT } },
    };
}

const TOOLTIP_FIGURES = [
    ['KL', 'kl', format.kl], ['tokens read', 'share', format.percent], ['bytes read', 'bytes_share', format.percent],
    ['top-1 kept', 'top1', format.percent], ['PPL ratio', 'ppl_ratio', (value) => fixed(value, 4)],
    ['retrieval', 'retrieval', format.percent],
];

function methodTooltip(method) {
    const rows = TOOLTIP_FIGURES.filter(([, field]) => number(method[field]) !== null).map(([label, field, how]) =>
        element('tr', {}, element('td', { textContent: label }), element('td', { textContent: how(method[field]) }),
            element('td', { textContent: formattedInterval(intervalOf(method, field), how) })));
    return element('div', {}, element('strong', { textContent: text(method.name) }),
        element('table', { className: 'facts' }, ...rows));
}

function leaderboardOption(families) {
    const points = families.flatMap((line) => line.points);
    const scale = logAxis(points.flatMap((point) => [point.y, ...(point.interval ?? [])]));
    const atLog = (point) => ({ ...point, y: Math.max(scale.min, Math.log10(point.y)) }); // 0 lies at the bottom
    const lines = families.map((line) => ({ ...line, points: line.points.map(atLog) }));
    const { step, top } = roundScale(1.03 * Math.max(0.05, ...points.map((point) => point.x)));
    return {
        grid: { left: 6, right: 56, top: 34, bottom: 26, containLabel: true },
        xAxis: xAxis(`share of the past's ${BY.get(choice.by)}`, { min: 0, max: top, interval: step, axisLabel: percentLabel }),
        yAxis: yAxis('KL (nats)', scale),
        tooltip: { ...tooltipStyle(), trigger: 'item',
            formatter: ({ seriesId, dataIndex }) => methodTooltip(lines[Number(seriesId.slice(4))].points[dataIndex].method) },
        series: [referenceSeries(scale), frontierSeries(lines), ...lines.map(errorBars),
            ...lines.map((line, i) => ({ ...series(line, i), symbolSize: 9 }))],
    };
}

function setUpLeaderboard() {
    const figure = new Figure('leaderboard');
    return () => {
        const lines = leaderboardLines();
        const visible = lines.filter((line) => !hidden.has(line.method));
        if (!lines.length) {
            figure.hide();
            return;
        }
        figure.draw(visible.length ? leaderboardOption(visible) : {}, lines);
    };
}
