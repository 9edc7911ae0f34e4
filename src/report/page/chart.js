// A figure of the page, and plots of lines in it. A line is { name, method, colour, symbol, dash, hollow, points }, a point
// { x, y, interval, lines: more for the tooltip }; y may be null where nothing was measured.
class Figure {
    constructor(id, renderer = 'svg') {
        this.element = document.getElementById(id);
        this.title = this.element.querySelector('h3').textContent;
        this.renderer = renderer;
        this.plot = element('div', { className: 'plot', role: 'img', ariaLabel: `Plot: ${this.title}` });
        this.legend = element('div', { className: 'legend' });
        this.element.append(this.plot, this.legend);
    }

    hide() {
        this.element.hidden = true;
    }

    draw(option, legendLines = []) {
        this.element.hidden = false;
        if (!this.chart) { // only now: a hidden element has no size
            this.chart = echarts.init(this.plot, null, { renderer: this.renderer });
            new ResizeObserver(() => this.plot.clientWidth && this.chart.resize()).observe(this.plot);
        }
        this.chart.setOption({ ...plainOption(), ...option }, { notMerge: true });
        const focused = [...this.legend.children].indexOf(document.activeElement);
        this.legend.replaceChildren(...legendLines.map((line) => legendEntry(line, redraw)));
        this.legend.children[focused]?.focus();
    }
}

const FONT = 'system-ui, sans-serif';

function plainOption() {
    return {
        animation: false,
        textStyle: { fontFamily: FONT, color: colour('--ink') },
        grid: { left: 6, right: 20, top: 34, bottom: 26, containLabel: true },
    };
}

function axis(name, more = {}) {
    const { axisLabel, ...rest } = more;
    return {
        type: 'value',
        name,
        nameTextStyle: { color: colour('--muted'), fontSize: 12 },
        axisLine: { show: true, lineStyle: { color: colour('--rule') } },
        axisTick: { lineStyle: { color: colour('--rule') } },
        axisLabel: { color: colour('--muted'), fontSize: 12, hideOverlap: true, ...axisLabel },
        splitLine: { lineStyle: { color: colour('--faint') } },
        ...rest,
    };
}

const xAxis = (name, more = {}) =>
    axis(name, { nameLocation: 'middle', nameGap: 28, splitLine: { show: false }, ...more });

// Its name lies above the axis: beside it, it would take room that a phone has not.
const yAxis = (name, more = {}) => {
    const right = more.position === 'right';
    const made = axis(name, { nameLocation: 'end', nameGap: 14, ...more });
    made.nameTextStyle = { ...made.nameTextStyle, align: right ? 'right' : 'left', padding: right ? [0, -10, 0, 0] : [0, 0, 0, -6] };
    return made;
};

// On a phone a tooltip lies below its plot: within, it would hide all of it.
const NARROW = 480;
function tooltipPosition([x, y], params, dom, rect, { contentSize, viewSize: [width, height] }) {
    if (width < NARROW) {
        return [0, height];
    }
    const left = x + 20 + contentSize[0] < width ? x + 20 : x - 20 - contentSize[0];
    return [Math.max(0, left), Math.max(0, Math.min(y, height - contentSize[1]))];
}

function tooltipStyle() {
    return {
        position: tooltipPosition,
        backgroundColor: colour('--paper'),
        borderColor: colour('--rule'),
        textStyle: { color: colour('--ink'), fontFamily: FONT, fontSize: 12 },
        className: 'tooltip',
        extraCssText: 'max-width: 100%',
    };
}

function tooltipTable(heading, rows) {
    const table = element('table');
    for (const { line, value, more } of rows) {
        table.append(element('tr', {}, element('td', {}, swatch(line)), element('td', { textContent: line.name }),
            element('td', { textContent: value }), element('td', { textContent: more })));
    }
    return element('div', {}, element('strong', { textContent: heading }), table);
}

function lineTooltip(lines, heading, how) {
    return {
        ...tooltipStyle(),
        trigger: 'axis',
        axisPointer: { lineStyle: { color: colour('--muted') } },
        formatter(items) {
            const rows = items.filter((item) => item.seriesId.startsWith('line')).map((item) => {
                const line = lines[Number(item.seriesId.slice(4))];
                const point = line.points[item.dataIndex];
                const more = [formattedInterval(point.interval, how), text(point.more)].filter(Boolean).join('; ');
                return { line, y: point.y, value: formatted(point.y, how), more };
            }).filter((row) => row.y !== null).sort((a, b) => b.y - a.y);
            return tooltipTable(heading(items[0].axisValue), rows);
        },
    };
}

// A polygon for each unbroken run of points with an interval.
function band(line, index) {
    const runs = [[]];
    for (const point of line.points) {
        if (point.interval && point.y !== null) {
            runs.at(-1).push(point);
        } else if (runs.at(-1).length) {
            runs.push([]);
        }
    }
    return {
        id: `band${index}`,
        type: 'custom',
        silent: true,
        clip: true,
        z: 1,
        data: runs.filter((run) => run.length > 1).map((run, i) => [run[0].x, run[0].y, i]),
        encode: { x: 0, y: [] },
        renderItem: (_, api) => {
            const run = runs[api.value(2)];
            const low = run.map((point) => api.coord([point.x, point.interval[0]]));
            const high = run.map((point) => api.coord([point.x, point.interval[1]]));
            return { type: 'polygon', shape: { points: [...low, ...high.reverse()] },
                style: { fill: line.colour, opacity: 0.13 } };
        },
    };
}

function series(line, index) {
    return {
        id: `line${index}`,
        name: line.name,
        type: 'line',
        data: line.points.map((point) => [point.x, point.y ?? '-']),
        symbol: line.symbol === 'down' ? 'path://M-4-3.5H4L0 3.5z' : line.symbol ?? 'none',
        symbolSize: line.points.length > 40 ? 4 : 6,
        showAllSymbol: true,
        itemStyle: { color: line.hollow ? colour('--paper') : line.colour, borderColor: line.colour,
            borderWidth: line.hollow ? 1.5 : 0 },
        lineStyle: { color: line.colour, width: line.reference ? 1.5 : 2, type: line.dash ?? 'solid' },
        emphasis: { focus: 'series', lineStyle: { width: 3 } },
        z: 3,
    };
}

// axes: { x, y: one or several, heading: of the tooltip, how: y's format, x's categories within x }
function drawLines(figure, allLines, axes) {
    const lines = allLines.filter((line) => line.points.some((point) => point.y !== null));
    if (!lines.length) {
        figure.hide();
        return;
    }
    const visible = lines.filter((line) => !hidden.has(line.method));
    figure.draw({
        xAxis: axes.x,
        yAxis: axes.y,
        tooltip: lineTooltip(visible, axes.heading, axes.how),
        series: [...visible.map(band), ...visible.map(series)],
    }, lines);
}

function methodLine(method, points, more = {}) {
    const { symbol, dash } = METHODS.get(method) ?? { symbol: 'emptyCircle' };
    return { name: text(method), method, colour: methodColour(method), symbol, dash, points, ...more };
}

// The next round number, and the step of about five ticks up to it.
function roundScale(highest) {
    const rough = Math.max(highest, 1e-9) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) * power;
    return { step, top: Math.ceil(highest / step - 1e-9) * step };
}
