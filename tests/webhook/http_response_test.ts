/**
 * The parser of responses: packets that end at every position, and the memory that it uses.
 */
import assert from "node:assert/strict";
import { MalformedResponseError, ResponseReader } from "../../shared/delivery/http_response.ts";
import { ResponseParser } from "../../shared/delivery/llhttp.ts";

/** The properties of a response that a sender uses. */
type Verdict = "malformed" | {
  status: number | undefined;
  retry_after: string | undefined;
  done: boolean;
  reusable: boolean;
};

const RETRY = "Retry-After: 120";
const CASES: [name: string, text: string, expected: Verdict][] = [
  ["with a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ended(200)],
  [
    "in chunks, with a trailer",
    `HTTP/1.1 503 No\r\n${RETRY}\r\nTransfer-Encoding: chunked\r\n\r\n` +
    "2;a=b\r\nok\r\n0\r\nRetry-After: 7\r\n\r\n",
    ended(503, "120"),
  ],
  [
    "behind interim responses",
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n${RETRY}\r\n\r\nHTTP/1.1 204 No\r\n\r\n`,
    ended(204),
  ],
  [
    "names in upper case, spaces around the value",
    "HTTP/1.1 429 No\r\nRETRY-AFTER: \t 5 \t \r\nContent-Length: 0\r\n\r\n",
    ended(429, "5"),
  ],
  [
    "a name that begins like the wanted one, and one that ends like it",
    `HTTP/1.1 429 No\r\nRetry-After-X: 1\r\nX-${RETRY}\r\nContent-Length: 0\r\n\r\n`,
    ended(429),
  ],
  [
    "two values",
    `HTTP/1.1 429 No\r\n${RETRY}\r\n${RETRY}\r\nContent-Length: 0\r\n\r\n`,
    ended(429),
  ],
  [
    "that closes",
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    { ...ended(200), reusable: false },
  ],
  [
    "until the connection closes",
    "HTTP/1.1 200 OK\r\n\r\nbody",
    { status: 200, retry_after: undefined, done: false, reusable: false },
  ],
  ["with a bad header", "HTTP/1.1 200 OK\r\nA\r\n\r\n", "malformed"],
  ["with a lone LF", "HTTP/1.1 200 OK\r\na: \n\r\n\r\n", "malformed"],
];

for (const [name, text, expected] of CASES) {
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 3, 7, bytes.length]) {
    Deno.test(`ResponseReader reads ${name}, ${size} bytes at a time`, async () => {
      assert.deepEqual(await readIn(bytes, size), expected);
    });
  }
}

for (const kept of [0, 1, 20, 200]) {
  for (const size of [1, 7, 1000]) {
    Deno.test(`ResponseReader.beginning has ${kept} bytes, ${size} bytes at a time`, async () => {
      const text = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n01234567890123456789";
      const bytes = new TextEncoder().encode(text);
      const reader = await ResponseReader.open(kept);
      for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
      assert.equal(new TextDecoder().decode(reader.beginning), text.slice(0, kept));
      assert.equal(reader.exceeds_beginning, kept < text.length);
      reader.close();
    });
  }
}

Deno.test("ResponseReader.push() prevents reuse of the connection after extra bytes", async () => {
  const text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nH";
  const expected = { ...ended(200), reusable: false };
  assert.deepEqual(await readIn(new TextEncoder().encode(text), text.length), expected);
});

Deno.test("ResponseReader.close() frees all memory", async () => {
  const text = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok";
  const bytes = new TextEncoder().encode(text);
  await readIn(bytes, 5);
  const before = ResponseParser.memory_bytes;
  for (let i = 0; i < 5_000; i++) await readIn(bytes, 5);
  assert.equal(ResponseParser.memory_bytes, before);
});

function ended(status: number, retry_after?: string): Exclude<Verdict, string> {
  return { status, retry_after, done: true, reusable: true };
}

async function readIn(bytes: Uint8Array, size: number): Promise<Verdict> {
  const reader = await ResponseReader.open();
  try {
    for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
    const { status, retry_after, done, reusable } = reader;
    return { status, retry_after, done, reusable };
  } catch (error) {
    if (error instanceof MalformedResponseError) return "malformed";
    throw error;
  } finally {
    reader.close();
  }
}
