// Where a method's loss lies: over the tokens, and over the layers. Rows are methods, the best on top.
const MARKS = [
    { field: 'kl_median', name: 'median', symbol: 'circle', hollow: true }, { field: 'kl', name: 'mean', symbol: 'diamond' },
    { field: 'kl_99', name: '99 %', symbol: 'rect' }, { field: 'kl_999', name: '99.9 %', symbol: 'triangle' },
];

const rowHeight = (figure, rows, around) => figure.plot.style.setProperty('height', `${Math.max(170, 24 * rows + around)}px`);
const nameAxis = (of) => ({ name: '', inverse: true, data: of.map((method) => text(method.name)),
    axisLabel: { interval: 0, hideOverlap: false, color: colour('--ink'), width: innerWidth < NARROW ? 100 : 220, overflow: 'truncate' } });

const marksOf = (method) => MARKS.map(({ field }) => number(method[field])).filter((value) => value > 0);

function spread(of) {
    return {
        id: 'spread', type: 'custom', silent: true, z: 1, encode: { x: 0, y: 1 },
        data: of.map((method, row) => [Math.log10(Math.max(...marksOf(method))), row]),
        renderItem: (_, api) => {
            const row = api.value(1);
            const [[x1, y], [x2]] = [Math.min, Math.max].map((end) => api.coord([Math.log10(end(...marksOf(of[row]))), row]));
            return { type: 'line', shape: { x1, y1: y, x2, y2: y }, style: { stroke: colour('--rule'), lineWidth: 2 } };
        },
    };
}

function distributionOption(of) {
    const scatter = ({ field, symbol, hollow }, z) => ({
        id: field, type: 'scatter', symbol, symbolSize: 10, z: z + 3,
        data: of.map((method, i) => [method[field], i]).filter(([value]) => number(value) !== null && value > 0)
            .map(([value, row]) => {
                const { colour: own } = familyLine(of[row], []);
                return { value: [Math.log10(value), row], itemStyle: { color: hollow ? colour('--paper') : own,
                    borderColor: own, borderWidth: hollow ? 2 : 0 } };
            }),
    });
    const words = (method) => MARKS.filter(({ field }) => number(method[field]) !== null)
        .map(({ field, name }) => ({ line: { ...MARKS.find((mark) => mark.field === field), colour: colour('--ink') },
            name, value: format.kl(method[field]), more: '' }));
    return {
        xAxis: xAxis('KL of a token (nats)', { ...logAxis(of.flatMap(marksOf)),
            splitLine: { show: true, lineStyle: { color: colour('--faint') } } }),
        yAxis: yAxis('', { type: 'category', ...nameAxis(of), splitLine: { show: false }, axisTick: { show: false },
            axisLine: { show: true, onZero: false, lineStyle: { color: colour('--rule') } } }),
        grid: { left: 6, right: 20, top: 10, bottom: 26, containLabel: true },
        tooltip: { ...tooltipStyle(), trigger: 'item',
            formatter: ({ value: [, row] }) => tooltipTable(text(of[row].name), words(of[row])) },
        series: [spread(of), ...MARKS.map(scatter)],
    };
}

function setUpDistribution() {
    const figure = new Figure('distribution');
    return () => {
        const of = rivals.filter((method) => marksOf(method).length > 0);
        if (!of.length) {
            figure.hide();
            return;
        }
        rowHeight(figure, of.length, 70);
        figure.draw(distributionOption(of), MARKS.map((mark) => ({ ...mark, colour: colour('--ink'), reference: true })));
    };
}

function setUpLayerErrors() {
    const figure = new Figure('layer_error', 'canvas');
    return () => {
        const of = rivals.filter((method) => list(method.layer_error).some((error) => number(error) > 0));
        if (!of.length) {
            figure.hide();
            return;
        }
        const cells = of.flatMap((method, row) => list(method.layer_error)
            .map((error, layer) => [layer, row, Math.log10(error), error]).filter((cell) => number(cell[3]) > 0));
        const logs = cells.map((cell) => cell[2]);
        const [low, high] = [Math.min(...logs), Math.max(...logs)];
        const layers = Math.max(...of.map((method) => method.layer_error.length));
        rowHeight(figure, of.length, 120);
        figure.draw({ ...heatOption({ x: layerAxis(layers), y: nameAxis(of), cells, low, high: Math.max(high, low + 1e-6),
            words: [format.percent(10 ** high), `error ${format.percent(10 ** low)}`],
            tooltip: ([layer, row, , error]) => `${text(of[row].name)}, layer ${layer}: ${format.percent(error)}` }),
        grid: { left: 6, right: 14, top: 10, bottom: 74, containLabel: true } });
    };
}
