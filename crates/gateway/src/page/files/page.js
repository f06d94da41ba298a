// The page at /-/. It asks /version and /readyz, which anybody may, and /-/admin/status, which who
// has the keys may. The keys go nowhere, and nothing is kept when the page is closed. Text from the
// server is shown as text.

import { TIMEOUT_MS, call, derive } from "/-/calls.js";
import { at, list, size } from "/-/shown.js";
import { forgetTomes, showTomes } from "/-/tomes.js";

const PERIOD_MS = 5000;

/** What signs calls; nothing while nobody has given keys. */
let key = null;

function figures(status) {
  const number = (count) => count.toLocaleString("en");
  return [
    ["Objects on disk", number(status.objects_online)],
    ["Archived objects, staged", number(status.objects_staged)],
    ["Archived objects, on glass", number(status.objects_on_glass)],
    ["Objects in tiers of objects", number(status.objects_in_tiers)],
    ["Staged for glass", size(status.staged_bytes)],
    ["Staged for tiers of objects", size(status.moving_bytes)],
    ["Platter sets", number(status.sets.length)],
    ["Platters stored", number(status.platters)],
    ["Platters that wait to be verified", number(status.unverified_platters)],
    ...status.far_libraries.map((far) => [`Platters at ${far.library}`, farPlatters(far)]),
    ["Restores waiting", number(status.restores_waiting)],
    ["Restored copies", number(status.restored_objects)],
    ["Sealing", status.pipeline],
    ["In the background", background(status.jobs)],
    ["Logs", `${size(status.log_bytes)} of ${size(status.log_bytes_max)}`],
    ["Free on disk", size(status.free_bytes)],
    ["Connections", `${status.server.connections} of ${status.server.connections_max}`],
    ["Platter profile", status.profile],
    ["Archive", status.archive],
  ];
}

function farPlatters({ platters, waiting }) {
  return waiting ? `${platters}, ${waiting} to go there` : `${platters}`;
}

function background(jobs) {
  const busy = jobs.filter((job) => job.name !== "sealing" && job.doing);
  return busy.map((job) => `${job.name}: ${job.doing}`).join(", ") || "idle";
}

function troubles(status) {
  const found = [];
  if (status.catalog_refusal) found.push(`Nothing can be written: ${status.catalog_refusal}`);
  if (status.catalog_damage) {
    found.push(`The catalog is damaged; stop the archive and recover it: ${status.catalog_damage}`);
  }
  if (status.keys_lost) found.push(`${status.keys_lost} keys are lost`);
  if (status.unverified_trouble) found.push(status.unverified_trouble);
  for (const one of status.seal_troubles) {
    found.push(`${one.set ? `Set ${one.set}` : "A set given up"}: ${one.error}`);
  }
  for (const one of status.jobs) {
    if (one.trouble && one.name !== "sealing") found.push(`${one.name} failed: ${one.trouble}`);
  }
  for (const one of status.failed_restores) {
    const what = one.is_given_up ? "was given up" : "is tried again";
    found.push(`Restore of ${one.bucket}/${one.key} ${what}: ${one.error}`);
  }
  for (const one of status.staged_damaged) found.push(`Damaged: ${one.bucket}/${one.key}`);
  if (status.bodies_in_doubt) found.push(`${status.bodies_in_doubt} uploads are in doubt`);
  if (status.orphaned_segments) found.push(`${status.orphaned_segments} orphaned segments`);
  if (status.panics) found.push(`${status.panics} bugs cost a piece of work: see the log`);
  return found;
}

function show(status) {
  at("figures").replaceChildren(...figures(status).map(([name, value]) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = name;
    const cell = document.createElement("td");
    cell.textContent = value;
    row.append(head, cell);
    return row;
  }));
  list(at("troubles"), troubles(status), "none");
  const now = new Date();
  at("at").dateTime = now.toISOString();
  at("at").textContent = now.toLocaleTimeString();
  at("keys").hidden = true;
  at("shown").hidden = false;
}

/** A line for each group of the rack; nothing of a server that has none. */
function rack(found) {
  at("rack").hidden = !found;
  if (!found) return;
  at("rack-what").textContent = found.simulated
    ? `Simulated disks, directories that do not turn; ${found.watts.toFixed(0)} W, estimated.`
    : `${found.watts.toFixed(0)} W, estimated.`;
  const troubled = (group) => group.disks.filter((disk) => disk.trouble).length;
  const lines = found.groups.map((group) => {
    const bad = troubled(group) ? `, ${troubled(group)} disks in trouble` : "";
    return `Group ${group.group}: ${group.state}, ${group.blobs} blobs of ${size(group.bytes)}, `
      + `woken ${group.spin_ups_of_a_day} times today, ${group.waiting} waiting${bad}`;
  });
  list(at("groups"), lines);
}

function tell(text) {
  at("told").textContent = text;
  at("told").className = text ? "bad" : "";
}

function forget() {
  key = null;
  at("figures").replaceChildren();
  at("troubles").replaceChildren();
  at("groups").replaceChildren();
  forgetTomes();
  at("shown").hidden = true;
  at("keys").hidden = false;
  tell("");
}

async function archive() {
  const signer = key;
  if (!signer) return;
  try {
    const status = await call(signer, "GET", "/-/admin/status");
    const found = status.has_rack ? await call(signer, "GET", "/-/admin/rack") : null;
    // The keys may have been forgotten while it was asked.
    if (signer !== key) return;
    show(status);
    rack(found);
    showTomes(status.has_tomes ? signer : null);
    tell("");
  } catch (error) {
    if (signer !== key) return;
    // Keys that do not open are not tried again and again.
    if (error.isDenied) forget();
    tell(`Not shown: ${error.message}`);
  }
}

async function health() {
  let text = "The server does not answer.";
  let lines = [];
  let isGood = false;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const answer = await fetch("/readyz", { cache: "no-store", signal });
    const [first, ...rest] = (await answer.text()).trim().split("\n");
    isGood = first === "ready";
    text = isGood ? "Ready: requests are served." : first === "degraded"
      ? "Degraded: requests are served, but not all goes well behind them." : first;
    lines = rest;
  } catch { /* It is said that nothing answers. */ }
  // Said again only when it is another: screen readers read what changes.
  if (at("health").textContent !== text) at("health").textContent = text;
  at("health").className = isGood ? "" : "bad";
  at("degraded").hidden = lines.length === 0;
  list(at("degraded"), lines);
}

async function version() {
  try {
    const answer = await fetch("/version", { signal: AbortSignal.timeout(TIMEOUT_MS) });
    at("version").textContent = (await answer.json()).version;
  } catch { /* A page without it is a page. */ }
}

/** Asks, waits, asks again; not while nobody looks. */
async function run() {
  if (!document.hidden) await Promise.all([health(), archive()]);
  setTimeout(run, PERIOD_MS);
}

for (const place of document.querySelectorAll("[data-endpoint]")) {
  place.textContent = location.origin;
}
if (!globalThis.crypto?.subtle) {
  at("keys").hidden = true;
  tell("Browsers sign only over https or on localhost. Over plain HTTP, ask with: "
    + `fulgurite admin status --endpoint ${location.origin}`);
}
at("keys").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [access, secret] = [at("access").value, at("secret").value];
  at("secret").value = "";
  key = await derive(access, secret);
  await archive();
});
at("forget").addEventListener("click", () => {
  forget();
  at("access").focus();
});
version();
run();
