// The heat map of layer against layer. On a canvas: a deep model has thousands of cells.
const CIVIDIS = ['#00224e', '#123570', '#3b496c', '#575d6d', '#707173', '#8a8678', '#a59c74', '#c3b369', '#e1cc55', '#fee838'];

function cellsOf(matrix) {
    const cells = [];
    matrix.forEach((row, y) => list(row).forEach((value, x) => {
        if (number(value) !== null) {
            cells.push([x, y, value]);
        }
    }));
    return cells;
}

function similarityOption(matrix) {
    const layers = Array.from({ length: matrix.length }, (_, layer) => layer);
    const every = Math.ceil(matrix.length / 12);
    const layerAxis = { type: 'category', data: layers, splitLine: { show: false }, axisTick: { show: false },
        axisLabel: { interval: (layer) => layer % every === 0 } };
    return {
        grid: { left: 6, right: 14, top: 34, bottom: 74, containLabel: true },
        xAxis: xAxis('layer', layerAxis),
        yAxis: yAxis('layer', layerAxis),
        visualMap: {
            min: 0, max: 1, orient: 'horizontal', left: 'center', bottom: 0,
            itemWidth: 12, itemHeight: 150, inRange: { color: CIVIDIS }, textStyle: { color: colour('--muted') },
            text: ['1', 'Jaccard index 0'],
        },
        tooltip: {
            ...tooltipStyle(),
            formatter: ({ value: [x, y, jaccard] }) =>
                element('span', { textContent: `Layers ${y} and ${x}: Jaccard ${format.ratio(jaccard)}` }),
        },
        series: [{ type: 'heatmap', data: cellsOf(matrix), emphasis: { itemStyle: { borderColor: '#fff', borderWidth: 1 } } }],
    };
}

function setUpSimilarity() {
    const figure = new Figure('similarity', 'canvas');
    return () => {
        const found = list(analysis.layer_similarity).find((each) => matches(each, ['tokens', 'source', 'tau']));
        const matrix = list(found?.jaccard);
        if (matrix.length) {
            figure.draw(similarityOption(matrix));
        } else {
            figure.hide();
        }
    };
}
