// The pickers above the plots, and the legends below them, whose entries switch a method off in every plot.
function picker(label, values, selected, name, onPick) {
    const select = element('select', { disabled: values.length < 2 });
    for (const value of values) {
        select.append(element('option', { value: text(value), textContent: name(value), selected: value === selected }));
    }
    select.addEventListener('change', () => onPick(values[select.selectedIndex]));
    return element('label', {}, element('span', { textContent: label }), select);
}

// Points of a symbol around 0, 0, as in the plots.
const SYMBOL_SHAPES = {
    circle: 'M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0', rect: 'M-3-3h6v6h-6z', triangle: 'M0-4L4 3H-4z',
    diamond: 'M0-4.5L4 0L0 4.5L-4 0z', roundRect: 'M-3.5-2q0-1.5 1.5-1.5h4q1.5 0 1.5 1.5v4q0 1.5-1.5 1.5h-4q-1.5 0-1.5-1.5z',
    down: 'M0 4L4-3H-4z',
};

function swatch(line) {
    const svg = document.getElementById('swatch').content.firstElementChild.cloneNode(true);
    const [stroke, symbol] = svg.children;
    const set = (shape, attributes) =>
        Object.entries(attributes).forEach(([name, value]) => shape.setAttribute(name, value));
    set(stroke, { stroke: line.colour, 'stroke-dasharray': list(line.dash).join(' ') });
    if (SYMBOL_SHAPES[line.symbol]) {
        set(symbol, { d: SYMBOL_SHAPES[line.symbol], fill: line.hollow ? colour('--paper') : line.colour,
            stroke: line.colour });
    }
    return svg;
}

function legendEntry(line, redraw) {
    const className = hidden.has(line.method) ? 'entry off' : 'entry';
    if (!line.method || line.reference) {
        return element('span', { className }, swatch(line), element('span', { textContent: line.name }));
    }
    const button = element('button', {
        type: 'button', className, title: METHODS.get(line.method)?.note ?? '',
        ariaPressed: String(!hidden.has(line.method)),
    }, swatch(line), element('span', { textContent: line.name }));
    button.addEventListener('click', () => {
        if (!hidden.delete(line.method)) {
            hidden.add(line.method);
        }
        redraw();
    });
    return button;
}
