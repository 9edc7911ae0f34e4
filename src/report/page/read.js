// The results that the page shows, and how their fields are read. No field is trusted to be there.
const data = JSON.parse(document.getElementById('data').textContent) ?? {};

const list = (value) => (Array.isArray(value) ? value : []);
const number = (value) => (typeof value === 'number' && Number.isFinite(value) ? value : null);
const text = (value) => (value === null || value === undefined ? '' : String(value));
const intervalOf = (row, field) => {
    const [low, high] = list(row[field + '_interval']).map(number);
    return low === null || high === null || low === undefined || high === undefined ? null : [low, high];
};

const hidden = new Set(); // methods that the reader switched off
