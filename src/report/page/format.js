// Numbers and elements. Text from the data only ever becomes a text node or a plain property.
const fixed = (value, digits) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

const format = {
    tick: (value) => value.toLocaleString('en', { maximumFractionDigits: 2 }),
    count: (value) => fixed(value, Number.isInteger(value) || Math.abs(value) >= 1000 ? 0 : 1),
    percent: (value) => fixed(100 * value, 1) + ' %',
    ratio: (value) => fixed(value, 3),
    factor: (value) => fixed(value, 2) + ' ×',
    // Spans decades: three digits of each.
    kl: (value) => (value !== 0 && Math.abs(value) < 1e-5 ? value.toExponential(1) :
        fixed(value, value === 0 ? 0 : Math.min(7, Math.max(3, 2 - Math.floor(Math.log10(Math.abs(value))))))),
    seconds: (value) => (value < 1 ? fixed(1000 * value, 1) + ' ms' : fixed(value, 2) + ' s'),
};

const formatted = (value, how) => (number(value) === null ? '–' : how(value));

function formattedInterval(interval, how) {
    if (!interval || interval[0] === interval[1]) {
        return '';
    }
    const [low, high] = interval.map(how);
    const unit = / [%×]$/.exec(low)?.[0] ?? '';
    const start = unit ? low.slice(0, -unit.length) : low;
    return interval[0] < 0 ? `${start} to ${high}` : `${start}–${high}`;
}

function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    const { dataset, style, ...rest } = properties;
    Object.assign(made, rest);
    Object.assign(made.dataset, dataset);
    for (const [name, value] of Object.entries(style ?? {})) {
        made.style.setProperty(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
}
