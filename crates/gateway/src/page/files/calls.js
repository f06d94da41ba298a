// Calls that only who has the keys may make: each is signed as docs/operating.md says ("Admin
// calls"), a stream of events like any other.

export const TIMEOUT_MS = 15000;
const CONTEXT = "fulgurite-admin v2";
const HMAC = { name: "HMAC", hash: "SHA-256" };

const bytes = (text) => new TextEncoder().encode(text);
const hex = (buffer) =>
  Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** What signs, of keys. */
export async function derive(access, secret) {
  const first = await crypto.subtle.importKey("raw", bytes(secret), HMAC, false, ["sign"]);
  const derived = await crypto.subtle.sign("HMAC", first, bytes(`${CONTEXT} ${access}`));
  return crypto.subtle.importKey("raw", derived, HMAC, false, ["sign"]);
}

async function asked(signer, method, target, signal) {
  const body = hex(await crypto.subtle.digest("SHA-256", bytes("")));
  const time = Date.now();
  const nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
  const said = [CONTEXT, method, target, body, time, nonce].join("\n");
  const signature = hex(await crypto.subtle.sign("HMAC", signer, bytes(said)));
  const scheme = "Fulgurite-HMAC-SHA256";
  const authorization = `${scheme} Time=${time}, Nonce=${nonce}, Signature=${signature}`;
  const answer = await fetch(target, {
    method,
    headers: { authorization },
    cache: "no-store",
    signal,
  });
  if (answer.ok) return answer;
  const value = await answer.json();
  throw Object.assign(new Error(value.error.message), { isDenied: answer.status === 403 });
}

/** What a call answers. */
export async function call(signer, method, target) {
  const answer = await asked(signer, method, target, AbortSignal.timeout(TIMEOUT_MS));
  return answer.json();
}

/** The events of a stream, each with its name and what it says, until it ends. */
export async function* events(signer, target, signal) {
  const answer = await asked(signer, "GET", target, signal);
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of pieces(answer.body)) {
    text += decoder.decode(part, { stream: true });
    const whole = text.split("\n\n");
    text = whole.pop();
    for (const lines of whole) {
      const fields = Object.fromEntries(lines.split("\n").map((line) => {
        const end = line.indexOf(":");
        return [line.slice(0, end), line.slice(end + 1).trim()];
      }));
      if (fields.event) yield [fields.event, JSON.parse(fields.data)];
    }
  }
}

async function* pieces(body) {
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
