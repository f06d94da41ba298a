// Shows the tomes: a sign for each, driven by live events (/-/admin/tiers/NAME/events). The stream
// begins with a snapshot of the set, and each step updates it. A hidden page does not subscribe.

import { events } from "/-/calls.js";
import { byId, duration, element, list, size, svgElement } from "/-/shown.js";

const RECONNECT_MS = 3000;
const LATEST_MAX = 8;

const POWERS = {
  "standby": "spun down",
  "spinning-up": "spinning up",
  "active": "active",
  "unmounting": "spinning down",
};
const CAUSES = {
  request: "a read",
  verify: "reading back a write",
  write: "a write",
  delete: "a delete",
  rebuild: "a rebuild",
  scrub: "a scrub",
  init: "its first check",
  external: "another program",
};

/** The current subscription and its signing key; null without one. */
let subscription = null;
/** The set: the last snapshot with all steps since. */
let set = null;
/** The tome that holds each token. */
let tokens = new Map();
let latest = [];

/** Shows the tomes of a tier with calls signed by `signer`; hides them if it is null. */
export function showTomes(signer, tier) {
  if (subscription?.signer === signer) return;
  forgetTomes();
  if (signer) watch(signer, tier);
}

export function forgetTomes() {
  subscription?.stop.abort();
  subscription = null;
  set = null;
  tokens = new Map();
  latest = [];
  byId("tomes").hidden = true;
  for (const name of ["signs", "reasons", "figures", "moves", "latest"]) {
    byId(`tomes-${name}`).replaceChildren();
  }
}

async function watch(signer, tier) {
  const own = { signer, stop: new AbortController() };
  subscription = own;
  try {
    for await (const [name, data] of events(signer, `/-/admin/tiers/${tier}/events`, own.stop.signal)) {
      if (subscription !== own) return;
      apply(name, data);
    }
  } catch {
    // The health section reports whether the server responds.
  }
  setTimeout(() => {
    if (subscription !== own) return;
    subscription = null;
    if (!document.hidden) watch(signer, tier);
  }, RECONNECT_MS);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    subscription?.stop.abort();
  }
});

function apply(name, data) {
  if (name === "snapshot") {
    set = data.tomes;
  } else if (name === "poll") {
    const changed = new Map(data.poll.tomes.tomes.map((tome) => [tome.tome, tome]));
    const tomes = set.tomes.map((tome) => changed.get(tome.tome) ?? tome);
    set = { ...data.poll.tomes, tomes };
    for (const reason of data.poll.raised) note(Date.now(), `Alarm: ${reason}`, true);
    for (const reason of data.poll.cleared) note(Date.now(), `Cleared: ${reason}`);
  } else if (name === "missed") {
    note(Date.now(), `${data.missed} events were missed because this page was too slow`);
    tokens = new Map();
  } else if (name === "step") {
    const [[kind, what]] = Object.entries(data.happened);
    const text = HANDLERS[kind]?.(what);
    if (text) note(data.at, text, kind === "given-up");
  }
  if (set) draw();
}

function note(time, text, isBad = false) {
  latest = [{ time: new Date(time), text, isBad }, ...latest].slice(0, LATEST_MAX);
}

const tomeOf = (number) => set.tomes.find((tome) => tome.tome === number) ?? {};
const isSameMove = (what) => (move) => move.group === what.group && move.to === what.to;

/** Applies each kind of event to the set; returns its description if it is worth showing. */
const HANDLERS = {
  "power": ({ tome, power, cause }) => {
    tomeOf(tome).power = power;
    const kind = typeof cause === "object" ? Object.keys(cause)[0] : cause;
    if (kind) return `Tome ${tome} spins up for ${CAUSES[kind]}`;
    return power === "standby" ? `Tome ${tome} is spun down` : null;
  },
  "token": ({ token, tome }) => {
    if (tome === null) tokens.delete(token);
    else tokens.set(token, tome);
  },
  "local": ({ tome, bytes }) => `Tome ${tome} received ${size(bytes)}`,
  "unprotected": ({ tome, bytes, seconds }) => {
    Object.assign(tomeOf(tome), { unprotected_bytes: bytes, unprotected_seconds: seconds });
    return bytes === 0 ? `All data on tome ${tome} is protected` : null;
  },
  "alarm": ({ tome, alarm }) => {
    const [[kind, what]] = Object.entries(alarm);
    if (kind === "healed") tomeOf(tome).healed += what.blocks;
    return `Tome ${tome}: ${ALARMS[kind](what)}`;
  },
  "scrubbed": ({ tome, next, blocks }) =>
    next === 0
      ? `Tome ${tome} was scrubbed completely`
      : `Tome ${tome} was scrubbed up to ${Math.floor((next * 100) / blocks)} %`,
  "given-up": ({ tome, why }) => {
    tomeOf(tome).failure = why;
    return `Tome ${tome} failed: ${why}`;
  },
  "resumed": ({ tome }) => {
    delete tomeOf(tome).failure;
    return `Tome ${tome} works again`;
  },
  "slot-move": (what) => {
    const known = set.moves.find(isSameMove(what));
    if (known) Object.assign(known, { failure: undefined }, what);
    else set.moves.push(what);
    return known
      ? null
      : `A member slot of group ${what.group} moves from tome ${what.from} to ${what.to}`;
  },
  "slot-moved": (what) => {
    set.moves = set.moves.filter((move) => !isSameMove(what)(move));
    return `A member slot of group ${what.group} has moved from tome ${what.from} to ${what.to}`;
  },
  "slot-stays": (what) => {
    set.moves = set.moves.filter((move) => !isSameMove(what)(move));
    return `A member slot of group ${what.group} does not move to tome ${what.to}`;
  },
  "leaving": ({ leaving, out }) => {
    Object.assign(set, { leaving, out });
  },
};

const ALARMS = {
  "healed": ({ blocks }) => `${blocks} bad blocks were rebuilt`,
  "segment-lost": ({ segment }) =>
    `segment ${segment} is beyond its parity; its group rebuilds it`,
  "change-lost": ({ version }) => `delta ${version} can no longer be computed`,
  "rebuilt": ({ group }) => `a member slot of group ${group} was rebuilt on it`,
  "rebuild-dropped": ({ group }) =>
    `the previous member of group ${group} is back; the rebuild was dropped`,
  "slot-lost": ({ group }) => `another tome took its member slot in group ${group}`,
  "foreign": ({ from }) => `tome ${from} sent an invalid message`,
};

/** Returns the state of a tome in a word or two. */
function state(tome) {
  if (set.out.includes(tome.tome)) return "out";
  if (tome.failure) return "failed";
  if (tome.away) return "away";
  if (set.leaving.includes(tome.tome)) return "leaving";
  return POWERS[tome.power] ?? "lost";
}

/** Draws a disk from above: its platter, an arc for the scrub progress, and a turning arm. */
function sign(tome) {
  const stateText = state(tome);
  const held = [...tokens].filter(([, holder]) => holder === tome.tome).map(([token]) => token);
  const unprotected = tome.unprotected_bytes;
  const pass = Math.round((tome.scrub?.share ?? 0) * 100);
  const disk = svgElement(
    "svg",
    { viewBox: "0 0 40 40", "aria-hidden": "true" },
    svgElement("circle", { class: "platter", cx: 20, cy: 20, r: 14 }),
    svgElement("circle", {
      class: "pass", cx: 20, cy: 20, r: 17.5, pathLength: 100,
      "stroke-dasharray": `${pass} 100`, transform: "rotate(-90 20 20)",
    }),
    svgElement("path", { class: "arm", d: "M20 20 L20 8 A12 12 0 0 1 30.4 14" }),
    svgElement("circle", { class: "hub", cx: 20, cy: 20, r: 3 }),
  );
  const details = [`${tome.pieces} pieces`, `${tome.spin_ups} spin-ups`];
  if (unprotected) {
    const age = duration(tome.unprotected_seconds);
    details.push(`${size(unprotected)} unprotected for ${age}`);
  }
  if (tome.healed) details.push(`${tome.healed} bad blocks rebuilt`);
  if (pass) details.push(`${pass} % of its scrub`);
  if (held.length) details.push(`token ${held.join(", ")}`);
  const failure = tome.failure ?? tome.away;
  if (failure) details.push(failure);
  const marks = element(
    "span",
    { class: "marks", "aria-hidden": "true" },
    held.length ? element("span", { class: "token" }, "T") : "",
    unprotected ? element("span", { class: "left" }, "!") : "",
  );
  return element(
    "li",
    { "data-state": stateText, title: details.join("\n") },
    marks,
    disk,
    element("strong", {}, `${tome.tome}`),
    element("span", { class: "does" }, stateText),
    element("span", { class: "details" }, `: ${details.join(", ")}`),
  );
}

/** Redraws only the signs that changed, so that animations continue. */
function drawSigns() {
  const signs = byId("tomes-signs");
  for (const [index, tome] of set.tomes.entries()) {
    const fresh = sign(tome);
    const known = signs.children[index];
    if (!known) signs.append(fresh);
    else if (!known.isEqualNode(fresh)) known.replaceWith(fresh);
  }
  while (signs.children.length > set.tomes.length) signs.lastChild.remove();
}

function draw() {
  byId("tomes").hidden = false;
  const kind = set.simulated ? " Disks are simulated by directories." : "";
  const health = `${set.is_well ? "Healthy." : "Unhealthy."}${kind}`;
  if (byId("tomes-health").textContent !== health) byId("tomes-health").textContent = health;
  byId("tomes-health").className = set.is_well ? "good" : "bad";
  list(byId("tomes-reasons"), set.reasons);
  drawSigns();
  byId("tomes-figures").replaceChildren(...figures().map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value))));
  byId("tomes-moves").replaceChildren(...set.moves.map(move));
  byId("tomes-latest").replaceChildren(...latest.map(({ time, text, isBad }) => element(
    "li",
    isBad ? { class: "bad" } : {},
    element("time", { datetime: time.toISOString() }, time.toLocaleTimeString()),
    ` ${text}`,
  )));
}

function figures() {
  const number = (count) => count.toLocaleString("en");
  const unprotected = set.tomes.filter((tome) => tome.unprotected_bytes);
  const oldest = Math.max(0, ...unprotected.map((tome) => tome.unprotected_seconds));
  const bytes = unprotected.reduce((sum, tome) => sum + tome.unprotected_bytes, 0);
  const spinning = set.tomes.filter((tome) =>
    ["spinning-up", "active", "unmounting"].includes(tome.power)).length;
  const held = [...tokens].sort((a, b) => a[0] - b[0]);
  const sum = (get) => set.tomes.reduce((total, tome) => total + get(tome), 0);
  return [
    ["Objects", `${number(set.objects)}, ${size(set.bytes)}`],
    ["Unprotected", bytes ? `${size(bytes)} for ${duration(oldest)}` : "nothing"],
    ["Spinning disks", `${spinning} of ${set.tomes.length}`],
    ["Tokens", held.map(([token, tome]) => `${token}: tome ${tome}`).join(", ") || "all free"],
    ["Power, estimated", `${set.watts.toFixed(1)} W`],
    ["Spin-ups today", `${number(sum((tome) => tome.spin_ups_of_a_day))}${deferred()}`],
    ["Bad blocks rebuilt", `${number(sum((tome) => tome.healed))}${bad(sum)}`],
    ["Full scrub ends", scrubEnd()],
  ];
}

/** Describes how long work deferred by spin-up budgets has waited. */
function deferred() {
  const waits = set.tomes.map((tome) => tome.budget?.put_off_seconds ?? 0);
  const longest = Math.max(0, ...waits);
  return longest ? `; work deferred for ${duration(longest)}` : "";
}

function bad(sum) {
  const count = sum((tome) => tome.bad);
  return count ? `; ${count} are bad now` : "";
}

/** Returns when the last pass of the full scrub ends. */
function scrubEnd() {
  const last = Math.max(0, ...set.tomes.map((tome) => tome.scrub?.ends ?? 0));
  return last ? new Date(last).toLocaleDateString() : "not known";
}

function move({ group, from, to, done, failure }) {
  const percent = Math.round(done * 100);
  const text = `Member slot of group ${group}: tome ${from} to ${to}, ${percent} %`;
  return element(
    "li",
    {},
    element("span", {}, failure ? `${text}; waits: ${failure}` : text),
    element("progress", { max: 100, value: percent, "aria-label": text }),
  );
}
