// The inputs of a calibration by kind: those of one kind are a line over the layers.
const SYMBOLS = ['circle', 'rect', 'triangle', 'diamond', 'down', 'roundRect'];
const METHODS = new Map(); // no names of methods here; legends look for their notes

const inputs = list(data.inputs).filter((input) => input && input.kind !== undefined && number(input.layer) !== null);
const kinds = [...new Set(inputs.map((input) => text(input.kind)))];
const ofKind = (kind) => inputs.filter((input) => text(input.kind) === kind).sort((a, b) => a.layer - b.layer);
const choice = { kind: kinds[0] };

const plainLine = (name, index, points, more = {}) => ({ name, colour: colour(`--line${index % 8}`),
    symbol: SYMBOLS[index % SYMBOLS.length], points, ...more });
