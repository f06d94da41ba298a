// Builds the elements of the page. Text is only ever inserted as text, never parsed as HTML.

const ROWS_MAX = 10;
const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function size(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let index = 0;
  while (count >= 1024 && index < units.length - 1) {
    count /= 1024;
    index += 1;
  }
  return `${index === 0 ? count : count.toFixed(1)} ${units[index]}`;
}

/** Fills a list with lines, or with `none` if there are no lines. */
export function list(node, lines, none) {
  const shown = lines.slice(0, ROWS_MAX);
  if (lines.length > ROWS_MAX) shown.push(`and ${lines.length - ROWS_MAX} more`);
  if (shown.length === 0 && none) shown.push(none);
  node.replaceChildren(...shown.map((line) => element("li", {}, line)));
}

/** Creates an HTML element with attributes and children. */
export function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Creates an SVG element with attributes and children. */
export function svgElement(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Formats seconds in the largest unit of which there are at least two. */
export function duration(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60]];
  const [name, unit] = units.find(([, unit]) => seconds >= 2 * unit) ?? ["s", 1];
  return `${Math.floor(seconds / unit)} ${name}`;
}
