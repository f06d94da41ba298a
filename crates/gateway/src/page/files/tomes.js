// The tomes of the page: a sign for each, driven by what happens (/-/tomes-events). A scene is
// looked at whole, each step changes what it says, and nothing is asked while nobody looks.

import { events } from "/-/calls.js";
import { at, drawn, duration, element, list, size } from "/-/shown.js";

const AGAIN_MS = 3000;
const LATEST_MAX = 8;

const POWERS = {
  "standby": "asleep",
  "spinning-up": "turning up",
  "active": "active",
  "unmounting": "going down",
};
const CAUSES = {
  request: "somebody reads",
  verify: "what was put is read back",
  write: "something is written",
  delete: "something is removed",
  rebuild: "what was lost is rebuilt",
  scrub: "it is to be looked at",
  init: "it is looked at for the first time",
  foreign: "another program woke it",
};

/** What is watched, and by whose keys; nothing while nobody does. */
let watching = null;
/** The set as it is known: a scene, and all since. */
let set = null;
/** Who has each token. */
let tokens = new Map();
let latest = [];

/** Has the tomes of a server shown to who has its keys; nothing of one that has none. */
export function showTomes(signer) {
  if (watching?.signer === signer) return;
  forgetTomes();
  if (signer) watch(signer);
}

export function forgetTomes() {
  watching?.stop.abort();
  watching = null;
  set = null;
  tokens = new Map();
  latest = [];
  at("tomes").hidden = true;
  for (const place of ["signs", "reasons", "figures", "moves", "latest"]) {
    at(`tomes-${place}`).replaceChildren();
  }
}

async function watch(signer) {
  const own = { signer, stop: new AbortController() };
  watching = own;
  try {
    for await (const [name, data] of events(signer, "/-/tomes-events", own.stop.signal)) {
      if (watching !== own) return;
      take(name, data);
    }
  } catch {
    // Whether the server answers at all is said above.
  }
  setTimeout(() => {
    if (watching !== own) return;
    watching = null;
    if (!document.hidden) watch(signer);
  }, AGAIN_MS);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    watching?.stop.abort();
  }
});

function take(name, data) {
  if (name === "scene") {
    set = data.tomes;
  } else if (name === "look") {
    const changed = new Map(data.look.tomes.tomes.map((tome) => [tome.tome, tome]));
    const tomes = set.tomes.map((tome) => changed.get(tome.tome) ?? tome);
    set = { ...data.look.tomes, tomes };
    for (const why of data.look.raised) note(Date.now(), `Alarm: ${why}`, true);
    for (const why of data.look.cleared) note(Date.now(), `Over: ${why}`);
  } else if (name === "missed") {
    note(Date.now(), `${data.missed} things happened that were not read in time`);
    tokens = new Map();
  } else if (name === "step") {
    const [[kind, what]] = Object.entries(data.happened);
    const said = HAPPENED[kind]?.(what);
    if (said) note(data.at, said, kind === "given-up");
  }
  if (set) draw();
}

function note(time, text, isBad = false) {
  latest = [{ time: new Date(time), text, isBad }, ...latest].slice(0, LATEST_MAX);
}

const tomeOf = (number) => set.tomes.find((tome) => tome.tome === number) ?? {};
const movesOf = (what) => (move) => move.group === what.group && move.to === what.to;

/** What each thing that happens changes, and the words for it if it is worth some. */
const HAPPENED = {
  "power": ({ tome, power, cause }) => {
    tomeOf(tome).power = power;
    const kind = typeof cause === "object" ? Object.keys(cause)[0] : cause;
    if (kind) return `Tome ${tome} is woken: ${CAUSES[kind]}`;
    return power === "standby" ? `Tome ${tome} sleeps` : null;
  },
  "token": ({ token, tome }) => {
    if (tome === null) tokens.delete(token);
    else tokens.set(token, tome);
  },
  "local": ({ tome, bytes }) => `Tome ${tome} has ${size(bytes)} more`,
  "unprotected": ({ tome, bytes, seconds }) => {
    Object.assign(tomeOf(tome), { unprotected_bytes: bytes, unprotected_seconds: seconds });
    return bytes === 0 ? `All that tome ${tome} has is protected` : null;
  },
  "alarm": ({ tome, alarm }) => {
    const [[kind, what]] = Object.entries(alarm);
    if (kind === "healed") tomeOf(tome).healed += what.blocks;
    return `Tome ${tome}: ${ALARMS[kind](what)}`;
  },
  "scrubbed": ({ tome, next, blocks }) =>
    next === 0
      ? `Tome ${tome} was read whole`
      : `Tome ${tome} was read as far as ${Math.floor((next * 100) / blocks)} %`,
  "given-up": ({ tome, why }) => {
    tomeOf(tome).trouble = why;
    return `Tome ${tome} is given up: ${why}`;
  },
  "resumed": ({ tome }) => {
    delete tomeOf(tome).trouble;
    return `Tome ${tome} works again`;
  },
  "seat": (what) => {
    const known = set.moves.find(movesOf(what));
    if (known) Object.assign(known, { trouble: undefined }, what);
    else set.moves.push(what);
    return known ? null : `The seat of group ${what.group} goes from tome ${what.from} to ${what.to}`;
  },
  "seat-moved": (what) => {
    set.moves = set.moves.filter((move) => !movesOf(what)(move));
    return `The seat of group ${what.group} has moved from tome ${what.from} to ${what.to}`;
  },
  "seat-stays": (what) => {
    set.moves = set.moves.filter((move) => !movesOf(what)(move));
    return `The seat of group ${what.group} does not go to tome ${what.to}`;
  },
  "leaving": ({ leaving, out }) => {
    Object.assign(set, { leaving, out });
  },
};

const ALARMS = {
  "healed": ({ blocks }) => `${blocks} bad blocks were rebuilt`,
  "segment-lost": ({ segment }) => `segment ${segment} is beyond its parity; its group is asked`,
  "change-lost": ({ version }) => `change ${version} cannot be computed any more`,
  "rebuilt": ({ group }) => `it has a seat of group ${group}, rebuilt`,
  "rebuild-dropped": ({ group }) => `who had the seat of group ${group} is back`,
  "seat-lost": ({ group }) => `another tome has its seat in group ${group}`,
  "foreign": ({ from }) => `tome ${from} said what is not so`,
};

/** What a tome does, in a word or two. */
function state(tome) {
  if (set.out.includes(tome.tome)) return "out";
  if (tome.trouble) return "given up";
  if (tome.away) return "away";
  if (set.leaving.includes(tome.tome)) return "leaving";
  return POWERS[tome.power] ?? "lost";
}

/** A disk from above: its platter, an arc of what its scrub has behind it, an arm that turns. */
function sign(tome) {
  const does = state(tome);
  const holds = [...tokens].filter(([, holder]) => holder === tome.tome).map(([token]) => token);
  const left = tome.unprotected_bytes;
  const pass = Math.round((tome.scrub?.share ?? 0) * 100);
  const disk = drawn(
    "svg",
    { viewBox: "0 0 40 40", "aria-hidden": "true" },
    drawn("circle", { class: "platter", cx: 20, cy: 20, r: 14 }),
    drawn("circle", {
      class: "pass", cx: 20, cy: 20, r: 17.5, pathLength: 100,
      "stroke-dasharray": `${pass} 100`, transform: "rotate(-90 20 20)",
    }),
    drawn("path", { class: "arm", d: "M20 20 L20 8 A12 12 0 0 1 30.4 14" }),
    drawn("circle", { class: "hub", cx: 20, cy: 20, r: 3 }),
  );
  const said = [`${tome.pieces} pieces`, `woken ${tome.wakes} times`];
  if (left) said.push(`${size(left)} unprotected for ${duration(tome.unprotected_seconds)}`);
  if (tome.healed) said.push(`${tome.healed} bad blocks rebuilt`);
  if (pass) said.push(`${pass} % of its scrub`);
  if (holds.length) said.push(`token ${holds.join(", ")}`);
  const why = tome.trouble ?? tome.away;
  if (why) said.push(why);
  const marks = element(
    "span",
    { class: "marks", "aria-hidden": "true" },
    holds.length ? element("span", { class: "token" }, "T") : "",
    left ? element("span", { class: "left" }, "!") : "",
  );
  return element(
    "li",
    { "data-state": does, title: said.join("\n") },
    marks,
    disk,
    element("strong", {}, `${tome.tome}`),
    element("span", { class: "does" }, does),
    element("span", { class: "said" }, `: ${said.join(", ")}`),
  );
}

/** Draws again what is another than before, so that what turns goes on turning. */
function drawSigns() {
  const place = at("tomes-signs");
  for (const [index, tome] of set.tomes.entries()) {
    const made = sign(tome);
    const known = place.children[index];
    if (!known) place.append(made);
    else if (!known.isEqualNode(made)) known.replaceWith(made);
  }
  while (place.children.length > set.tomes.length) place.lastChild.remove();
}

function draw() {
  at("tomes").hidden = false;
  const kind = set.simulated ? " Disks are simulated: directories that do not turn." : "";
  const health = `${set.is_well ? "Well." : "Not well."}${kind}`;
  if (at("tomes-health").textContent !== health) at("tomes-health").textContent = health;
  at("tomes-health").className = set.is_well ? "good" : "bad";
  list(at("tomes-reasons"), set.reasons);
  drawSigns();
  at("tomes-figures").replaceChildren(...figures().map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value))));
  at("tomes-moves").replaceChildren(...set.moves.map(move));
  at("tomes-latest").replaceChildren(...latest.map(({ time, text, isBad }) => element(
    "li",
    isBad ? { class: "bad" } : {},
    element("time", { datetime: time.toISOString() }, time.toLocaleTimeString()),
    ` ${text}`,
  )));
}

function figures() {
  const number = (count) => count.toLocaleString("en");
  const left = set.tomes.filter((tome) => tome.unprotected_bytes);
  const oldest = Math.max(0, ...left.map((tome) => tome.unprotected_seconds));
  const bytes = left.reduce((sum, tome) => sum + tome.unprotected_bytes, 0);
  const turning = set.tomes.filter((tome) =>
    ["spinning-up", "active", "unmounting"].includes(tome.power)).length;
  const held = [...tokens].sort((a, b) => a[0] - b[0]);
  const sum = (of) => set.tomes.reduce((total, tome) => total + of(tome), 0);
  return [
    ["Objects", `${number(set.objects)}, ${size(set.bytes)}`],
    ["Unprotected", bytes ? `${size(bytes)} for ${duration(oldest)}` : "nothing"],
    ["Disks that turn", `${turning} of ${set.tomes.length}`],
    ["Tokens", held.map(([token, tome]) => `${token}: tome ${tome}`).join(", ") || "nobody has one"],
    ["Power, estimated", `${set.watts.toFixed(1)} W`],
    ["Woken today", `${number(sum((tome) => tome.wakes_of_a_day))} times${putOff()}`],
    ["Bad blocks rebuilt", `${number(sum((tome) => tome.healed))}${bad(sum)}`],
    ["All blocks are read by", pass()],
  ];
}

/** How long what budgets of spin-ups put off has waited. */
function putOff() {
  const waits = set.tomes.map((tome) => tome.budget?.put_off_seconds ?? 0);
  const longest = Math.max(0, ...waits);
  return longest ? `; work put off for ${duration(longest)}` : "";
}

function bad(sum) {
  const count = sum((tome) => tome.bad);
  return count ? `; ${count} are bad now` : "";
}

/** When the pass of the full scrub ends that ends last. */
function pass() {
  const last = Math.max(0, ...set.tomes.map((tome) => tome.scrub?.ends ?? 0));
  return last ? new Date(last).toLocaleDateString() : "not known";
}

function move({ group, from, to, done, trouble }) {
  const percent = Math.round(done * 100);
  const text = `Seat of group ${group}: tome ${from} to ${to}, ${percent} %`;
  return element(
    "li",
    {},
    element("span", {}, trouble ? `${text}; waits: ${trouble}` : text),
    element("progress", { max: 100, value: percent, "aria-label": text }),
  );
}
