// Makes admin calls. Each one, event streams included, is signed as docs/operating.md describes
// ("Admin calls").

export const TIMEOUT_MS = 15000;
const CONTEXT = "fulgurite-admin v2";
const HMAC = { name: "HMAC", hash: "SHA-256" };

const bytes = (text) => new TextEncoder().encode(text);
const hex = (buffer) =>
  Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Derives the signing key from a pair of keys. */
export async function derive(access, secret) {
  const first = await crypto.subtle.importKey("raw", bytes(secret), HMAC, false, ["sign"]);
  const derived = await crypto.subtle.sign("HMAC", first, bytes(`${CONTEXT} ${access}`));
  return crypto.subtle.importKey("raw", derived, HMAC, false, ["sign"]);
}

async function send(signer, method, target, signal) {
  const body = hex(await crypto.subtle.digest("SHA-256", bytes("")));
  const time = Date.now();
  const nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
  const text = [CONTEXT, method, target, body, time, nonce].join("\n");
  const signature = hex(await crypto.subtle.sign("HMAC", signer, bytes(text)));
  const scheme = "Fulgurite-HMAC-SHA256";
  const authorization = `${scheme} Time=${time}, Nonce=${nonce}, Signature=${signature}`;
  const response = await fetch(target, {
    method,
    headers: { authorization },
    cache: "no-store",
    signal,
  });
  if (response.ok) return response;
  const value = await response.json();
  throw Object.assign(new Error(value.error.message), { isDenied: response.status === 403 });
}

/** Makes a call and returns its response. */
export async function call(signer, method, target) {
  const response = await send(signer, method, target, AbortSignal.timeout(TIMEOUT_MS));
  return response.json();
}

/** Yields the events of a stream, each as its name and its data, until it ends. */
export async function* events(signer, target, signal) {
  const response = await send(signer, "GET", target, signal);
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of chunks(response.body)) {
    text += decoder.decode(part, { stream: true });
    const complete = text.split("\n\n");
    text = complete.pop();
    for (const lines of complete) {
      const fields = Object.fromEntries(lines.split("\n").map((line) => {
        const end = line.indexOf(":");
        return [line.slice(0, end), line.slice(end + 1).trim()];
      }));
      if (fields.event) yield [fields.event, JSON.parse(fields.data)];
    }
  }
}

async function* chunks(body) {
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
