// The heat map of layer against layer.
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
    const layers = layerAxis(matrix.length);
    return heatOption({ x: layers, y: layers, cells: cellsOf(matrix), low: 0, high: 1, words: ['1', 'Jaccard index 0'],
        tooltip: ([x, y, jaccard]) => `Layers ${y} and ${x}: Jaccard ${format.ratio(jaccard)}` });
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
