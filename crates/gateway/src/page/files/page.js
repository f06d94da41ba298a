// The page at /-/. It polls /version and /readyz, which are public, and /-/admin/status, which
// needs the keys. The keys are never sent, and nothing is stored when the page is closed. Text from
// the server is only ever inserted as text.

import { TIMEOUT_MS, call, derive } from "/-/calls.js";
import { byId, list, size } from "/-/shown.js";
import { forgetTomes, showTomes } from "/-/tomes.js";

const PERIOD_MS = 5000;

/** The key that signs calls; null until keys are entered. */
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
    ["Platters waiting for verification", number(status.unverified_platters)],
    ...status.far_libraries.map((far) => [`Platters at ${far.library}`, farPlatters(far)]),
    ["Restores waiting", number(status.restores_waiting)],
    ["Restored copies", number(status.restored_objects)],
    ["Sealing", status.pipeline],
    ["Background jobs", background(status.jobs)],
    ["Logs", `${size(status.log_bytes)} of ${size(status.log_bytes_max)}`],
    ["Free on disk", size(status.free_bytes)],
    ["Connections", `${status.server.connections} of ${status.server.connections_max}`],
    ["Platter profile", status.profile],
    ["Archive", status.archive],
  ];
}

function farPlatters({ platters, waiting }) {
  return waiting ? `${platters}, ${waiting} waiting to go there` : `${platters}`;
}

function background(jobs) {
  const busy = jobs.filter((job) => job.name !== "sealing" && job.doing);
  return busy.map((job) => `${job.name}: ${job.doing}`).join(", ") || "idle";
}

function failures(status) {
  const found = [];
  if (status.catalog_refusal) found.push(`Writes are refused: ${status.catalog_refusal}`);
  if (status.catalog_damage) {
    found.push(`The catalog is damaged; stop the archive and recover it: ${status.catalog_damage}`);
  }
  if (status.keys_lost) found.push(`${status.keys_lost} keys are lost`);
  if (status.unverified_failure) found.push(status.unverified_failure);
  for (const one of status.seal_failures) {
    found.push(`${one.set ? `Set ${one.set}` : "A set given up"}: ${one.error}`);
  }
  for (const one of status.jobs) {
    if (one.failure && one.name !== "sealing") found.push(`${one.name} failed: ${one.failure}`);
  }
  for (const one of status.failed_restores) {
    const state = one.is_given_up ? "was given up" : "will be retried";
    found.push(`Restore of ${one.bucket}/${one.key} ${state}: ${one.error}`);
  }
  for (const one of status.staged_damaged) found.push(`Damaged: ${one.bucket}/${one.key}`);
  if (status.bodies_unconfirmed) found.push(`${status.bodies_unconfirmed} uploads are unconfirmed`);
  if (status.orphaned_segments) found.push(`${status.orphaned_segments} orphaned segments`);
  if (status.panics) found.push(`${status.panics} background panics were caught: see the log`);
  return found;
}

function show(status) {
  byId("figures").replaceChildren(...figures(status).map(([name, value]) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = name;
    const cell = document.createElement("td");
    cell.textContent = value;
    row.append(head, cell);
    return row;
  }));
  list(byId("failures"), failures(status), "none");
  const now = new Date();
  byId("at").dateTime = now.toISOString();
  byId("at").textContent = now.toLocaleTimeString();
  byId("keys").hidden = true;
  byId("shown").hidden = false;
}

/** Shows a line for each group of the rack; hides the section if there is no rack. */
function showRack(found) {
  byId("rack").hidden = !found;
  if (!found) return;
  byId("rack-what").textContent = found.simulated
    ? `Simulated disks, directories only; ${found.watts.toFixed(0)} W, estimated.`
    : `${found.watts.toFixed(0)} W, estimated.`;
  const faulty = (group) => group.disks.filter((disk) => disk.failure).length;
  const lines = found.groups.map((group) => {
    const suffix = faulty(group) ? `, ${faulty(group)} faulty disks` : "";
    return `Group ${group.group}: ${group.state}, ${group.blobs} blobs of ${size(group.bytes)}, `
      + `${group.spin_ups_of_a_day} spin-ups today, ${group.waiting} waiting${suffix}`;
  });
  list(byId("groups"), lines);
}

function showMessage(text) {
  byId("message").textContent = text;
  byId("message").className = text ? "bad" : "";
}

function forget() {
  key = null;
  byId("figures").replaceChildren();
  byId("failures").replaceChildren();
  byId("groups").replaceChildren();
  forgetTomes();
  byId("shown").hidden = true;
  byId("keys").hidden = false;
  showMessage("");
}

async function updateArchive() {
  const signer = key;
  if (!signer) return;
  try {
    const status = await call(signer, "GET", "/-/admin/status");
    // The page shows one rack and one set of tomes, the first of each.
    const first = (kind) => Object.keys(status.tiers).find((name) => status.tiers[name] === kind);
    const [rack, tome] = [first("rack"), first("tome")];
    const found = rack ? await call(signer, "GET", `/-/admin/tiers/${rack}`) : null;
    // The keys may have been forgotten in the meantime.
    if (signer !== key) return;
    show(status);
    showRack(found);
    showTomes(tome ? signer : null, tome);
    showMessage("");
  } catch (error) {
    if (signer !== key) return;
    // Keys that are refused are not tried again.
    if (error.isDenied) forget();
    showMessage(`Not shown: ${error.message}`);
  }
}

async function updateHealth() {
  let text = "The server does not respond.";
  let lines = [];
  let isGood = false;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch("/readyz", { cache: "no-store", signal });
    const [first, ...rest] = (await response.text()).trim().split("\n");
    isGood = first === "ready";
    text = isGood ? "Ready: requests are served." : first === "degraded"
      ? "Degraded: requests are served, but some parts have failed." : first;
    lines = rest;
  } catch { /* `text` already says so. */ }
  // Set only when it differs, because screen readers announce every change.
  if (byId("health").textContent !== text) byId("health").textContent = text;
  byId("health").className = isGood ? "" : "bad";
  byId("degraded").hidden = lines.length === 0;
  list(byId("degraded"), lines);
}

async function showVersion() {
  try {
    const response = await fetch("/version", { signal: AbortSignal.timeout(TIMEOUT_MS) });
    byId("version").textContent = (await response.json()).version;
  } catch { /* The version is optional. */ }
}

/** Updates the page periodically while it is visible. */
async function run() {
  if (!document.hidden) await Promise.all([updateHealth(), updateArchive()]);
  setTimeout(run, PERIOD_MS);
}

for (const node of document.querySelectorAll("[data-endpoint]")) {
  node.textContent = location.origin;
}
if (!globalThis.crypto?.subtle) {
  byId("keys").hidden = true;
  showMessage("Browsers sign only over https or on localhost. Over plain HTTP, use: "
    + `fulgurite archive status --endpoint ${location.origin}`);
}
byId("keys").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [access, secret] = [byId("access").value, byId("secret").value];
  byId("secret").value = "";
  key = await derive(access, secret);
  await updateArchive();
});
byId("forget").addEventListener("click", () => {
  forget();
  byId("access").focus();
});
showVersion();
run();
