// How the page shows things. Text is only ever text: nothing here makes elements of it.

const ROWS_MAX = 10;
const SVG = "http://www.w3.org/2000/svg";

export const at = (id) => document.getElementById(id);

export function size(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let index = 0;
  while (count >= 1024 && index < units.length - 1) {
    count /= 1024;
    index += 1;
  }
  return `${index === 0 ? count : count.toFixed(1)} ${units[index]}`;
}

/** Lines, or what is said when there are none. */
export function list(place, lines, none) {
  const shown = lines.slice(0, ROWS_MAX);
  if (lines.length > ROWS_MAX) shown.push(`and ${lines.length - ROWS_MAX} more`);
  if (shown.length === 0 && none) shown.push(none);
  place.replaceChildren(...shown.map((line) => element("li", {}, line)));
}

/** An element with attributes, and text or elements in it. */
export function element(name, attributes, ...inner) {
  return filled(document.createElement(name), attributes, inner);
}

/** The same of a drawing. */
export function drawn(name, attributes, ...inner) {
  return filled(document.createElementNS(SVG, name), attributes, inner);
}

function filled(made, attributes, inner) {
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inner);
  return made;
}

/** How long something takes or waits, in the largest unit that says it well. */
export function duration(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60]];
  const [name, unit] = units.find(([, unit]) => seconds >= 2 * unit) ?? ["s", 1];
  return `${Math.floor(seconds / unit)} ${name}`;
}
