// Heat maps. On a canvas: a deep model has thousands of cells.
const CIVIDIS = ['#00224e', '#123570', '#3b496c', '#575d6d', '#707173', '#8a8678', '#a59c74', '#c3b369', '#e1cc55', '#fee838'];

// { x, y: axes, cells: [x, y, value], low, high, words: at the ends of the scale, tooltip: words of a cell }
function heatOption({ x, y, cells, low, high, words, tooltip }) {
    const category = { type: 'category', splitLine: { show: false }, axisTick: { show: false } };
    return {
        grid: { left: 6, right: 14, top: 34, bottom: 74, containLabel: true },
        xAxis: xAxis(x.name, { ...category, ...x }),
        yAxis: yAxis(y.name, { ...category, ...y }),
        visualMap: {
            min: low, max: high, dimension: 2, orient: 'horizontal', left: 'center', bottom: 0,
            itemWidth: 12, itemHeight: 150, inRange: { color: CIVIDIS }, textStyle: { color: colour('--muted') },
            text: words,
        },
        tooltip: {
            ...tooltipStyle(),
            formatter: ({ value }) => element('span', { textContent: tooltip(value) }),
        },
        series: [{ type: 'heatmap', data: cells, emphasis: { itemStyle: { borderColor: '#fff', borderWidth: 1 } } }],
    };
}

// As many layers' numbers as there is room for.
function layerAxis(count) {
    const every = Math.ceil(count / 12);
    return { name: 'layer', data: Array.from({ length: count }, (_, layer) => layer),
        axisLabel: { interval: (layer) => layer % every === 0 } };
}
